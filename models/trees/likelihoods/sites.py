"""Expectation propagation of binary columns on a given tree: their probit factors as Gaussians, all moved at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ....engine.support.machine_code import Kernel
from ....factors.links.probit import probit_site
from ..backend import kernels
from ..messages import log_normal
from ..shapes.arrays import Arrays, Leaves, Messages, check_rows
from .table import Data

WEAK = 1e-12  # a Gaussian of a smaller precision is none: its mean would be rounding


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
    while True:
        messages = sweep(arrays, leaves)
        mean, spread = _cavities(arrays, messages, len(signs), columns)
        old_mean, old_spread = leaves.mean[:, columns], leaves.variance[:, columns]
        log_z, precision, shift = probit_sites(signs, sd, mean, spread)
        old_precision = 1.0 / old_spread
        step, turn = precision - old_precision, shift - old_precision * old_mean
        change = max(np.abs(step).max(), np.abs(turn).max())
        sweeps -= 1
        if sweeps <= 0 or change < tolerance:
            sites = log_normal((old_mean - mean) ** 2, old_spread + spread, signs.shape[1])
            correction = float(log_z.sum() - sites.sum())
            return Sites(leaves, correction, messages, float(change))
        new = _gaussians(old_precision + damping * step, old_precision * old_mean + damping * turn)
        leaves = _with_columns(leaves, columns, new)


def _cavities(
    arrays: Arrays, messages: Messages, rows: int, columns: slice | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns) means and variances of leaves as their parents see them."""
    length = np.exp(-np.asarray(arrays.depth)[np.asarray(arrays.parent)[:rows]])[:, None]  # from parent to leaf
    mean = np.asarray(messages.down_mean)[:rows][:, columns]
    return mean, np.asarray(messages.down_variance)[:rows][:, columns] + length


def _with_columns(leaves: Leaves, columns: slice | np.ndarray, new: Leaves) -> Leaves:
    """The leaves with other Gaussians in these columns, all where `columns` is a slice."""
    if isinstance(columns, slice):
        return new
    leaves = Leaves(leaves.mean.copy(), leaves.variance.copy())
    leaves.mean[:, columns], leaves.variance[:, columns] = new
    return leaves


def first_sites(signs: np.ndarray, sd: np.ndarray) -> Leaves:
    """The sites of leaves that are alone on their trees: their cavities are N(0, 1)."""
    return _gaussians(*probit_sites(signs, sd, np.zeros_like(signs), np.ones_like(signs))[1:])


def _probit_sites(signs: Any, sd: Any, mean: Any, variance: Any) -> tuple[Any, Any, Any]:
    site = probit_site(0.5 + 0.5 * signs, sd * mean, sd * sd * variance)
    seen = jnp.abs(signs)
    shift = (site.score + sd * mean * site.curvature) / site.ratio
    return seen * site.log_evidence, seen * sd * sd * site.curvature / site.ratio, seen * sd * shift


probit_sites = Kernel(_probit_sites)
probit_sites.__doc__ = """log Z, and precision and precision times mean of the EP sites, of the factors `Phi(sign sd x)`
under cavities N(x; mean, variance): `probit_sites(signs, sd, mean, variance)`. Sign 0 is a missing entry: log Z and
precision are 0.

The factor is that of `cv.bernoulli(cv.probit(s))`, s = sd x, and the site is the engine's, said in x.
"""


def _gaussians(precision: np.ndarray, shift: np.ndarray) -> Leaves:
    weak = precision < WEAK
    precision = np.where(weak, 1.0, precision)
    return Leaves(np.where(weak, 0.0, shift / precision), np.where(weak, np.inf, 1.0 / precision))
