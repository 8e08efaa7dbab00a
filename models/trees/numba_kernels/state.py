"""A tree on which kernels work in place: pointers to first child and next sibling, and upward messages."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..shapes.arrays import FREE, Arrays, Leaves
from .jit import HUGE, called, inner, kernel


class State(NamedTuple):
    """A tree and its upward messages; rows as in `Arrays`, with -1 for no node.

    Attributes:
        parent, child, next: (2N,) the node above, the first below, the next sibling.
        depth, rest, length: (2N,) depth, 1 - time, and time since the parent.
        count, degree: (2N,) leaves below, children.
        mean, variance: (2N, D), (2N, P) upward messages; a huge finite variance stands for an infinite one.
        norm: (2N,) what merging the children adds to the log evidence; the origin's row compares the top with 0.
        free: (N + 1,) how many slots are free, then their numbers.
    """

    parent: Any
    child: Any
    next: Any
    depth: Any
    rest: Any
    length: Any
    count: Any
    degree: Any
    mean: Any
    variance: Any
    norm: Any
    free: Any


@kernel
def empty(leaves: Any) -> Any:
    """No tree yet: every slot is free, the leaves hang nowhere."""
    n, columns = leaves.mean.shape
    rows = 2 * n
    mean, variance = np.zeros((rows, columns)), np.ones((rows, leaves.variance.shape[1]))
    mean[:n] = leaves.mean
    variance[:n] = np.minimum(leaves.variance, HUGE)
    depth, rest, count = np.full(rows, -1.0), np.ones(rows), np.zeros(rows, np.int64)
    depth[:n], rest[:n], count[:n] = np.inf, 0.0, 1
    depth[rows - 1] = 0.0
    free = np.zeros(n + 1, np.int64)
    free[0] = n - 1
    for i in range(n - 1):
        free[1 + i] = rows - 2 - i  # lowest first when taken from the end
    parent, none = np.full(rows, FREE, np.int64), np.full(rows, -1, np.int64)
    parent[rows - 1] = -1
    zeros = np.zeros(rows)
    degree = np.zeros(rows, np.int64)
    return State(parent, none, none.copy(), depth, rest, zeros, count, degree, mean, variance, zeros.copy(), free)


@kernel
def load(arrays: Any, leaves: Any) -> Any:
    """The tree of padded arrays, without messages."""
    s = empty(leaves)
    _link(s, arrays)
    return s


@called
def _link(s: Any, arrays: Any) -> Any:
    """Fill a state from padded arrays."""
    rows = len(s.parent)
    n = rows // 2
    s.free[0] = 0
    for i in range(rows - 1):
        v = rows - 2 - i
        s.parent[v] = arrays.parent[v]
        if s.parent[v] == FREE and v >= n:  # a leaf's row may be free too, where it has been detached
            s.free[0] += 1
            s.free[s.free[0]] = v
        elif v >= n:
            s.depth[v] = arrays.depth[v]
            s.rest[v] = math.exp(-s.depth[v])
    for v in range(rows):
        s.count[v] = arrays.count[v]
    for i in range(rows - 1):
        v = rows - 2 - i
        if s.parent[v] != FREE:
            hang(s, v, s.parent[v])


@kernel
def store(s: Any) -> Any:
    """The tree in padded arrays."""
    return Arrays(s.parent.astype(np.int32), s.depth.copy(), s.count.astype(np.int32), s.degree.astype(np.int32))


@inner
def hang(s: Any, v: Any, u: Any) -> Any:
    """Make v the first child of u."""
    s.parent[v], s.next[v], s.child[u] = u, s.child[u], v
    s.degree[u] += 1
    s.length[v] = time_since(s, u, v)


@inner
def time_since(s: Any, u: Any, v: Any) -> Any:
    """Time between u and v below it, without cancellation."""
    return s.rest[u] * -math.expm1(s.depth[u] - s.depth[v])


@inner
def unhang(s: Any, v: Any) -> Any:
    """Take v from among the children of its parent."""
    u = s.parent[v]
    if s.child[u] == v:
        s.child[u] = s.next[v]
    else:
        before = s.child[u]
        while s.next[before] != v:
            before = s.next[before]
        s.next[before] = s.next[v]
    s.degree[u] -= 1


@inner
def place(s: Any, v: Any, depth: Any) -> Any:
    """Give a branch point a depth."""
    s.depth[v], s.rest[v] = depth, math.exp(-depth)
    s.length[v] = time_since(s, s.parent[v], v)
    below = s.child[v]
    while below >= 0:
        s.length[below] = time_since(s, v, below)
        below = s.next[below]


@inner
def add_count(s: Any, v: Any, leaves: Any) -> Any:
    """Leaves more, or fewer, below v and everything above it."""
    while v >= 0:
        s.count[v] += leaves
        v = s.parent[v]


@called
def detach(s: Any, v: Any) -> Any:
    """Cut the branch above v, which is not the top; a branch point left with one child disappears.

    Returns the node above whose branch or at which v hung (`where`), whether it was at a branch point, and the lowest
    node whose upward message must be renewed. Messages are not.
    """
    u = s.parent[v]
    unhang(s, v)
    add_count(s, u, -s.count[v])
    if s.degree[u] > 1:
        return u, True, u
    left, above = s.child[u], s.parent[u]
    unhang(s, u)
    hang(s, left, above)
    s.parent[u], s.depth[u], s.degree[u], s.count[u], s.child[u] = FREE, -1.0, 0, 0, -1
    s.norm[u] = 0.0
    s.free[0] += 1
    s.free[s.free[0]] = u
    return left, False, above


@called
def attach(s: Any, v: Any, where: Any, joins: Any, depth: Any) -> Any:
    """Hang v at the branch point `where` (`joins`), or at a depth on the branch above it.

    Returns the lowest node whose upward message must be renewed.
    """
    if joins:
        hang(s, v, where)
        add_count(s, where, s.count[v])
        return where
    point, above = s.free[s.free[0]], s.parent[where]
    s.free[0] -= 1
    unhang(s, where)
    s.depth[point], s.rest[point], s.count[point] = depth, math.exp(-depth), s.count[where]
    hang(s, point, above)
    hang(s, where, point)
    hang(s, v, point)
    add_count(s, point, s.count[v])
    return point


@called
def preorder(s: Any, order: Any) -> Any:
    """Write the nodes, each after its parent, and return how many there are; the origin is not one of them."""
    top = s.child[len(s.parent) - 1]
    v, n = top, 0
    while True:
        order[n] = v
        n += 1
        if s.child[v] >= 0:
            v = s.child[v]
            continue
        while v != top and s.next[v] < 0:
            v = s.parent[v]
        if v == top:
            return n
        v = s.next[v]


def exact(leaves: Leaves) -> Leaves:
    """Leaves as the kernels are compiled for them."""
    return Leaves(*(np.require(part, np.float64, ["C", "W"]) for part in leaves))


def whole(arrays: Arrays) -> Arrays:
    """Arrays as the kernels are compiled for them."""
    kinds = (np.int32, np.float64, np.int32, np.int32)
    return Arrays(*(np.require(part, kind, ["C", "W"]) for part, kind in zip(arrays, kinds, strict=True)))
