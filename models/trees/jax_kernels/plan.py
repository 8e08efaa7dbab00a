"""The order of message passing on a tree in padded arrays: pairs of messages that meet, from the top down."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import native, put, row
from ..shapes.arrays import FREE

NONE = -1


class Links(NamedTuple):
    """The two rows below every branch point, the tree being made binary by branches of no length.

    The first two of a branch point's children meet in a free slot, that and the third child in another, and so on: a
    tree of n leaves has n - 1 such meetings whatever its arity, so that the free slots suffice, and every message to
    one child is a product of two others, with no division.

    Attributes:
        left, right: (N,) the two below row N + i; entry N - 1 is the origin's, which has the top on its left.
        length: (2N,) time from each node's parent to the node; 0 for rows without a node.
    """

    left: Any
    right: Any
    length: Any


class Queue(NamedTuple):
    """The meetings at or below one node, each before those below it.

    Attributes:
        slot: (N + 1,) rows.
        size: () how many.
    """

    slot: Any
    size: Any


def links_(arrays: Any) -> Links:
    """The links of all that is in the arrays, a detached subtree included."""
    parent, depth = arrays.parent, arrays.depth
    above = depth[jnp.maximum(parent, 0)]
    length = jnp.where(parent >= 0, jnp.exp(-above) * -jnp.expm1(above - depth), 0.0)
    left, right = _pairs(parent, (parent == FREE) & (depth < 0.0), linked_(arrays))
    return Links(left, right, length)


def linked_(arrays: Any) -> Any:
    """How many rows there are up to the last one that hangs from another."""
    return jnp.max(jnp.where(arrays.parent >= 0, jnp.arange(1, arrays.parent.shape[0] + 1, dtype=jnp.int32), 0))


@native
def _pairs(parent: Any, free: Any, size: Any) -> tuple[Any, Any]:
    """`left` and `right`, and the slots of partial meetings among the free ones."""
    first = parent.shape[0] // 2

    def body(node: Any, carry: Any) -> Any:
        left, right, spare = carry
        above = row(parent, node)
        at = jnp.maximum(above - first, 0)
        one, two = row(left, at), row(right, at)
        child, full = above >= 0, (above >= 0) & (two != NONE)
        spare = lax.while_loop(lambda place: full & ~row(free, place), lambda place: place + 1, spare)
        slot = jnp.where(full, spare - first, first - 1)  # the origin's right side is nobody's: a place to waste
        wasted = row(left, slot)
        left = put(left, slot, jnp.where(full, one, wasted))
        right = put(right, slot, jnp.where(full, two, NONE))
        now = jnp.where(full, spare, jnp.where(one == NONE, node, one))
        left = put(left, at, jnp.where(child, now, one))
        right = put(right, at, jnp.where(child & (one != NONE), node, two))
        return left, right, jnp.where(full, spare + 1, spare)

    none = jnp.full(first, NONE, jnp.int32)
    left, right, _ = lax.fori_loop(0, size, body, (none, none, jnp.asarray(first, jnp.int32)))
    return left, right


@native
def queue_(links: Links, root: Any) -> Queue:
    """The meetings at or below the row `root`."""
    first = links.left.shape[0]

    def body(carry: Any) -> Any:
        slot, done, size = carry
        at = row(slot, done) - first
        for below in (row(links.left, at), row(links.right, at)):
            slot, size = put(slot, size, below), size + (below >= first)
        return slot, done + 1, size

    slot = put(jnp.zeros(first + 1, jnp.int32), 0, root)
    size = jnp.asarray(root >= first, jnp.int32)
    slot, _, size = lax.while_loop(lambda carry: carry[1] < carry[2], body, (slot, jnp.asarray(0, jnp.int32), size))
    return Queue(slot, size)


def top_(links: Links) -> Any:
    """The row below the origin."""
    return links.left[-1]
