"""The padded form of trees and leaves that kernels work on: topology is data, and nothing recompiles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....factors.errors import DataError
from ..tree import ORIGIN, Tree

FREE = -2  # parent of a slot that holds no node
GAP = 1e-9  # the least difference of depths along a path: orders by depth need one
FARTHEST = 600.0  # depths between which subtrees move: beyond, 1 - time nears the smallest numbers there are


class Arrays(NamedTuple):
    """A tree of up to 2 N - 1 nodes in arrays of 2 N rows: leaves 0 .. N-1, branch points and free slots N .. 2N-2, and
    the origin in row 2N - 1, which has one child.

    Sorting by depth, deepest first, gives an order in which every node comes before its parent, as long as depths
    along a path differ; free slots have depth -1 and sort last. No schedule is carried.

    Attributes:
        parent: (2N,) int32; -1 for the origin, -2 for free slots.
        depth: (2N,) float64: -log(1 - time); infinite for leaves, 0 for the origin, -1 for free slots.
        count: (2N,) int32 leaves below; N for the origin, 0 for free slots.
        degree: (2N,) int32 number of children; 0 for leaves and free slots, 1 for the origin.
    """

    parent: Any
    depth: Any
    count: Any
    degree: Any


class Leaves(NamedTuple):
    """What is known of the locations of the leaves: one Gaussian each, in units where the diffusion variance is 1.

    Attributes:
        mean: (N, D).
        variance: (N, 1) when all columns share it, or (N, D); 0 where a location is known exactly, infinite where
            nothing is (then the mean does not matter but must be finite).
    """

    mean: Any
    variance: Any


class Messages(NamedTuple):
    """Gaussian messages about locations, of one upward and one downward sweep.

    Row v of the upward ones: what the leaves below v say of the location of v itself (a leaf's row is its entry in
    `Leaves`). Row v of the downward ones: what everything else says of the location of v's PARENT; zero mean and zero
    variance where the parent is the origin. Rows of free slots and of the origin mean nothing.

    Attributes:
        up_mean, down_mean: (2N, D).
        up_variance, down_variance: (2N, P) with P = 1 or D, as in `Leaves`.
        log_evidence: () log density of the leaves' Gaussians given the tree: the log of the integral, over all
            locations, of branches and of N(mean; location, variance) for each known entry.
    """

    up_mean: Any
    up_variance: Any
    down_mean: Any
    down_variance: Any
    log_evidence: Any


class Subtree(NamedTuple):
    """A detached subtree, or a new leaf, seen from outside.

    Attributes:
        mean, variance: (D,) and (P,): what its leaves say of the location of its root, as a row of upward messages.
        depth: () of its root; infinite for a leaf.
        count: () its leaves.
    """

    mean: Any
    variance: Any
    depth: Any
    count: Any


def pack(tree: Tree) -> Arrays:
    """A tree in padded arrays; a branch point at its parent's depth goes a little below it, as orders by depth need."""
    leaves, rows = tree.n_leaves, 2 * tree.n_leaves
    parent = np.full(rows, FREE, dtype=np.int32)
    depth, count, degree = np.full(rows, -1.0), np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    parent[: tree.n_nodes] = np.where(tree.parent == ORIGIN, rows - 1, tree.parent)
    depth[: tree.n_nodes], count[: tree.n_nodes] = _apart(tree), tree.count
    degree[: tree.n_nodes] = [len(below) for below in tree.children]
    parent[-1], depth[-1], count[-1], degree[-1] = ORIGIN, 0.0, leaves, 1
    return Arrays(parent, depth, count, degree)


def nodes(arrays: Arrays) -> np.ndarray:
    """Rows that hold leaves or branch points: not free, and not the origin."""
    parent = np.asarray(arrays.parent)
    return np.flatnonzero((parent != FREE) & (parent != ORIGIN))


def check_rows(arrays: Arrays, leaves: Leaves) -> None:
    """Kernels do not look: with another number of leaves they would read beyond arrays, and return any number."""
    if len(arrays.parent) != 2 * len(leaves.mean):
        raise DataError(
            f"The tree has {len(arrays.parent) // 2} leaves, and {len(leaves.mean)} rows of data are given: each leaf "
            "of the tree is one row."
        )


def _apart(tree: Tree) -> np.ndarray:
    """Depths that differ along every path."""
    depth = tree.depth.copy()
    above = np.where(tree.parent == ORIGIN, 0.0, depth[tree.parent])
    if (depth > above).all():
        return depth
    for node in tree.order[::-1]:  # parents first
        floor = 0.0 if tree.parent[node] == ORIGIN else depth[tree.parent[node]]
        if depth[node] <= floor:
            depth[node] = floor + GAP * max(1.0, floor)
    return depth


def unpack(arrays: Arrays, names: tuple[str, ...] = ()) -> Tree:
    """The tree of padded arrays; branch points are renumbered in the order of their slots."""
    parent, depth, used = np.asarray(arrays.parent), np.asarray(arrays.depth), nodes(arrays)
    number = np.full(len(parent), ORIGIN, dtype=np.int64)
    number[used] = np.arange(len(used))
    return Tree(number[parent[used]], depth[used], names)
