"""Scores of attaching a subtree to every place of a tree: exact, given all else."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import Kernel, native, put, row
from ..messages import log_normal, squared
from ..shapes.arrays import Messages, Subtree
from .density import cumulative, places_
from .plan import Links, Queue, links_, queue_, top_
from .sweep import split

BLOCK = 8  # columns whose variances are multiplied before a logarithm is taken
LOG_2, LOG_2PI = math.log(2.0), math.log(2.0 * math.pi)


class Branches(NamedTuple):
    """What the scores of a subtree read of every branch, by the row of the node at its end.

    (m, V) are the upward and (n, W) the downward message of the branch, S the mean of the subtree. Rows that end no
    branch have `prior` minus infinity.

    Attributes:
        low, high, across: (2N, P) squared distances of S to m, of S to n, and of m to n.
        low_variance, high_variance: (2N, P) V and W.
        length: (2N,) time from the branch's start to its end.
        span: (2N,) time from its start to the latest place on it: its end, or the time of the subtree's root.
        spare, subtree_spare: (2N,) time from there to the branch's end, and to the subtree's root.
        remaining: (2N,) time from there to the leaves.
        prior: (2N,) the prior's factors that do not depend on where on the branch.
        passed: (2N,) integral A of the divergence function up to the branch's start.
        rate: (2N,) the prior has the factor exp((passed - A(place)) rate).
    """

    low: Any
    high: Any
    across: Any
    low_variance: Any
    high_variance: Any
    length: Any
    span: Any
    spare: Any
    subtree_spare: Any
    remaining: Any
    prior: Any
    passed: Any
    rate: Any


class Arrival(NamedTuple):
    """What they read of the subtree itself.

    Attributes:
        variance: (P,).
        passed: () integral A of the divergence function up to its root; 0 for a leaf.
        rate: () the prior has the factor exp((A(place) - passed) rate).
        coefficients: (3,) of the divergence function.
        columns: () D.
    """

    variance: Any
    passed: Any
    rate: Any
    coefficients: Any
    columns: Any


def branches_on(
    links: Links, queue: Queue, arrays: Any, messages: Messages, subtree: Subtree, tables: Any
) -> tuple[Branches, Arrival, Any]:
    """The branches as a subtree meets them, what they read of it, and (2N,) the scores of joining the branch points.

    Rows of the messages' means may be longer than the subtree's: only their beginnings are read.
    """
    points, depth, above = places_(arrays)
    more, counts = subtree.count, jnp.maximum(arrays.count, 1)
    passed, over = cumulative(tables.coefficients, depth), cumulative(tables.coefficients, above)
    rate = tables.harmonic[counts + more - 1] - tables.harmonic[counts - 1]
    nested = arrays.parent < arrays.parent.shape[0] - 1
    followed = jnp.where(nested, tables.log_follow[counts + more] - tables.log_follow[counts], 0.0)
    total = tables.log_total[counts + more]
    own = (over - passed) * rate + tables.log_total[counts] - total + followed
    before = path_sums_(links, queue, jnp.where(points, own, 0.0))
    before = jnp.where(arrays.parent >= 0, before, -jnp.inf) + tables.log_follow[more] - tables.log_unit

    arrival = Arrival(
        variance=subtree.variance,
        passed=cumulative(tables.coefficients, jnp.where(more == 1, 0.0, subtree.depth)),
        rate=tables.harmonic[more - 1],
        coefficients=tables.coefficients,
        columns=jnp.asarray(subtree.mean.shape[0], jnp.float64),
    )
    starts = jnp.where(arrays.parent >= 0, arrays.depth[jnp.maximum(arrays.parent, 0)], 0.0)
    latest = jnp.minimum(arrays.depth, subtree.depth)
    entries = messages.up_variance.shape[1]
    _, low, high, across = split(distances_(links, queue, messages, subtree.mean), 0, entries)
    branches = Branches(
        low, high, across, messages.up_variance, messages.down_variance,
        length=links.length, span=between(starts, latest),
        spare=between(latest, arrays.depth), subtree_spare=between(latest, subtree.depth),
        remaining=jnp.exp(-latest),
        prior=jnp.where(latest > starts, before + followed + tables.log_follow[counts] - total, -jnp.inf),
        passed=over, rate=rate,
    )  # fmt: skip
    children = jnp.minimum(arrays.degree + 1, tables.log_new.shape[0] - 1)
    joins = before + own + tables.log_new[children] + (passed - arrival.passed) * arrival.rate
    joins = joins + evidence_(branches, arrival, branches.length, 0.0, between(arrays.depth, subtree.depth))
    return branches, arrival, jnp.where(points & (arrays.depth < subtree.depth), joins, -jnp.inf)


@native
def path_sums_(links: Links, queue: Queue, own: Any) -> Any:
    """(2N,) sums of `own` over all that is above each row, minus infinity in rows that are not in the tree."""
    first = links.left.shape[0]

    def body(step: Any, sums: Any) -> Any:
        above = row(queue.slot, step // 2)
        below = jnp.where(step % 2 == 0, row(links.left, above - first), row(links.right, above - first))
        return put(sums, below, row(sums, above) + row(own, above))

    start = put(jnp.full_like(own, -jnp.inf), row(queue.slot, 0), 0.0)
    return lax.fori_loop(0, 2 * queue.size, body, start)


@native
def distances_(links: Links, queue: Queue, messages: Messages, mean: Any) -> Any:
    """(2N, 3 P) squared distances, for each branch: of `mean` to both messages, and between these."""
    first, columns, entries = links.left.shape[0], mean.shape[0], messages.up_variance.shape[1]

    def body(step: Any, near: Any) -> Any:
        above = row(queue.slot, jnp.maximum(step - 1, 0) // 2)
        pair = row(links.left, above - first), row(links.right, above - first)
        node = jnp.where(step == 0, row(queue.slot, 0), jnp.where(step % 2 == 1, *pair))
        low, high = row(messages.up_mean, node)[:columns], row(messages.down_mean, node)[:columns]
        parts = [squared(difference, entries) for difference in (mean - low, mean - high, low - high)]
        return put(near, node, jnp.concatenate(parts))

    return lax.fori_loop(0, 2 * queue.size + 1, body, jnp.zeros((2 * first, 3 * entries)))


def between(early: Any, late: Any) -> Any:
    """Time between two depths, 0 where they do not differ."""
    return jnp.where(late > early, jnp.exp(-early) * -jnp.expm1(early - late), 0.0)


def evidence_(branches: Branches, arrival: Arrival, before: Any, after: Any, free: Any) -> Any:
    """Log density of a subtree's mean at a place `before` after a branch's start, `after` before its end and `free`
    before the subtree's root, given all other leaves."""
    if branches.low_variance.shape[-1] > 1:
        return _evidence_by_column(branches, arrival, before, after, free)
    before, after, free = (jnp.asarray(time)[..., None] for time in (before, after, free))
    variance, distance = _step(*_messages(branches), arrival.variance, before, after, free)
    return log_normal(distance, variance, arrival.columns)


def _messages(branches: Branches) -> tuple[Any, Any, Any, Any, Any]:
    """What differs between columns."""
    return branches.low, branches.high, branches.across, branches.low_variance, branches.high_variance


def _step(
    near: Any, far: Any, across: Any, low: Any, high: Any, own: Any, before: Any, after: Any, free: Any
) -> tuple[Any, Any]:
    """Variance and squared length of the step from a place on a branch to the subtree's mean."""
    high, low = high + before, low + after
    one = 1.0 / (high + low)
    share, other = high * one, jnp.where(low < jnp.inf, low * one, 1.0)
    return high * other + own + free, share * near + other * far - share * other * across


def _evidence_by_column(branches: Branches, arrival: Arrival, before: Any, after: Any, free: Any) -> Any:
    """The same where columns have their own variances: BLOCK columns at a time, for which one logarithm is taken.

    Branches are the last axis of everything: loops over them are of vector instructions.
    """
    times = jnp.broadcast_arrays(*(jnp.asarray(time) for time in (before, after, free)))
    columns = [jnp.moveaxis(part, -1, 0) for part in (*_messages(branches), arrival.variance)]
    count = arrival.variance.shape[0]
    blocks = -(-count // BLOCK)
    room = blocks * BLOCK - count
    columns = [jnp.concatenate([part, jnp.full((room, *part.shape[1:]), jnp.inf)]) for part in columns]

    def body(block: Any, total: Any) -> Any:
        mantissa, exponent, squares = jnp.asarray(1.0), jnp.asarray(0, jnp.int64), jnp.asarray(0.0)
        for column in range(BLOCK):
            variance, distance = _step(*(row(part, block * BLOCK + column) for part in columns), *times)
            known = variance < jnp.inf
            more, power = _scientific(jnp.where(known, variance, 1.0))
            mantissa, exponent = mantissa * more, exponent + power
            squares += jnp.where(known, distance / variance + LOG_2PI, 0.0)
        return total - 0.5 * (squares + jnp.log(mantissa) + LOG_2 * exponent)

    return lax.fori_loop(0, blocks, body, jnp.zeros(times[0].shape))


def _scientific(value: Any) -> tuple[Any, Any]:
    """Mantissa in [1, 2) and exponent of a positive normal number: products of mantissas never underflow."""
    bits = lax.bitcast_convert_type(value, jnp.int64)
    mantissa = lax.bitcast_convert_type((bits & ((1 << 52) - 1)) | (1023 << 52), jnp.float64)
    return mantissa, (bits >> 52) - 1023


def density_(branches: Branches, arrival: Arrival, fraction: Any, rest: Any) -> Any:
    """Scores of the places at `fraction` of the time on branches, `rest = 1 - fraction` being given for its digits.

    Args:
        fraction, rest: of a shape that broadcasts with that of the branches: several times for each are (F, 1).
    """
    after = rest * branches.span
    remaining = jnp.maximum(branches.remaining + after, 1e-300)
    constant, rate, square = (arrival.coefficients[i] for i in range(3))
    passed = -rate * jnp.log(remaining) + constant * (1.0 - remaining) + square * (1.0 / remaining - 1.0)
    slope = jnp.log(rate + constant * remaining + square / remaining)
    stay = (branches.passed - passed) * branches.rate + (passed - arrival.passed) * arrival.rate
    spares = branches.spare + after, branches.subtree_spare + after
    return branches.prior + stay + slope + evidence_(branches, arrival, fraction * branches.span, *spares)


def score_on(
    links: Links, queue: Queue, arrays: Any, messages: Messages, subtree: Subtree, tables: Any, fractions: Any
) -> tuple[Any, Any]:
    """Scores on given links and queue."""
    branches, arrival, point = branches_on(links, queue, arrays, messages, subtree, tables)
    branch = density_(branches, arrival, fractions[:, None], 1.0 - fractions[:, None])
    return jnp.where(branches.prior > -jnp.inf, branch, -jnp.inf).T, point


def score_(arrays: Any, messages: Messages, subtree: Subtree, tables: Any, fractions: Any) -> tuple[Any, Any]:
    """`score` for use inside a compiled function."""
    links = links_(arrays)
    return score_on(links, queue_(links, top_(links)), arrays, messages, subtree, tables, fractions)


score = Kernel(score_)
score.__doc__ = """What attaching a subtree adds to the log joint density, what is inside the subtree apart:
`score(arrays, messages, subtree, tables, fractions) -> (branch (2N, F), point (2N,))`.

`arrays` and `messages` are those of the rest of the tree. Entry [v, f] of the first is the score of a new branch point
above node v, a fraction f of the time from its parent to v, or to the subtree's root where that is earlier: a density
with respect to the depth of the new branch point. Entry v of the second is the score of joining branch point v, a
mass. Both are minus infinity where this cannot be. The root of the subtree brings its divergence time's factor
exp((A(place) - A(root)) H(count - 1)) along; all other factors that only nodes within the subtree have are left out.

Source: knowles2015pitman.
"""
