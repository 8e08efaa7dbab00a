"""Slice sampling of every divergence time, in one walk around the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import Kernel, native, put, row
from ..messages import log_normal, meet, squared
from ..shapes.arrays import FREE, GAP
from .plan import NONE, links_, queue_, top_
from .sweep import split, start_, up_

SHRINKS = 200  # an interval halved so often is a point


class Walk(NamedTuple):
    """Where the walk is, and what it knows: messages are exact where it looks, old where it does not.

    Attributes:
        node: the row that is entered or left; that of the origin at the end.
        entering: whether it is entered.
        packed: (2N, 2 D + 2 P + 1): means and variances of upward, then of downward messages, and depths; meetings in
            free slots have the depth of their branch point. One buffer, written to once in a step, after all it reads:
            else XLA copies it.
        key: of the next random numbers.
    """

    node: Any
    entering: Any
    packed: Any
    key: Any


def depth_moves_(arrays: Any, leaves: Any, tables: Any, seed: Any) -> Any:
    """`depth_moves` for use inside a compiled function.

    The walk enters every branch point from above and leaves it after all below it. On entering, the message from above
    is computed from the parent's and from the sibling's, whose part of the tree either has not been changed yet or has
    been left, so that it is exact; on leaving, the message upwards is computed anew.
    """
    rows, first = arrays.parent.shape[0], arrays.parent.shape[0] // 2
    columns, entries = leaves.mean.shape[1], leaves.variance.shape[1]
    width = columns + entries
    links = links_(arrays)
    top, over = top_(links), _over(links)
    upward = up_(links, queue_(links, top), start_(leaves)).packed[:, :width]

    def length(depth: Any, above: Any) -> Any:
        return jnp.exp(-above) * -jnp.expm1(above - depth)

    def message(packed: Any, node: Any, depth: Any, offset: int) -> tuple[Any, Any]:
        """A message over the branch of the node, whose upper end has the depth given."""
        part = row(packed, node)
        mean, variance = part[offset : offset + columns], part[offset + columns : offset + width]
        return mean, variance + length(part[-1], depth)

    def body(walk: Walk) -> Walk:
        node, entering, packed = walk.node, walk.entering, walk.packed
        above = row(over, node)
        at_origin = above == rows - 1
        one, two = row(links.left, node - first), row(links.right, node - first)
        place = jnp.maximum(above - first, 0)
        sibling = jnp.maximum(row(links.left, place) + row(links.right, place) - node, 0)
        old = row(packed, node)
        start = jnp.where(at_origin, 0.0, row(packed, above)[-1])

        higher = row(packed, jnp.where(at_origin, above, row(over, above)))[-1]
        mean, variance = meet(*message(packed, above, higher, width), *message(packed, sibling, start, 0))
        down = jnp.concatenate([jnp.where(at_origin, 0.0, mean), jnp.where(at_origin, 0.0, variance)])
        down = jnp.where(entering, down, old[width : 2 * width])
        key, now = jax.random.split(walk.key)
        helper = row(arrays.parent, node) == FREE
        depth = jnp.where(entering & helper, start, old[-1])
        depth = _slice(arrays, links, tables, packed, (node, start, depth, down), now, entering & ~helper, columns)
        up = jnp.concatenate(meet(*message(packed, one, depth, 0), *message(packed, two, depth, 0)))
        packed = put(packed, node, jnp.concatenate([jnp.where(entering, old[:width], up), down, depth[None]]))

        onward = jnp.where(one >= first, one, jnp.where(two >= first, two, node))
        other = row(links.right, place)
        across = ~at_origin & (row(links.left, place) == node) & (other >= first)
        goes = jnp.where(entering, onward, jnp.where(across, other, above))
        return Walk(goes, jnp.where(entering, onward != node, across), packed, key)

    nothing = jnp.zeros((rows, width))
    packed = jnp.concatenate([upward, nothing, arrays.depth[:, None]], axis=1)
    walk = Walk(jnp.where(top >= first, top, rows - 1), jnp.asarray(True), packed, jax.random.key(seed))
    packed = lax.while_loop(lambda walk: walk.node < rows - 1, body, walk).packed
    return arrays._replace(depth=jnp.where(arrays.parent == FREE, -1.0, packed[:, -1]))


def _over(links: Any) -> Any:
    """(2N,) the row above each row in the links."""
    first = links.left.shape[0]

    def body(step: Any, over: Any) -> Any:
        place = step // 2
        below = jnp.where(step % 2 == 0, row(links.left, place), row(links.right, place))
        at = jnp.maximum(below, 0)
        return put(over, at, jnp.where(below == NONE, row(over, at), first + place))

    return lax.fori_loop(0, 2 * first, body, jnp.full(2 * first, 2 * first - 1, jnp.int32))


def _fold(arrays: Any, links: Any, node: Any, value: Callable[[Any, Any], Any], initial: Any) -> Any:
    """`value(carry, child)` over the children of a branch point: on the right of its meetings, the last on the left."""
    first = links.left.shape[0]

    def body(carry: Any) -> Any:
        at, last, _, folded = carry
        left = row(links.left, at - first)
        folded = value(folded, jnp.where(last, left, row(links.right, at - first)))
        more = (left >= first) & (row(arrays.parent, left) == FREE)
        return jnp.where(more & ~last, left, at), ~more, ~last, folded

    return lax.while_loop(lambda carry: carry[2], body, (node, jnp.asarray(False), jnp.asarray(True), initial))[3]


def _slice(
    arrays: Any,
    links: Any,
    tables: Any,
    packed: Any,
    at: tuple[Any, Any, Any, Any],
    key: Any,
    wanted: Any,
    columns: int,
) -> Any:
    """The depth of a branch point after one slice update, where it is wanted.

    The coordinate is e / (1 + e), e the depth below the parent's: it is bounded, and large depths keep their digits.
    The first interval is all that is possible, so that shrinking it is reversible.
    """
    node, above, old, down = at
    entries = (packed.shape[1] - 1) // 2 - columns
    width = columns + entries

    def look(carry: Any, child: Any) -> Any:
        end, harmonic = carry
        passing = row(tables.harmonic, jnp.maximum(row(arrays.count, child) - 1, 0))
        return jnp.minimum(end, row(packed, child)[-1]), harmonic - passing

    own = row(tables.harmonic, jnp.maximum(row(arrays.count, node) - 1, 0))
    end, harmonic = _fold(arrays, links, node, look, (jnp.asarray(jnp.inf), own))
    start = above + GAP
    room = jnp.maximum(end - GAP - start, 0.0)
    last = jnp.where(jnp.isinf(end), 1.0, room / (1.0 + room))
    constant, rate, square = (tables.coefficients[i] for i in range(3))

    def density(coordinate: Any) -> Any:
        depth = start + coordinate / (1.0 - coordinate)

        def merge(carry: Any, child: Any) -> Any:
            mean, variance, total = carry
            part = row(packed, child)
            other, spread = split(part[:width], columns, entries)
            spread += jnp.exp(-depth) * -jnp.expm1(depth - part[-1])
            total += log_normal(squared(mean - other, entries), variance + spread, columns)
            return *meet(mean, variance, other, spread), total

        outer = down[columns:] + jnp.exp(-above) * -jnp.expm1(above - depth)
        evidence = _fold(arrays, links, node, merge, (down[:columns], outer, jnp.asarray(0.0)))[2]
        growing = square > 0.0
        passed = rate * depth - constant * jnp.expm1(-depth) + jnp.where(growing, square * jnp.expm1(depth), 0.0)
        intensity = rate + constant * jnp.exp(-depth) + jnp.where(growing, square * jnp.exp(depth), 0.0)
        found = evidence + jnp.log(intensity) - passed * harmonic - 2.0 * jnp.log1p(-coordinate)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    now = (old - start) / (1.0 + (old - start))
    possible = wanted & (room > 0.0) & (old >= start)
    found, good = _shrunk(density, now, last, possible, key)
    moved = jnp.clip(start + found / (1.0 - found), start, jnp.maximum(end - GAP, start))
    return jnp.where(possible & good, moved, old)


def _shrunk(density: Callable[[Any], Any], now: Any, last: Any, possible: Any, key: Any) -> tuple[Any, Any]:
    """A point of the slice through `now`, from shrinking (0, last), and whether one was found."""

    def shrink(carry: Any) -> Any:
        """Step 0 finds the level of the slice."""
        low, high, trial, level, step, _ = carry
        value = density(trial)
        uniform = jax.random.uniform(jax.random.fold_in(key, step), (2,), jnp.float64)
        good = (step > 0) & (value >= level)
        level = jnp.where(step == 0, value + jnp.log1p(-uniform[0]), level)
        low = jnp.where((step > 0) & (trial < now), trial, low)
        high = jnp.where((step > 0) & (trial >= now), trial, high)
        return low, high, jnp.where(good, trial, low + (high - low) * uniform[1]), level, step + 1, good

    initial = jnp.asarray(0.0), last, now, jnp.asarray(0.0), jnp.asarray(0), ~possible
    _, _, found, _, _, good = lax.while_loop(lambda carry: ~carry[5] & (carry[4] < SHRINKS), shrink, initial)
    return found, good


depth_moves = Kernel(native(depth_moves_))
depth_moves.__doc__ = """One slice-sampling update of every divergence time, all else fixed:
`depth_moves(arrays, leaves, tables, seed) -> Arrays`.

Source: neal2003slice, knowles2012thesis.
"""
