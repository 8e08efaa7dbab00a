"""What many trees agree on: probabilities of clades, and the tree of those that most trees have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....factors.errors import DataError
from ..tree import ORIGIN, Tree


class Consensus(NamedTuple):
    """A consensus of trees.

    Attributes:
        tree: its branch points are the clades that most trees have. Each has, as the time left to it, the average of
            1 - time over the trees that have the clade, and is not before its parent.
        support: (nodes,) probability of each node's clade; 1 for leaves.
    """

    tree: Tree
    support: np.ndarray


def clade_probabilities(trees: Sequence[Tree], weights: Any = None) -> dict[frozenset[int], float]:
    """Probability of each clade, a set of leaf numbers, that occurs in some tree, most probable first.

    Args:
        trees: trees of the same leaves, in the same order.
        weights: (trees,) non-negative, in any scale; equal by default, as for draws of a Markov chain.

    Raises:
        DataError: no trees, trees of different leaves, or weights that are none.
    """
    found = {clade: share for clade, (share, _) in _tally(trees, weights).items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def consensus(trees: Sequence[Tree], weights: Any = None, threshold: float = 0.5) -> Consensus:
    """The tree of the clades whose probability is above a threshold: the majority-rule consensus.

    Clades of probability above one half never overlap, since some tree has any two of them.

    Args:
        trees, weights: as in `clade_probabilities`.
        threshold: at least 0.5, below 1.

    Raises:
        DataError: as `clade_probabilities`, or a threshold out of range.
    """
    if not 0.5 <= threshold < 1.0:
        raise DataError(
            f"The threshold is at least 0.5 and below 1; found {threshold!r}: clades below one half can overlap."
        )
    tally = _tally(trees, weights)
    n, everything = trees[0].n_leaves, frozenset(range(trees[0].n_leaves))
    if n == 1:
        return Consensus(trees[0], np.ones(1))
    chosen = [clade for clade, (share, _) in tally.items() if share > threshold or clade == everything]
    chosen.sort(key=len)
    parent, root = [ORIGIN] * (n + len(chosen)), np.arange(n)  # root: the node so far on top of each leaf
    for node, clade in enumerate(chosen, start=n):
        members = np.fromiter(clade, dtype=np.int64)
        for below in np.unique(root[members]):
            parent[below] = node
        root[members] = node
    depth = np.concatenate([np.full(n, np.inf), [-np.log(tally[clade][1] / tally[clade][0]) for clade in chosen]])
    for node in range(n + len(chosen) - 2, n - 1, -1):  # parents come after their children
        depth[node] = max(depth[node], depth[parent[node]])
    support = np.concatenate([np.ones(n), [min(tally[clade][0], 1.0) for clade in chosen]])
    return Consensus(Tree(np.array(parent), depth, trees[0].names), support)


def _tally(trees: Sequence[Tree], weights: Any) -> dict[frozenset[int], tuple[float, float]]:
    """For each clade, the weight of the trees that have it, and that weight times 1 - time, summed over them."""
    if not trees:
        raise DataError("A consensus takes at least one tree; found none.")
    share = np.ones(len(trees)) if weights is None else np.asarray(weights, dtype=np.float64)
    if share.shape != (len(trees),) or not np.isfinite(share).all() or (share < 0.0).any() or share.sum() == 0.0:
        raise DataError(f"Weights are one non-negative number for each of {len(trees)} trees, not all zero.")
    if other := [i for i, tree in enumerate(trees) if tree.names != trees[0].names]:
        raise DataError(f"All trees have the same leaves in the same order; tree {other[0]} differs from the first.")
    tally: dict[frozenset[int], tuple[float, float]] = {}
    for tree, weight in zip(trees, share / share.sum(), strict=True):
        left = np.maximum(np.exp(-tree.depth[tree.n_leaves :]), np.finfo(np.float64).tiny)
        for clade, time_left in zip(tree.clades, left, strict=True):
            so_far, left_so_far = tally.get(clade, (0.0, 0.0))
            tally[clade] = so_far + weight, left_so_far + weight * time_left
    return {clade: entry for clade, entry in tally.items() if entry[0] > 0.0}
