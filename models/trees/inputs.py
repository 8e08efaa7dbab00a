"""A tree as data of the model `cavity.models.diffusion_tree`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...factors.errors import DataError
from .prior import TreePrior, log_structure, tables
from .tree import ORIGIN, Tree


def inputs(tree: Tree, prior: TreePrior | None = None) -> dict[str, Any]:
    """The inputs `parent`, `length`, `first` and `tip` of the model, and its observed `waiting`.

    Args:
        tree: of two leaves at least, with branches of positive length.
        prior: its divergence function gives `waiting`; a learned `rate` is a factor of it, the parameter c itself where
            the prior has c = 1 (the default).

    Returns:
        A dictionary for `cv.infer`, to which the data of the likelihood are added, and `variance` where it is given.

    Raises:
        DataError: a tree of one leaf, or a branch of length zero, whose precision would be infinite.
    """
    if tree.n_leaves < 2:
        raise DataError("A tree of one leaf has no branch points: the model of a tree takes two leaves at least.")
    if (flat := np.flatnonzero(tree.length <= 0.0)).size:
        raise DataError(
            f"The branch above node {flat[0]} has length zero, and Gaussian factors along it an infinite precision. "
            "Make its two ends one branch point, or move them apart."
        )
    points = np.arange(tree.n_leaves, tree.n_nodes)
    divergence, harmonic = _divergence(prior), tables(prior or TreePrior(), tree.n_leaves).harmonic
    above = np.where(tree.parent == ORIGIN, 0.0, tree.depth[tree.parent])[points]
    passed = divergence.cumulative(tree.depth[points]) - divergence.cumulative(above)
    return {
        "parent": np.where(tree.parent == ORIGIN, np.arange(tree.n_nodes), tree.parent),
        "length": tree.length,
        "first": float(tree.time[tree.top]),
        "tip": np.arange(tree.n_leaves),
        "waiting": passed * harmonic[tree.count[points] - 1],
    }


def structure(tree: Tree, prior: TreePrior | None = None) -> dict[str, Any]:
    """The inputs of `diffusion_times`: the structure of a tree of two leaves at least, its times are not used.

    Raises DataError for a tree of one leaf.
    """
    if tree.n_leaves < 2:
        raise DataError("A tree of one leaf has no branch points: the model of a tree takes two leaves at least.")
    points = np.arange(tree.n_leaves, tree.n_nodes)
    above = tree.parent - tree.n_leaves
    pairs = []
    for point in range(len(points)):
        at = point
        while at >= 0:
            pairs.append((point, at))
            at = above[points[at]]
    return {
        "parent": np.where(above[points] < 0, np.arange(len(points)), above[points]),
        "top": tree.top - tree.n_leaves,
        "above": above[: tree.n_leaves],
        "descendant": np.array(pairs)[:, 0],
        "ancestor": np.array(pairs)[:, 1],
        "share": tables(prior or TreePrior(), tree.n_leaves).harmonic[tree.count[points] - 1],
    }


def log_constant(tree: Tree, prior: TreePrior | None = None) -> float:
    """What the model's evidence leaves out of the log joint density of tree, depths and data: the structure's factors,
    and the log of the divergence function at each branch point, per unit of depth.

    `posterior.log_evidence + log_constant(tree, prior)` is the log density of data and tree, with the rate and the
    variance integrated out where they are learned.
    """
    depth = tree.depth[tree.n_leaves :]
    return log_structure(tree, prior or TreePrior()) + float(np.log(_divergence(prior).intensity(depth)).sum())


def _divergence(prior: TreePrior | None):
    return (prior or TreePrior()).divergence
