"""Predictive densities of the components of a Gaussian mixture: Student's t, in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from ...compiler.data.keys import joint_belief
from ...factors.families import NormalGamma, NormalWishart


class Components(NamedTuple):
    """What is predicted of a new row by component: Student-t distributions, and their weights.

    Fully dependent coordinates (`square` shaped (k, d, d)) or independent ones (k, d). `spread` is the mean of the
    covariance, shaped as scikit-learn has it for its kind.
    """

    weight: np.ndarray
    freedom: np.ndarray
    centre: np.ndarray
    square: np.ndarray
    spread: np.ndarray


def components(posterior: Any, covariance: str) -> Components:
    """The components of a fitted `gaussian_mixture`.

    Where means and precisions have a belief each (tied, spherical), the mean's covariance is taken to be its part of
    1 / precision, as it is given the precision.
    """
    weight = posterior["weights"].mean
    if covariance in ("full", "diag"):
        return _of_pairs(weight, posterior.families[joint_belief(("mean", "precision"))])
    centre, precision = posterior["mean"].mean, posterior["precision"].family
    if covariance == "spherical":
        shape, rate = np.asarray(precision.shape), np.asarray(precision.rate)
        share = posterior["mean"].variance.mean(axis=1) * shape / rate
        square = (rate / shape * (1.0 + share))[:, None, None] * np.eye(centre.shape[1])
        return Components(weight, 2.0 * shape, centre, square, rate / (shape - 1.0))
    size, dof = centre.shape[1], float(precision.dof)
    rate = np.linalg.inv(precision.scale)
    share = np.trace(posterior["mean"].covariance @ (dof * np.asarray(precision.scale)), axis1=1, axis2=2) / size
    free = np.full(len(weight), dof - size + 1.0)
    square = rate / free[0] * (1.0 + share)[:, None, None]
    return Components(weight, free, centre, square, rate / (dof - size - 1.0))


def _of_pairs(weight: np.ndarray, pair: NormalGamma | NormalWishart) -> Components:
    multiple = -2.0 * np.asarray(pair.negative_half_multiple)
    if isinstance(pair, NormalGamma):
        centre = np.asarray(pair.scaled_mean) / multiple
        shape = np.asarray(pair.shape_less_half) + 0.5
        rate = -np.asarray(pair.negative_rate) - 0.5 * multiple * centre**2
        return Components(weight, 2.0 * shape, centre, rate / shape * (1.0 + 1.0 / multiple), rate / (shape - 1.0))
    centre, size = np.asarray(pair.scaled_mean) / multiple[:, None], np.shape(pair.scaled_mean)[-1]
    dof = 2.0 * np.asarray(pair.log_det_coefficient) + size
    outer = multiple[:, None, None] * centre[:, :, None] * centre[:, None, :]
    rate, free = -2.0 * np.asarray(pair.negative_half_matrix) - outer, dof - size + 1.0
    square = rate * ((1.0 + 1.0 / multiple) / free)[:, None, None]
    return Components(weight, free, centre, square, rate / (free - 2.0)[:, None, None])


def log_densities(found: Components, x: np.ndarray) -> np.ndarray:
    """The log weight and density (rows, k) of each component at the rows of `x` (rows, d)."""
    away = x[:, None, :] - found.centre
    with np.errstate(divide="ignore"):
        start = np.log(found.weight)
    if found.square.ndim == 2:
        freedom, square = found.freedom, found.square
        own = gammaln(0.5 * (freedom + 1.0)) - gammaln(0.5 * freedom) - 0.5 * np.log(np.pi * freedom * square)
        return start + np.sum(own - 0.5 * (freedom + 1.0) * np.log1p(away**2 / (freedom * square)), axis=-1)
    size, freedom = x.shape[1], found.freedom
    root = np.linalg.cholesky(found.square)
    scaled = np.stack([np.linalg.solve(own, part.T).T for own, part in zip(root, np.swapaxes(away, 0, 1), strict=True)])
    length = np.sum(scaled**2, axis=-1).T
    log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    own = gammaln(0.5 * (freedom + size)) - gammaln(0.5 * freedom) - 0.5 * size * np.log(np.pi * freedom) - log_det
    return start + own - 0.5 * (freedom + size) * np.log1p(length / freedom)


def draws(found: Components, number: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Rows (number, d) that are predicted, and the component of each."""
    label = np.sort(random.choice(len(found.weight), size=number, p=found.weight / found.weight.sum()))
    noise, freedom = random.standard_normal((number, found.centre.shape[1])), found.freedom[label]
    mixing = random.chisquare(freedom) / freedom
    if found.square.ndim == 2:
        return found.centre[label] + noise * np.sqrt(found.square[label] / mixing), label
    root = np.linalg.cholesky(found.square)[label]
    return found.centre[label] + np.einsum("nij,nj->ni", root, noise) / np.sqrt(mixing)[:, None], label
