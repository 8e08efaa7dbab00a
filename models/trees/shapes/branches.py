"""What a new path meets in a tree: the probability that it leaves each branch, and its location where it does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ..divergence import Divergence
from ..prior import TreePrior
from .arrays import Arrays, Messages, nodes

RANGE = 40.0  # depths below the start of a branch that are told apart: exp(-40) of the time left is below rounding


class Branches(NamedTuple):
    """The B branches of a tree as a new path meets them; a branch is numbered by its place in `node`.

    Attributes:
        node: (B,) row of the node at the end of each branch.
        start, end: (B,) depths at which it starts and ends; infinite ends for leaves.
        rate: (B,) the path leaves it with the intensity a(t) rate, if it has entered it.
        log_enter: (B,) log probability that the path enters it.
        log_join: (B,) log probability that a path starts a new child at the branch point at its end, once there.
        low_mean, high_mean: (B, D) what the leaves below say of the location at its end, all others at its start.
        low_variance, high_variance: (B, P) of these Gaussians.
        divergence: the divergence function a(t).
    """

    node: np.ndarray
    start: np.ndarray
    end: np.ndarray
    rate: np.ndarray
    log_enter: np.ndarray
    log_join: np.ndarray
    low_mean: np.ndarray
    low_variance: np.ndarray
    high_mean: np.ndarray
    high_variance: np.ndarray
    divergence: Divergence

    @property
    def last(self) -> np.ndarray:
        """(B,) depths at which branches end, or beyond which divergence counts as divergence there."""
        return np.minimum(self.end, self.start + RANGE)

    @property
    def log_end(self) -> np.ndarray:
        """(B,) log probability that a path which has entered a branch leaves it later than `last` or at its end."""
        at_end, at_last = self.log_stay(self.end), self.log_stay(self.last)
        with np.errstate(divide="ignore"):
            later = at_last + np.log(-np.expm1(at_end - at_last))
        return np.logaddexp(later, at_end + self.log_join)

    def log_stay(self, depth: np.ndarray, pick: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Log probability that a path which has entered branch `pick` has not left it at a depth.

        Args:
            depth: the shape of `pick`, and any number of axes more.
            pick: numbers of branches, by default all.
        """
        start, rate = self.start[pick], self.rate[pick]
        shape = start.shape + (1,) * (np.ndim(depth) - start.ndim)
        passed = self.divergence.cumulative(depth) - self.divergence.cumulative(start).reshape(shape)
        return -passed * rate.reshape(shape)

    def depth_at(self, stay: np.ndarray, pick: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Depths, at most `last`, until which paths that entered branch `pick` stay with probabilities (..., F)."""
        start, last, rate = self.start[pick][..., None], self.last[pick][..., None], self.rate[pick][..., None]
        with np.errstate(divide="ignore"):
            passed = -np.log(stay) / rate
        return np.clip(self.divergence.inverse(self.divergence.cumulative(start) + passed), start, last)


def of_tree(arrays: Arrays, messages: Messages, prior: TreePrior) -> Branches:
    """The branches of a tree; a new path enters branch k of a branch point with probability proportional to
    `leaves below k - discount`, and starts a new one with probability proportional to `concentration + K discount`."""
    parent, depth, count, degree = (np.asarray(part) for part in arrays)
    concentration, discount = prior.concentration, prior.discount
    node = nodes(arrays)
    above, m = parent[node], count[node].astype(np.float64)
    rate = np.exp(gammaln(m - discount) - gammaln(m + 1.0 + concentration))
    passed = prior.divergence.cumulative(depth[node]) - prior.divergence.cumulative(depth[above])
    total = np.where(degree[node] > 0, m + concentration, 1.0)

    place = np.full(len(parent), len(node))
    place[node] = np.arange(len(node))
    over = np.append(place[above], len(node))  # the branch above each branch; the last entry stands for none
    with np.errstate(invalid="ignore"):
        onward = np.where(np.isinf(depth[node]), 0.0, -passed * rate) - np.log(total)
    first = over[:-1] == len(node)
    log_enter = np.append(np.where(first, 0.0, np.log(m - discount) + np.append(onward, 0.0)[over[:-1]]), 0.0)
    for _ in range(int(np.ceil(np.log2(len(node) + 1)))):  # sums along paths, twice as many branches each time
        log_enter, over = log_enter + log_enter[over], over[over]

    more = concentration + degree[node] * discount
    full = (degree[node] == 0) | (degree[node] >= (prior.most_children or np.inf))
    log_join = np.where(full, -np.inf, np.log(np.where(full, 1.0, more)) - np.log(total))
    low_mean, low_variance, high_mean, high_variance = (np.asarray(part)[node] for part in messages[:4])
    return Branches(
        node, depth[above], depth[node], rate, log_enter[:-1], log_join, low_mean, low_variance, high_mean,
        high_variance, prior.divergence,
    )  # fmt: skip


def bridge(branches: Branches, depth: np.ndarray, pick: np.ndarray | slice = slice(None)) -> tuple:
    """The location of a path at a depth on its branch, given all leaves: `weight low_mean + (1 - weight) high_mean`.

    Args:
        depth: the shape of `pick` and one axis F more.
        pick: numbers of branches, by default all.

    Returns:
        weight, variance: (..., F, P).
    """
    start, end = branches.start[pick][..., None], branches.end[pick][..., None]
    from_start = np.exp(-start) * -np.expm1(start - depth)
    to_end = np.exp(-depth) * -np.expm1(np.minimum(depth - end, 0.0))
    high = branches.high_variance[pick][..., None, :] + from_start[..., None]
    low = branches.low_variance[pick][..., None, :] + to_end[..., None]
    known = np.isfinite(low)
    total = np.maximum(high + np.where(known, low, 0.0), np.finfo(float).tiny)
    weight = np.where(known, high / total, 0.0)
    return weight, np.where(known, weight * np.where(known, low, 0.0), high)
