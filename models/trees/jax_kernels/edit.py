"""Taking subtrees out of a tree in padded arrays, and putting them back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..shapes.arrays import FREE, Arrays


class Place(NamedTuple):
    """Where a subtree hangs in the rest of a tree.

    Attributes:
        node: on the branch above this row, or at this branch point itself.
        depth: of the branch point it hangs from.
        joins: at the branch point `node`, rather than on the branch above it.
    """

    node: int
    depth: float
    joins: bool


def detach(arrays: Arrays, root: int) -> tuple[Arrays, Place]:
    """The rest of a tree without the subtree at `root` (not the top), and the place it came from.

    What is inside the subtree stays in the arrays, unlinked: the parent of its root is FREE while its depth is not -1.
    A branch point left with one child becomes a free slot.
    """
    rest = Arrays(*(np.array(part) for part in arrays))
    parent, depth, count, degree = rest
    above = int(parent[root])
    _add(rest, above, -count[root])
    parent[root] = FREE
    if degree[above] > 2:
        degree[above] -= 1
        return rest, Place(above, float(depth[above]), True)
    place = Place(int(np.argmax(parent == above)), float(depth[above]), False)
    parent[place.node] = parent[above]
    parent[above], depth[above], count[above], degree[above] = FREE, -1.0, 0, 0
    return rest, place


def attach(rest: Arrays, root: int, place: Place) -> Arrays:
    """The tree with the row `root` at a place; a new branch point takes the first free slot."""
    arrays = Arrays(*(np.array(part) for part in rest))
    parent, depth, count, degree = arrays
    at = place.node
    if place.joins:
        degree[at] += 1
    else:
        first = len(parent) // 2
        at = first + int(np.argmax((parent[first:] == FREE) & (depth[first:] < 0.0)))
        parent[at], depth[at], count[at], degree[at] = parent[place.node], place.depth, count[place.node], 2
        parent[place.node] = at
    parent[root] = at
    _add(arrays, at, count[root])
    return arrays


def _add(arrays: Arrays, node: int, more: int) -> None:
    """`more` leaves at `node` and all above it."""
    while node >= 0:
        arrays.count[node] += more
        node = int(arrays.parent[node])
