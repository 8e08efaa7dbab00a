"""Expectation propagation of binary columns on a given tree: their probit factors as Gaussians, all moved at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from .arrays import Arrays, Leaves, Messages, check_rows
from .backend import kernels

if TYPE_CHECKING:
    from .leaves import Data

FAR = 50.0  # standard deviations beyond which a series is exact to 1e-11
WEAK = 1e-12  # a Gaussian of a smaller precision is none: its mean would be rounding
HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


class Sites(NamedTuple):
    """Leaves whose binary entries hold Gaussians, and what these leave out.

    Attributes:
        leaves: the leaves, to be swept like any others.
        correction: `sum log (Z / N(site mean; cavity mean, cavity variance + site variance))` over binary entries. The
            log evidence of EP is that of a sweep over `leaves` plus this; on a changed tree with the sites kept it is a
            constant.
        messages: those of a sweep over `leaves`.
        change: the largest step that the sites still had to go, in natural parameters: 0 at the fixed point.
    """

    leaves: Leaves
    correction: float
    messages: Messages
    change: float


def fit_sites(
    arrays: Arrays,
    data: Data,
    leaves: Leaves,
    variance: Any = 1.0,
    *,
    sweeps: int = 4,
    tolerance: float = 1e-9,
    damping: float = 1.0,
    sweep: Callable[[Arrays, Leaves], Messages] | None = None,
) -> Sites:
    """Expectation propagation of the binary entries, given the tree: each sweep moves all sites in parallel.

    The factor `Phi(y sd x)` of a binary entry, y = +-1, becomes the Gaussian that gives mean and variance of the
    leaf's location their values under cavity times factor; the cavity is the message from the leaf's parent, wider by
    the branch. The probit factor is log-concave, so sites have positive precisions at every step. Without binary
    columns one sweep is made and nothing is changed.

    Args:
        arrays: the tree.
        data: the table.
        leaves: from `to_leaves`, or those found on a similar tree: a warm start.
        variance: diffusion variance, as given to `to_leaves`.
        sweeps: at most so many, the last one for the correction alone: 4 after a change of the tree, 30 from the start.
        tolerance: no further sweeps where the sites have a smaller step to go.
        damping: share of the step that is gone, above 0 and at most 1.
        sweep: of a back end; by default that of the JAX kernels.

    Returns:
        `Sites`. At the fixed point the gradients of a back end's `joint_gradient` at these leaves are those of the EP
        evidence, also that of the scales.

    Raises:
        DataError: a tree and leaves of different sizes.

    Source: minka2001ep.
    """
    check_rows(arrays, leaves)
    sweep = kernels("jax").sweep if sweep is None else sweep
    columns = slice(None) if data.binary.all() else data.binary
    signs = data.signs
    if not signs.size:
        return Sites(leaves, 0.0, sweep(arrays, leaves), 0.0)
    sd = np.sqrt(np.broadcast_to(np.asarray(variance, dtype=np.float64), data.binary.shape)[columns])
    # The time from its parent to each leaf.
    length = np.exp(-np.asarray(arrays.depth)[np.asarray(arrays.parent)[: len(signs)]])[:, None]
    while True:
        messages = sweep(arrays, leaves)
        mean = np.asarray(messages.down_mean)[: len(signs)][:, columns]
        spread = np.asarray(messages.down_variance)[: len(signs)][:, columns] + length
        old_mean, old_spread = leaves.mean[:, columns], leaves.variance[:, columns]
        log_z, precision, shift = probit_sites(signs, sd, mean, spread)
        old_precision = 1.0 / old_spread
        step, turn = precision - old_precision, shift - old_precision * old_mean
        change = max(np.abs(step).max(), np.abs(turn).max())
        sweeps -= 1
        if sweeps <= 0 or change < tolerance:
            correction = float(log_z.sum()) - _log_density(old_mean, old_spread, mean, spread)
            return Sites(leaves, correction, messages, float(change))
        new = _gaussians(old_precision + damping * step, old_precision * old_mean + damping * turn)
        if isinstance(columns, slice):
            leaves = new
        else:
            leaves = Leaves(leaves.mean.copy(), leaves.variance.copy())
            leaves.mean[:, columns], leaves.variance[:, columns] = new


def first_sites(signs: np.ndarray, sd: np.ndarray) -> Leaves:
    """The sites of leaves that are alone on their trees: their cavities are N(0, 1)."""
    return _gaussians(*probit_sites(signs, sd, np.zeros_like(signs), np.ones_like(signs))[1:])


def probit_sites(
    signs: np.ndarray, sd: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log Z = log Phi(u), and precision and precision times mean of the EP sites, of the factors `Phi(sign sd x)` under
    cavities N(x; mean, variance).

    With `u = sign sd mean / sqrt(1 + sd^2 variance)`, `r = phi(u) / Phi(u)` and `w = r (u + r)`, in (0, 1), the
    precision is `sd^2 w / (1 + sd^2 variance (1 - w))`. Sign 0 is a missing entry: log Z and precision 0.
    """
    seen, scaled = np.abs(signs), sd * mean
    noise = 1.0 + sd * sd * variance
    root = np.sqrt(noise)
    u = signs * scaled / root
    square = u * u
    log_z = log_ndtr(u)
    ratio = np.exp(-HALF_LOG_2PI - 0.5 * square - log_z)
    inverse = 1.0 / np.maximum(square, FAR**2)
    far = 1.0 - inverse * (1.0 - inverse * (6.0 - 50.0 * inverse))  # u + r would cancel there
    weight = np.where(u < -FAR, far, ratio * (u + ratio)) * seen
    below = noise - (noise - 1.0) * weight
    return log_z * seen, sd * sd * weight / below, sd * (scaled * weight + signs * ratio * root) / below


def _gaussians(precision: np.ndarray, shift: np.ndarray) -> Leaves:
    weak = precision < WEAK
    precision = np.where(weak, 1.0, precision)
    return Leaves(np.where(weak, 0.0, shift / precision), np.where(weak, np.inf, 1.0 / precision))


def _log_density(at: np.ndarray, site_variance: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> float:
    """The sum of log N(at; mean, variance + site variance); a site of infinite variance counts 1."""
    flat = np.isinf(site_variance)
    spread = np.where(flat, 1.0 / (2.0 * np.pi), variance + site_variance)
    error = np.where(flat, 0.0, at - mean)
    return -float((HALF_LOG_2PI + 0.5 * np.log(spread) + 0.5 * error * error / spread).sum())
