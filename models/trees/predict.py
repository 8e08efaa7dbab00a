"""The predictive density of new rows given trees: where a new path leaves each tree, and how far it gets from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr

from ...engine.mcmc.keys import generator
from ...factors.errors import DataError
from .fitted_tree import FittedTree
from .likelihoods.likelihood import ColumnRows, SharedRows
from .shapes.branches import Branches, bridge

_STAY = np.array([1.0, 0.8, 0.6, 0.4, 0.2, 0.08, 0.02, 2e-3, 0.0])  # cells of a branch: shares that leave later
_SEARCH, _BEST = 16, 12
_NODE, _WEIGHT = np.polynomial.legendre.leggauss(48)
_NEGLIGIBLE = 30.0  # nats below the largest value of an integrand
_BLOCK = 1 << 20  # numbers in the largest temporary array


class Mixture(NamedTuple):
    """A mixture of K Gaussians with diagonal covariances.

    Attributes:
        weight: (K,), with sum 1.
        mean, variance: (K, D) each.
        node: (K,) row of the node at the end of the branch that each one belongs to.
    """

    weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    node: np.ndarray


def log_predictive(fitted: FittedTree | Sequence[FittedTree], rows: Any, log_weights: Any = None) -> np.ndarray:
    """Log density of new rows, `log sum_k w_k p(row | tree k)`, each row by itself.

    Given a tree, a new point follows the paths of the leaves as the prior says, leaves them at some depth of some
    branch (or at a branch point), and diffuses to time 1 by itself; the locations of the leaves' paths are those
    given the data. The density is a mixture over branches of integrals over depth: 8 cells on every branch, and on
    the 12 branches that matter most to a row 48 nodes where the integrand is not negligible. Tested to be within 0.01
    nats of dense quadrature. A row that equals a leaf without noise has an infinite density where `D >= 2 rate`; what
    is returned is the finite one with depths cut off 40 below the start of the branch.

    Args:
        fitted: one tree, or several: the K best ones, or draws.
        rows: (rows, D) in the units of the data; NaN marks missing entries, which are marginalised.
        log_weights: (K,) log weights of the trees, up to a constant; equal by default.

    Returns:
        (rows,) natural logarithms; a probability for binary columns; 0 for a row that is missing altogether.

    Raises:
        DataError: rows of another width, infinite, or other than 0 and 1 in a binary column.

    Source: knowles2015pitman, knowles2012thesis.
    """
    trees, weight = _weighted(fitted, log_weights)
    each = np.stack([_of_tree(tree, _checked(rows, tree)) for tree in trees])
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(each + np.log(weight)[:, None], axis=0))


def predictive_mixture(fitted: FittedTree, cells: int = 16) -> Mixture:
    """The predictive distribution of one tree as an explicit mixture of Gaussians, to draw or to hand on.

    Every branch has `cells` Gaussians, at the middles of equally probable depths of divergence, and every branch
    point that can have one more child has one. Binary columns hold the location times `scale`, before `Phi`.
    """
    branches = fitted.branches
    depth, log_weight = _cells(branches, np.linspace(1.0, 0.0, cells + 1))
    weight, variance = bridge(branches, depth)
    mean = weight * branches.low_mean[:, None] + (1.0 - weight) * branches.high_mean[:, None]
    variance = variance + np.exp(-depth)[..., None] + fitted.noise * ~fitted.binary
    keep = np.isfinite(log_weight)
    return Mixture(
        np.exp(log_weight[keep]),
        mean[keep] * fitted.scale,
        np.broadcast_to(variance, mean.shape)[keep] * fitted.scale**2,
        np.broadcast_to(branches.node[:, None], depth.shape)[keep],
    )


def sample_predictive(
    fitted: FittedTree | Sequence[FittedTree], n: int, key: Any, log_weights: Any = None
) -> np.ndarray:
    """(n, D) new rows, exact draws: a tree, a path through it, a depth of divergence, a location, its noise.

    Args:
        fitted: one tree or several.
        n: how many rows.
        key: a `jax.random.key`; the same key gives the same rows.
        log_weights: (K,) log weights of the trees, up to a constant; equal by default.
    """
    random = generator(key)
    trees, weight = _weighted(fitted, log_weights)
    chosen = random.choice(len(trees), size=n, p=weight)
    rows = np.empty((n, trees[0].columns))
    for k, tree in enumerate(trees):
        rows[chosen == k] = _draws(tree, int((chosen == k).sum()), random)
    return rows


def _weighted(fitted: Any, log_weights: Any) -> tuple[list[FittedTree], np.ndarray]:
    trees = [fitted] if isinstance(fitted, FittedTree) else list(fitted)
    if not trees:
        raise DataError("Prediction needs at least one fitted tree; found none.")
    log_weight = np.zeros(len(trees)) if log_weights is None else np.asarray(log_weights, dtype=np.float64)
    if log_weight.shape != (len(trees),) or np.isnan(log_weight).any() or not np.isfinite(log_weight.max()):
        raise DataError(f"log_weights holds one number for each of the {len(trees)} trees; found {log_weights!r}.")
    return trees, np.exp(log_weight - np.asarray(logsumexp(log_weight)))


def _checked(rows: Any, fitted: FittedTree) -> np.ndarray:
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != fitted.columns:
        raise DataError(f"New rows have the shape (rows, {fitted.columns}), as the tree's data; found {rows.shape}.")
    if np.isinf(rows).any():
        raise DataError("New rows are finite, or NaN where missing; found an infinite entry.")
    binary = rows[:, fitted.binary]
    if (odd := binary[~np.isin(binary, (0.0, 1.0)) & ~np.isnan(binary)]).size:
        raise DataError(f"Binary columns hold 0, 1, or NaN where missing; found {odd[0]:.6g}.")
    return rows


def _cells(branches: Branches, stay: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depths and log weights (B, F + 1): the F cells between shares that leave later, then the ends of branches.

    A cell is represented by the depth that halves its mass; the end of a branch is a branch point where a new child
    may start.
    """
    stays = np.exp(branches.log_stay(branches.end))
    middle = 0.5 * (stay[:-1] + stay[1:])
    depth = branches.depth_at(1.0 - (1.0 - stays[:, None]) * (1.0 - middle))
    with np.errstate(divide="ignore"):
        log_leave = np.log1p(-stays)[:, None] + np.log(stay[:-1] - stay[1:])
    log_join = branches.log_stay(branches.end) + branches.log_join
    log_weight = branches.log_enter[:, None] + np.concatenate([log_leave, log_join[:, None]], axis=1)
    return np.concatenate([depth, branches.last[:, None]], axis=1), log_weight


def _of_tree(fitted: FittedTree, rows: np.ndarray) -> np.ndarray:
    """(rows,) log densities given one tree, a block of rows at a time."""
    branches = fitted.branches
    depth, log_weight = _cells(branches, _STAY)
    if not np.isfinite(log_weight[:, -1]).any():
        depth, log_weight = depth[:, :-1], log_weight[:, :-1]
    best = min(_BEST, len(branches.node))
    size = max(1, _BLOCK // (depth.size + (1 if fitted.shared else fitted.columns) * best * len(_NODE)))
    result = np.empty(len(rows))
    for begin in range(0, len(rows), size):
        block = (SharedRows if fitted.shared else ColumnRows)(fitted, rows[begin : begin + size])
        by_branch = _log_sum(block.everywhere(depth, log_weight))
        pick = np.argpartition(-by_branch, best - 1, axis=1)[:, :best]
        np.put_along_axis(by_branch, pick, _refined(branches, block, pick), axis=1)
        result[begin : begin + size] = _log_sum(by_branch) + block.log_scale
    return result


def _log_sum(values: np.ndarray) -> np.ndarray:
    """Log of the sum of exponentials over the last axis."""
    largest = values.max(axis=-1, keepdims=True)
    return np.log(np.exp(values - largest).sum(axis=-1)) + largest[..., 0]


def _refined(branches: Branches, block: SharedRows | ColumnRows, pick: np.ndarray) -> np.ndarray:
    """The log integrals over the picked branches (rows, K) by Gauss' rule where the integrand matters."""

    def log_integrand(depth: np.ndarray) -> np.ndarray:
        log_leave = np.log(branches.divergence.intensity(depth)) + log_rate + branches.log_stay(depth, pick)
        return log_density(depth) + log_leave

    log_density, log_rate = block.near(pick), np.log(branches.rate[pick])[..., None]
    low, high = branches.start[pick], branches.last[pick]
    share = np.linspace(0.0, 1.0, _SEARCH)
    for _ in range(3):
        depth = low[..., None] + (high - low)[..., None] * share
        value = log_integrand(depth)
        matters = value >= value.max(axis=-1, keepdims=True) - _NEGLIGIBLE
        first, last = matters.argmax(axis=-1), _SEARCH - 1 - matters[..., ::-1].argmax(axis=-1)
        low, high = (
            np.take_along_axis(depth, np.clip(place, 0, _SEARCH - 1)[..., None], axis=-1)[..., 0]
            for place in (first - 1, last + 1)
        )
    half = 0.5 * (high - low)[..., None]
    with np.errstate(divide="ignore"):
        inside = log_integrand(low[..., None] + half * (1.0 + _NODE)) + np.log(half * _WEIGHT)
    end = log_density(branches.last[pick][..., None]) + branches.log_end[pick][..., None]
    return branches.log_enter[pick] + _log_sum(np.concatenate([inside, end], axis=-1))


def _draws(fitted: FittedTree, n: int, random: np.random.Generator) -> np.ndarray:
    branches = fitted.branches
    log_stay = branches.log_stay(branches.end)
    leave, join = -np.expm1(log_stay), np.exp(log_stay + branches.log_join)
    mass = np.exp(branches.log_enter) * np.stack([leave, join])
    chosen = random.choice(mass.size, size=n, p=mass.ravel() / mass.sum())
    joins, pick = np.divmod(chosen, len(branches.node))
    depth = branches.depth_at(1.0 - random.random((len(pick), 1)) * leave[pick][:, None], pick)
    depth = np.where(joins[:, None] == 1, branches.last[pick][:, None], depth)
    weight, variance = bridge(branches, depth, pick)
    weight, variance = weight[:, 0], variance[:, 0] + np.exp(-depth) + fitted.noise * ~fitted.binary
    mean = weight * branches.low_mean[pick] + (1.0 - weight) * branches.high_mean[pick]
    rows = fitted.scale * (mean + np.sqrt(variance) * random.standard_normal(mean.shape))
    return np.where(fitted.binary, random.random(rows.shape) < ndtr(rows), rows)
