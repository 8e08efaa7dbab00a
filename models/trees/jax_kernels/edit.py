"""Taking subtrees out of a tree in padded arrays, and putting them back."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import native, put, row
from ..shapes.arrays import FREE, Arrays


class Place(NamedTuple):
    """Where a subtree hangs in the rest of a tree.

    Attributes:
        node: () row: on the branch above this node, or at this branch point itself.
        depth: () of the branch point it hangs from.
        joins: () bool: at the branch point `node`, rather than on the branch above it.
    """

    node: Any
    depth: Any
    joins: Any


@native
def detach_(arrays: Arrays, node: Any) -> tuple[Arrays, Place]:
    """The rest of a tree without the subtree at `node` (not the top), and the place it came from.

    What is inside the subtree stays in the arrays, unlinked: the parent of its root is FREE while its depth is not -1.
    A branch point left with one child becomes a free slot.
    """
    parent, depth, count, degree = arrays
    above = row(parent, node)
    gone = row(degree, above) == 2
    place_depth = row(depth, above)

    def other_child(other: Any) -> Any:
        return (row(parent, other) != above) | (other == node)

    size = parent.shape[0]
    start = jnp.where(gone, 0, size - 1).astype(jnp.int32)  # the origin is nobody's child: there the search stops
    other = lax.while_loop(lambda at: (at < size - 1) & other_child(at), lambda at: at + 1, start)
    over = row(parent, above)
    count = _add(parent, count, above, -row(count, node))
    parent = put(parent, node, FREE)
    parent = put(parent, other, jnp.where(gone, over, row(parent, other)))
    parent = put(parent, above, jnp.where(gone, FREE, over))
    depth = put(depth, above, jnp.where(gone, -1.0, place_depth))
    count = put(count, above, jnp.where(gone, 0, row(count, above)))
    degree = put(degree, above, jnp.where(gone, 0, row(degree, above) - 1))
    return Arrays(parent, depth, count, degree), Place(jnp.where(gone, other, above), place_depth, ~gone)


@native
def attach_branch_(arrays: Arrays, subtree: Any, node: Any, at: Any) -> Arrays:
    """The tree with the row `subtree` on the branch above `node`, at the depth `at`, in the first free slot."""
    parent, depth, count, degree = arrays
    first = parent.shape[0] // 2
    slot = lax.while_loop(
        lambda place: (row(parent, place) != FREE) | (row(depth, place) >= 0.0),
        lambda place: place + 1,
        jnp.asarray(first, jnp.int32),
    )
    above, more = row(parent, node), row(count, subtree)
    count = put(count, slot, row(count, node) + more)
    count = _add(parent, count, above, more)
    for below, over in ((slot, above), (node, slot), (subtree, slot)):
        parent = put(parent, below, over)
    return Arrays(parent, put(depth, slot, at), count, put(degree, slot, 2))


@native
def attach_point_(arrays: Arrays, subtree: Any, node: Any) -> Arrays:
    """The tree with the row `subtree` as one more child of the branch point `node`."""
    parent, depth, count, degree = arrays
    count = _add(parent, count, node, row(count, subtree))
    return Arrays(put(parent, subtree, node), depth, count, put(degree, node, row(degree, node) + 1))


def attach_(arrays: Arrays, subtree: Any, place: Place) -> Arrays:
    """The tree with the row `subtree` at a place."""
    return lax.cond(
        place.joins,
        lambda: attach_point_(arrays, subtree, place.node),
        lambda: attach_branch_(arrays, subtree, place.node, place.depth),
    )


def _add(parent: Any, count: Any, node: Any, more: Any) -> Any:
    """Counts with `more` leaves at `node` and all above it."""

    def body(carry: Any) -> Any:
        at, count = carry
        return row(parent, at), put(count, at, row(count, at) + more)

    return lax.while_loop(lambda carry: carry[0] >= 0, body, (node, count))[1]
