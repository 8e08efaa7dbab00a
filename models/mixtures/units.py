"""The units in which a mixture sees its data: those that make its prior one for data of any units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..fitting import location_and_scale

SINGULAR = 1e-12  # of the largest variance, below which a direction counts as constant


class Units(NamedTuple):
    """Rows x of the data are centre + matrix @ input."""

    centre: np.ndarray
    matrix: np.ndarray

    @property
    def log_volume(self) -> float:
        """What is taken from the log density of an input for that of a row of the data."""
        return float(np.linalg.slogdet(self.matrix)[1])

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Rows of the data as the model sees them."""
        return np.linalg.solve(self.matrix, (x - self.centre).T).T

    def back(self, inputs: np.ndarray) -> np.ndarray:
        """Rows of the data, or means of them, from those of the model."""
        return inputs @ self.matrix.T + self.centre

    def covariances(self, spread: np.ndarray, covariance: str) -> np.ndarray:
        """Covariances of the data from those of the inputs, shaped as in scikit-learn."""
        if covariance in ("full", "tied"):
            return self.matrix @ spread @ self.matrix.T
        return spread * (np.diag(self.matrix) if covariance == "diag" else self.matrix[0, 0]) ** 2


def units_of(x: np.ndarray, covariance: str) -> Units:
    """Full matrices see inputs of unit covariance, diagonal ones of unit variances, spherical ones of that on average.

    Their prior is then that of fraley2007bayesian, and the evidence is the same in all units that leave the kind of
    covariance what it is.
    """
    centre, scale, size = x.mean(axis=0), location_and_scale(x)[1], x.shape[1]
    if covariance == "spherical":
        variance = np.mean(x.var(axis=0))
        return Units(centre, np.sqrt(variance if variance > (SINGULAR * np.abs(x).max()) ** 2 else 1.0) * np.eye(size))
    if covariance == "diag":
        return Units(centre, np.diag(scale))
    variance, axes = np.linalg.eigh(np.cov(((x - centre) / scale).T, bias=True).reshape(size, size))
    root = np.sqrt(np.where(variance > SINGULAR * size, variance, 1.0))
    return Units(centre, scale[:, None] * (axes * root) @ axes.T)
