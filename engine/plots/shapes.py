"""What is drawn of a marginal, as numbers: densities, intervals and the names of elements. It needs no matplotlib."""

from __future__ import annotations

import numpy as np
import scipy.special

from ...factors.errors import UnsupportedError
from ..answers.marginal import Marginal

CURVES = 6  # up to so many elements have their densities drawn, more are intervals
SHOWN = 40  # elements of one variable that are drawn


def has_quantiles(marginal: Marginal) -> bool:
    """Whether its values have an order and a distribution function."""
    try:
        marginal.quantile(0.5)
    except UnsupportedError:
        return False
    return True


def density_curves(marginal: Marginal) -> tuple[np.ndarray, np.ndarray]:
    """Points and the density there by differences of the distribution function: quantiles are all it needs.

    Both are shaped (200, elements), from 4 sds of a normal below its mean to 4 above.
    """
    levels = scipy.special.ndtr(np.linspace(-4.0, 4.0, 201))
    points = marginal.quantile(levels).reshape(levels.size, -1)
    density = np.diff(levels)[:, None] / np.maximum(np.diff(points, axis=0), 1e-300)
    return 0.5 * (points[1:] + points[:-1]), density


def intervals(marginal: Marginal, interval: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of central intervals of all elements; those of a Gaussian where a family has no quantiles."""
    if has_quantiles(marginal):
        low, high = marginal.interval(interval)
        return np.ravel(low), np.ravel(high)
    half = scipy.special.ndtri(0.5 + 0.5 * interval) * np.ravel(marginal.sd)
    return np.ravel(marginal.mean) - half, np.ravel(marginal.mean) + half


def labels(shape: tuple[int, ...], limit: int = SHOWN) -> list[str]:
    """The places of the first elements: "2" or "0, 1"."""
    indices = [np.unravel_index(i, shape) for i in range(min(int(np.prod(shape)), limit))]
    return [", ".join(map(str, index)) for index in indices]


def class_probabilities(mean: np.ndarray, boolean: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """A row of probabilities for each element of a discrete variable, and the names of its values."""
    table = np.stack([1.0 - mean, mean], axis=-1) if boolean else mean
    values = ("false", "true") if boolean else tuple(map(str, range(table.shape[-1])))
    return table.reshape(-1, table.shape[-1]), values
