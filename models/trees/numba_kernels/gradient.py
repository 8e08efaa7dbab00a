"""Both sweeps of messages, and the log joint density with its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..prior import Tables
from ..shapes.arrays import Arrays, Leaves, Messages
from .jit import FLAT, called, kernel
from .messages import cavity, sweep_up
from .prior import add_prior_gradient, log_prior, prior_of
from .state import exact, load, preorder, whole


@kernel
def both_sweeps(arrays: Any, leaves: Any) -> Any:
    """A state with upward messages, the downward ones, and the log evidence."""
    s = load(arrays, leaves)
    rows, columns = s.mean.shape
    order = np.empty(rows, np.int64)
    n = preorder(s, order)
    evidence = sweep_up(s, order, n)
    mean, variance = np.zeros((rows, columns)), np.zeros((rows, s.variance.shape[1]))
    for i in range(n):
        cavity(s, mean, variance, s.parent[order[i]], order[i], order[i])
    return s, mean, variance, evidence


@called
def add_evidence_gradient(s: Any, order: Any, n: Any, mean: Any, variance: Any, by_depth: Any, by_scale: Any) -> Any:
    """Sweep down, and add the derivatives of the log evidence; apart, so that its loop counts no references."""
    columns, parts = s.mean.shape[1], s.variance.shape[1]
    for i in range(n):
        v = order[i]
        u, length = s.parent[v], s.length[v]
        cavity(s, mean, variance, u, v, v)
        slope = 0.0  # of the log evidence in the length of this branch
        if parts > 1:
            for d in range(columns):
                spread = s.variance[v, d] + variance[v, d] + length
                one = 0.5 * ((s.mean[v, d] - mean[v, d]) ** 2 / spread - 1.0) / spread
                one = one if spread < FLAT else 0.0
                slope += one
                by_scale[d] += 2.0 * length * one
        else:
            spread = s.variance[v, 0] + variance[v, 0] + length
            if spread < FLAT:
                inverse, square = 1.0 / spread, 0.0
                weight = length * inverse * inverse
                for d in range(columns):
                    apart = (s.mean[v, d] - mean[v, d]) ** 2
                    square += apart
                    by_scale[d] += weight * apart
                slope = 0.5 * (square * inverse - columns) * inverse
                for d in range(columns):
                    by_scale[d] -= length * inverse
        by_depth[v] += slope * s.rest[v]
        by_depth[u] -= slope * s.rest[u]


@kernel
def value_and_gradient(arrays: Any, leaves: Any, prior: Any) -> Any:
    """Log joint, its derivatives in depths, and those in the logs of the columns' scales."""
    s = load(arrays, leaves)
    rows, columns = s.mean.shape
    parts = s.variance.shape[1]
    order = np.empty(rows, np.int64)
    n = preorder(s, order)
    joint = sweep_up(s, order, n) + log_prior(s, prior)
    mean, variance = np.zeros((rows, columns)), np.zeros((rows, parts))
    by_depth, by_scale = np.zeros(rows), np.zeros(columns)
    add_evidence_gradient(s, order, n, mean, variance, by_depth, by_scale)
    add_prior_gradient(s, prior, by_depth)
    by_depth[rows - 1] = 0.0
    return joint, by_depth, by_scale


def sweep(arrays: Arrays, leaves: Leaves) -> Messages:
    """Upward and downward messages about locations, and the log evidence.

    Args:
        arrays: a tree.
        leaves: Gaussians of the leaves, in units where the diffusion variance is 1.

    Source: knowles2015pitman.
    """
    s, mean, variance, evidence = both_sweeps(whole(arrays), exact(leaves))
    ups, downs = np.where(s.variance < FLAT, s.variance, np.inf), np.where(variance < FLAT, variance, np.inf)
    return Messages(s.mean, ups, mean, downs, np.float64(evidence))


def joint_gradient(arrays: Arrays, leaves: Leaves, tables: Tables) -> tuple[float, np.ndarray, np.ndarray]:
    """Log joint density of tree, divergence times and leaves, with derivatives.

    `dlog p / dlength = (|m - m'|^2 / S - 1) / (2 S)` per column, m and m' the messages from the two ends of a branch
    and S the sum of their variances and its length: exact after one upward and one downward sweep.

    Args:
        arrays: a tree.
        leaves: Gaussians of the leaves, in units where the diffusion variance is 1.
        tables: of the prior.

    Returns:
        The log joint with respect to depths; (2N,) derivatives in the depths of branch points, 0 elsewhere; (D,)
        derivatives in the log of each column's standard deviation, that of the data divided by it, Jacobian included.
    """
    return value_and_gradient(whole(arrays), exact(leaves), prior_of(tables))
