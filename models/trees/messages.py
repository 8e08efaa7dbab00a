"""Gaussian messages about locations on a tree: the one definition, which the kernels of both back ends compute faster.

A message is the mean and the variance of a Gaussian: 0 for a location that is known exactly, infinite where nothing is
known. Three rules make everything. Through a branch a message gets wider by the branch's variance (its length, where
the diffusion variance is 1); two messages about one location make one, their normalised product (`meet`); and meeting
adds the log density of their difference to the log evidence (`log_normal`). `sweep` applies them over a tree.

The rules take arrays of NumPy or of JAX: the JAX kernels call them inside their loops. The numba kernels write them out
for single numbers, a large finite variance standing for an infinite one (`numba_kernels.messages`). Blocks of the
engine pass such messages as precisions, between vectors with any linear link (`engine.blocks.chain.gaussian_chain`),
where no location is known exactly. tests/trees/test_messages.py holds all of them to `sweep`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .shapes.arrays import Leaves, Messages
from .tree import Tree


def meet(mean: Any, variance: Any, other_mean: Any, other_variance: Any) -> tuple[Any, Any]:
    """Mean and variance of the normalised product of two Gaussians, flat where both are."""
    own, other = 1.0 / variance, 1.0 / other_variance
    both = own + other
    share = _library(both).where(both > 0.0, other / both, 0.0)
    return mean + share * (other_mean - mean), 1.0 / both


def squared(difference: Any, entries: int) -> Any:
    """Squares of the last axis: its sum, in one entry, or each column's where every column has a variance."""
    square = difference * difference
    return square if entries == difference.shape[-1] else square.sum(-1, keepdims=True)


def log_normal(distance: Any, variance: Any, columns: Any) -> Any:
    """Sum over the last axis of log N(difference; 0, variance), `columns` columns in all; 0 for infinite variances."""
    library = _library(variance)
    known = variance < math.inf
    safe = library.where(known, variance, 1.0)
    each = distance / safe + (columns / variance.shape[-1]) * library.log(2.0 * math.pi * safe)
    return -0.5 * library.where(known, each, 0.0).sum(-1)


def sweep(tree: Tree, leaves: Leaves, wider: np.ndarray | None = None) -> Messages:
    """Messages up and down a tree, and the log evidence, by the rules alone.

    Args:
        tree: the structure, and its times where `wider` is not given.
        leaves: Gaussians about the leaves' locations.
        wider: (nodes,) positive variance of the branch above each node; by default the time along it.

    Returns:
        `Messages` by number of node: row v of the upward ones is what the leaves below v say of v itself, row v of the
        downward ones what all else says of the parent of v.
    """
    wider = (tree.length if wider is None else wider)[:, None]
    (rows, columns), entries = leaves.mean.shape, leaves.variance.shape[1]
    up_mean, down_mean = np.zeros((2, tree.n_nodes, columns))
    up_variance, down_variance = np.zeros((2, tree.n_nodes, entries))
    up_mean[:rows], up_variance[:rows] = leaves.mean, leaves.variance
    evidence = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):  # of nothing known, and of what is known exactly
        for node in tree.order:
            if node >= tree.n_leaves:
                first, *others = tree.children[node]
                mean, variance = up_mean[first], up_variance[first] + wider[first]
                for child in others:
                    other = up_variance[child] + wider[child]
                    evidence += log_normal(squared(mean - up_mean[child], entries), variance + other, columns)
                    mean, variance = meet(mean, variance, up_mean[child], other)
                up_mean[node], up_variance[node] = mean, variance
        top = tree.top  # above which only the origin is known, exactly
        evidence += log_normal(squared(up_mean[top], entries), up_variance[top] + wider[top], columns)
        for node in tree.order[::-1]:
            for child in tree.children[node]:
                mean, variance = down_mean[node], down_variance[node] + wider[node]
                for other in tree.children[node]:
                    if other != child:
                        mean, variance = meet(mean, variance, up_mean[other], up_variance[other] + wider[other])
                down_mean[child], down_variance[child] = mean, variance
    return Messages(up_mean, up_variance, down_mean, down_variance, float(evidence))


def _library(array: Any) -> Any:
    """`numpy` or `jax.numpy`."""
    return array.__array_namespace__()
