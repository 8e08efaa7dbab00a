"""A tree with divergence times: data of every function of this package."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...factors.errors import DataError

ORIGIN = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree whose branch points have divergence times between 0 and 1, all leaves being at time 1.

    Nodes `0 .. n_leaves - 1` are the leaves, the others are branch points, in any order. The first branch point below
    the origin (time 0, location 0) is the top. Times are kept as depths, `depth = -log(1 - time)`: near the leaves,
    where most branch points are, depths keep their digits where times round to 1.

    Args:
        parent: (nodes,) number of the branch point above each node; -1 for the one node that hangs from the origin.
        depth: (nodes,) depth of each node, at least that of its parent; infinite for leaves, finite for branch points.
        names: names of the leaves, by default their numbers.

    Raises:
        DataError: no such tree: a cycle, a branch point with fewer than two children, a child above its parent.

    Source: knowles2015pitman.
    """

    parent: np.ndarray
    depth: np.ndarray
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parent, depth = np.array(self.parent), np.array(self.depth, dtype=np.float64)  # copies: what is cached holds
        if parent.ndim != 1 or depth.shape != parent.shape or not len(parent):
            raise DataError(
                f"A tree takes one parent and one depth for each node; found shapes {parent.shape} and {depth.shape}."
            )
        if not np.issubdtype(parent.dtype, np.integer):
            raise DataError(f"Parents are numbers of nodes; found the type {parent.dtype}. Pass integers.")
        parent = parent.astype(np.int64)
        names = tuple(str(name) for name in self.names) or tuple(str(leaf) for leaf in range(_leaves_of(parent)))
        for attribute, value in (("parent", parent), ("depth", depth), ("names", names)):
            object.__setattr__(self, attribute, value)
        self.parent.setflags(write=False)
        self.depth.setflags(write=False)
        _check(self)

    @property
    def n_leaves(self) -> int:
        """How many leaves."""
        return _leaves_of(self.parent)

    @property
    def n_nodes(self) -> int:
        """How many leaves and branch points."""
        return len(self.parent)

    @property
    def time(self) -> np.ndarray:
        """(nodes,) divergence times in [0, 1); 1 for leaves."""
        return -np.expm1(-self.depth)

    @property
    def length(self) -> np.ndarray:
        """(nodes,) time between each node and its parent, without cancellation."""
        above = np.where(self.parent == ORIGIN, 0.0, self.depth[self.parent])
        return np.exp(-above) * -np.expm1(above - self.depth)

    @functools.cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of every node; none for leaves."""
        below: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for node, above in enumerate(self.parent):
            if above != ORIGIN:
                below[above].append(node)
        return tuple(tuple(nodes) for nodes in below)

    @functools.cached_property
    def top(self) -> int:
        """The node that hangs from the origin: the first branch point, or the only leaf."""
        return int(np.flatnonzero(self.parent == ORIGIN)[0])

    @functools.cached_property
    def order(self) -> np.ndarray:
        """(nodes,) the nodes, each before its parent."""
        found, waiting = [], [self.top]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(self.children[node])
        return np.array(found[::-1])

    @functools.cached_property
    def count(self) -> np.ndarray:
        """(nodes,) leaves below each node, itself included."""
        count = np.zeros(self.n_nodes, dtype=np.int64)
        count[: self.n_leaves] = 1
        for node in self.order[:-1]:
            count[self.parent[node]] += count[node]
        return count

    @functools.cached_property
    def members(self) -> np.ndarray:
        """(nodes, leaves) whether a leaf is below a node, itself included."""
        members = np.zeros((self.n_nodes, self.n_leaves), dtype=bool)
        members[np.arange(self.n_leaves), np.arange(self.n_leaves)] = True
        for node in self.order[:-1]:
            members[self.parent[node]] |= members[node]
        return members

    @functools.cached_property
    def clades(self) -> tuple[frozenset[int], ...]:
        """The set of leaves below each branch point, in the order of the branch points."""
        return tuple(frozenset(np.flatnonzero(row).tolist()) for row in self.members[self.n_leaves :])

    @property
    def structure(self) -> frozenset[frozenset[int]]:
        """The tree without times, as a key: two trees have the same one if they have the same clades of leaf numbers,
        which is to say the same branching, however their branch points are numbered."""
        return frozenset(self.clades)

    @functools.cached_property
    def shared_time(self) -> np.ndarray:
        """(leaves, leaves) time at which two leaves part; 1 on the diagonal.

        It is the covariance of their locations where the diffusion variance is 1.
        """
        shared = np.zeros((self.n_leaves, self.n_leaves))
        time = self.time
        for node in self.order[::-1]:
            below = self.members[node]
            shared[np.ix_(below, below)] = time[node]
        return shared

    def labels(self, *, time: float | None = None, clusters: int | None = None) -> np.ndarray:
        """(leaves,) cluster of each leaf when the tree is cut, numbered by first appearance.

        Args:
            time: cut at this time: leaves that part later than it share a cluster.
            clusters: cut at the earliest time that gives at least so many clusters (a branch point with many children
                can give more).

        Raises:
            DataError: not exactly one of the two, or out of range.
        """
        if (time is None) == (clusters is None):
            raise DataError("A cut takes either time= or clusters=, one of the two.")
        if time is not None and not 0.0 <= time <= 1.0:
            raise DataError(f"A cut takes a time between 0 and 1; found {time!r}.")
        if clusters is not None and not 1 <= clusters <= self.n_leaves:
            raise DataError(
                f"A cut of {self.n_leaves} leaves gives 1 to {self.n_leaves} clusters; asked: {clusters!r}."
            )
        cut = -np.log1p(-time) if time is not None and time < 1.0 else np.inf
        if clusters is not None:
            cut = self._cut_for(clusters)
        roots = [n for n in range(self.n_nodes) if self.depth[n] >= cut and self._above(n) < cut]
        labels = np.zeros(self.n_leaves, dtype=np.int64)
        for number, node in enumerate(roots):
            labels[self.members[node]] = number
        _, first, place = np.unique(labels, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[place]

    def renamed(self, names: Sequence[Any]) -> Tree:
        """The same tree with other names of the leaves."""
        return Tree(self.parent, self.depth, tuple(str(name) for name in names))

    def _above(self, node: int) -> float:
        above = self.parent[node]
        return -1.0 if above == ORIGIN else float(self.depth[above])

    def _cut_for(self, clusters: int) -> float:
        branching = np.flatnonzero(np.isfinite(self.depth))
        found, last = 1, -1.0
        for node in branching[np.argsort(self.depth[branching], kind="stable")]:
            if found >= clusters and self.depth[node] > last:  # branch points of one depth are cut together
                return float(self.depth[node])
            found, last = found + len(self.children[node]) - 1, float(self.depth[node])
        return np.inf

    def _repr_html_(self) -> str:
        """Its branches against time, in a notebook."""
        from ...engine.html.trees import Nodes, html_of_tree

        return html_of_tree(Nodes(self.children, self.count, self.time, self.names, self.top), repr(self))

    def __repr__(self) -> str:
        points = self.n_nodes - self.n_leaves
        first = f", the first at time {self.time[self.top]:.3g}" if points else ""
        return f"Tree({self.n_leaves} leaves, {points} branch points{first})"


def _leaves_of(parent: np.ndarray) -> int:
    """Leaves come first: nodes from the first number that is somebody's parent on are branch points."""
    above = parent[parent >= 0]
    return int(above.min()) if len(above) else len(parent)


def _check(tree: Tree) -> None:
    parent, depth, leaves = tree.parent, tree.depth, tree.n_leaves
    if parent.min() < ORIGIN or parent.max() >= len(parent):
        raise DataError(f"Parents are -1 or node numbers below {len(parent)}; found {parent.min()} to {parent.max()}.")
    tops = np.flatnonzero(parent == ORIGIN)
    if len(tops) != 1:
        raise DataError(f"Exactly one node hangs from the origin (parent -1); found {len(tops)}: {tops[:5].tolist()}.")
    degree = np.bincount(parent[parent >= 0], minlength=len(parent))
    if (few := np.flatnonzero(degree[leaves:] < 2)).size:
        raise DataError(
            f"Node {leaves + few[0]} has {degree[leaves + few[0]]} children. Leaves come first, and a branch point has "
            "at least two children: number the leaves 0, 1, ... and leave out branch points with one child."
        )
    if np.isnan(depth).any() or not (np.isinf(depth[:leaves]).all() and np.isfinite(depth[leaves:]).all()):
        raise DataError("Depths are -log(1 - time): infinite for leaves (time 1), finite for branch points (time < 1).")
    above = np.where(parent == ORIGIN, 0.0, depth[parent])
    if (early := np.flatnonzero(depth < above)).size:
        node = early[0]
        raise DataError(
            f"Node {node} has depth {depth[node]:.6g} and its parent {above[node]:.6g}: time runs from the origin to "
            "the leaves, so no node comes before its parent."
        )
    if len(tree.order) != len(parent):
        raise DataError(f"{len(parent) - len(tree.order)} nodes are not below the origin: the parents form a cycle.")
    if len(tree.names) != leaves:
        raise DataError(f"The tree has {leaves} leaves; found {len(tree.names)} names.")
