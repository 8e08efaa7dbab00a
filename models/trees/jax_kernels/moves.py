"""Metropolis-Hastings moves of subtrees: proposals from the prior's own process, and from all attachments scored.

A move detaches a random subtree S, which leaves the rest R, and attaches it elsewhere. Both proposals depend on R and S
only, so that the move back has the same normaliser: docs/trees-mcmc.md has the acceptance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import Kernel, native, row
from ..messages import log_normal, meet, squared
from ..shapes.arrays import FARTHEST, FREE, GAP, Arrays, Messages, Subtree
from .density import cumulative, intensity
from .edit import Place, attach_, detach_
from .plan import Links, Queue, links_, queue_, top_
from .score import score_on
from .sweep import split, start_, sweep_on, up_

CELLS = 16  # of equal length in time on every branch: the scored proposal is uniform in each
MIDDLES = tuple((cell + 0.5) / CELLS for cell in range(CELLS))


class Rest(NamedTuple):
    """A tree without a subtree, and the subtree.

    Attributes:
        arrays: the tree; rows of the subtree are in it, its root without parent.
        links, queue: of both, and of the rest's meetings.
        messages: of a sweep over the rest.
        subtree: as the rest sees it.
    """

    arrays: Arrays
    links: Links
    queue: Queue
    messages: Messages
    subtree: Subtree


class Proposal(NamedTuple):
    """A place, and how much larger the log density is with which it is proposed, per unit of depth on branches, than
    that with which the old place would be."""

    place: Place
    change: Any


def subtree_moves_(
    arrays: Arrays, leaves: Any, tables: Any, seed: Any, steps: Any, share_scored: Any
) -> tuple[Arrays, Any, Any]:
    """`subtree_moves` for use inside a compiled function."""
    key = jax.random.key(seed)
    start = start_(leaves)

    def body(step: Any, carry: Any) -> Any:
        arrays, accepted, proposed = carry
        own = jax.random.fold_in(key, step)
        chosen, kind, decision = jax.random.uniform(jax.random.fold_in(own, 0), (3,), jnp.float64)
        root, number = choose_(arrays, chosen)
        without, old = detach_(arrays, root)
        rest = _rest(without, root, start)
        scored = kind < share_scored
        found = lax.cond(
            scored,
            lambda: by_scores(rest, tables, old, _uniforms(own, 3)),
            lambda: by_prior_(rest, tables, old, _uniforms(own, arrays.parent.shape[0])),
        )
        ratio = gained_(rest, tables, found.place, old) - found.change
        # Of so many subtrees one was chosen; it is one of so many after the move.
        ratio += jnp.log(number) - jnp.log(number + old.joins * 1 - found.place.joins * 1)
        accept = _possible(rest, found.place) & (old.depth <= FARTHEST) & (jnp.log(decision) < ratio)
        place = jax.tree.map(lambda new, before: jnp.where(accept, new, before), found.place, old)
        which = jnp.stack([~scored, scored])
        return attach_(without, root, place), accepted + (which & accept), proposed + which

    none = jnp.zeros(2, jnp.int64)
    return lax.fori_loop(0, steps, body, (Arrays(*arrays), none, none))


def _change(value: Callable[[Place], Any], new: Place, old: Place) -> Any:
    """`value(new) - value(old)`, in a loop, so that the function is compiled once."""
    places = jax.tree.map(lambda one, two: jnp.stack([one, two]), new, old)

    def body(which: Any, change: Any) -> Any:
        return change + jnp.where(which == 0, 1.0, -1.0) * value(jax.tree.map(lambda part: row(part, which), places))

    return lax.fori_loop(0, 2, body, jnp.zeros(()))


def _rest(arrays: Arrays, root: Any, start: Any) -> Rest:
    links = links_(arrays)
    upward = up_(links, queue_(links, root), start)
    mean, variance, *_ = split(row(upward.packed, root), upward.columns, upward.entries)
    queue = queue_(links, top_(links))
    subtree = Subtree(mean, variance, row(arrays.depth, root), row(arrays.count, root))
    return Rest(arrays, links, queue, sweep_on(links, queue, upward), subtree)


@native
def choose_(arrays: Arrays, uniform: Any) -> tuple[Any, Any]:
    """A node that is not the top, each with the same probability, and how many there are."""
    movable = jnp.where((arrays.parent >= 0) & (arrays.parent < arrays.parent.shape[0] - 1), 1.0, 0.0)
    return _pick(movable, uniform, lambda entry: entry), _over_rows(movable, jnp.add, 0.0)


def _possible(rest: Rest, place: Place) -> Any:
    """Whether depths differ enough above and below a place."""
    depth = rest.arrays.depth
    start, end = row(depth, row(rest.arrays.parent, place.node)), row(depth, place.node)
    inside = (place.depth >= start + GAP) & (place.depth <= end - GAP)
    return (place.joins | inside) & (place.depth <= jnp.minimum(rest.subtree.depth - GAP, FARTHEST))


# what a place is worth ------------------------------------------------------------------------------------------------


@native
def gained_(rest: Rest, tables: Any, new: Place, old: Place) -> Any:
    """Score of the new place minus that of the old one."""
    return _change(lambda place: gain(rest, tables, place), new, old)


def gain(rest: Rest, tables: Any, place: Place) -> Any:
    """Score of one place: what the subtree there adds to the log joint density, in O(path + D)."""
    prior = _prior_gain(rest.arrays, tables, place, rest.subtree.depth, rest.subtree.count)
    return prior + _evidence_gain(rest, place)


def _prior_gain(arrays: Arrays, tables: Any, place: Place, depth: Any, count: Any) -> Any:
    """Gain of the log prior from a subtree of `count` leaves with its root at a depth, at a place.

    For a single leaf it is the log density with which the process that draws trees hangs a new point there.
    """
    harmonic, follow, total = tables.harmonic, tables.log_follow, tables.log_total

    def entered(node: Any) -> tuple[Any, Any]:
        """Log of the change of the factor of following the branch to a node, and of its intensity of divergence."""
        below = row(arrays.count, node)
        nested = row(arrays.parent, row(arrays.parent, node)) >= 0
        factor = row(follow, below + count) - row(follow, below)
        return jnp.where(nested, factor, 0.0), row(harmonic, below + count - 1) - row(harmonic, below - 1)

    def body(carry: Any) -> Any:
        node, gain = carry
        above, below = row(arrays.parent, node), row(arrays.count, node)
        factor, rate = entered(node)
        passed = _integral(tables, row(arrays.depth, node)) - _integral(tables, row(arrays.depth, above))
        return above, gain + factor - passed * rate - row(total, below + count) + row(total, below)

    above = row(arrays.parent, place.node)
    path = jnp.where(place.joins, place.node, above), jnp.zeros(())
    gain = lax.while_loop(lambda carry: row(arrays.parent, carry[0]) >= 0, body, path)[1]

    here, below = _integral(tables, place.depth), row(arrays.count, place.node)
    inside = jnp.where(count > 1, (here - _integral(tables, depth)) * row(harmonic, count - 1), 0.0)
    joining = row(tables.log_new, row(arrays.degree, place.node) + 1)
    factor, rate = entered(place.node)
    parting = factor - (here - _integral(tables, row(arrays.depth, above))) * rate
    parting += jnp.log(intensity(tables.coefficients, place.depth)[0]) + row(follow, below) - row(total, below + count)
    return gain + inside + row(follow, count) - tables.log_unit + jnp.where(place.joins, joining, parting)


def _evidence_gain(rest: Rest, place: Place) -> Any:
    """Log density of the subtree's leaves at a place, given all other leaves."""
    depth, messages, node = rest.arrays.depth, rest.messages, place.node
    low = row(messages.up_variance, node) + _time(place.depth, row(depth, node))
    high = row(messages.down_variance, node) + _time(row(depth, row(rest.arrays.parent, node)), place.depth)
    mean, variance = meet(row(messages.down_mean, node), high, row(messages.up_mean, node), low)
    variance += rest.subtree.variance + _time(place.depth, rest.subtree.depth)
    return log_normal(squared(mean - rest.subtree.mean, variance.shape[0]), variance, mean.shape[0])


def _time(early: Any, late: Any) -> Any:
    """Time between two depths."""
    return jnp.exp(-early) * -jnp.expm1(early - late)


def _integral(tables: Any, depth: Any) -> Any:
    """Integral of the divergence function, also to infinite depths."""
    finite = depth < jnp.inf
    return jnp.where(finite, cumulative(tables.coefficients, jnp.where(finite, depth, 0.0)), jnp.inf)


# proposals ------------------------------------------------------------------------------------------------------------


def _uniforms(key: Any, number: int) -> Any:
    return jax.random.uniform(jax.random.fold_in(key, 1), (number,), jnp.float64)


def by_scores(rest: Rest, tables: Any, old: Place, uniform: Any) -> Proposal:
    """A place from a piecewise uniform approximation of the conditional distribution: a cell of a branch has the mass
    of the joint density at its middle times its length, a branch point its exact mass."""
    middles = jnp.asarray(MIDDLES)
    branch, point = score_on(rest.links, rest.queue, rest.arrays, rest.messages, rest.subtree, tables, middles)
    arrays = rest.arrays
    start = arrays.depth[jnp.maximum(arrays.parent, 0)]
    end = jnp.minimum(arrays.depth, rest.subtree.depth)
    span = -jnp.expm1(start - end)  # share of the time left that can be gone
    per_time = branch - jnp.log1p(-middles * span[:, None])  # log density per unit of depth, to that per unit of time
    cells = jnp.where(branch > -jnp.inf, per_time + jnp.log(span)[:, None] - jnp.log(CELLS), -jnp.inf)
    masses = jnp.concatenate([cells, point[:, None]], axis=1)
    masses = jnp.where(jnp.isnan(masses), -jnp.inf, masses)
    node, cell = pick_cell_(masses, uniform)
    joins = cell == CELLS
    fraction = (cell + uniform[2]) / CELLS
    depth = jnp.where(joins, arrays.depth[node], start[node] - jnp.log1p(-fraction * span[node]))
    place = Place(node, depth, joins)

    def log_density(place: Place) -> Any:
        """Up to the logarithm of all masses' sum."""
        fraction = -jnp.expm1(start[place.node] - place.depth) / span[place.node]
        cell = jnp.clip((fraction * CELLS).astype(jnp.int32), 0, CELLS - 1)
        # Uniform in time: its density per unit of depth falls as 1 - t does.
        inside = per_time[place.node, cell] + start[place.node] - place.depth
        return jnp.where(place.joins, point[place.node], inside)

    return Proposal(place, log_density(place) - log_density(old))


@native
def pick_cell_(masses: Any, uniform: Any) -> tuple[Any, Any]:
    """Row and column of an entry, with probability proportional to its exponential."""
    largest = _over_rows(masses, lambda found, entry: jnp.maximum(found, entry.max()), -jnp.inf)
    node = _pick(masses, uniform[0], lambda entry: jnp.exp(entry - largest).sum())
    return node, _pick(row(masses, node), uniform[1], lambda entry: jnp.exp(entry - largest))


def _over_rows(array: Any, fold: Callable[[Any, Any], Any], initial: float) -> Any:
    """`fold(found, row)` over the rows of an array: a loop, where XLA would not compile a large reduction."""
    return lax.fori_loop(
        0, array.shape[0], lambda entry, found: fold(found, row(array, entry)), jnp.asarray(initial, jnp.float64)
    )


def _pick(array: Any, uniform: Any, weight: Callable[[Any], Any]) -> Any:
    """A row with probability proportional to its weight."""
    total = _over_rows(array, lambda found, entry: found + weight(entry), 0.0)

    def body(carry: Any) -> Any:
        entry, left, found = carry
        now = weight(row(array, entry))
        return entry + 1, left - now, jnp.where(now > 0.0, entry, found)  # rounding finds none without weight

    def more(carry: Any) -> Any:
        return (carry[1] >= 0.0) & (carry[0] < array.shape[0])

    zero = jnp.zeros((), jnp.int32)
    return lax.while_loop(more, body, (zero, uniform * total, zero))[2]


@native
def by_prior_(rest: Rest, tables: Any, old: Place, uniforms: Any) -> Proposal:
    """A place from the process that draws trees, as for a new point."""
    place = _walk(rest, tables, uniforms)
    return Proposal(place, _change(lambda at: _prior_gain(rest.arrays, tables, at, jnp.inf, 1), place, old))


def _walk(rest: Rest, tables: Any, uniforms: Any) -> Place:
    """Where a new point leaves the rest. One exponential variable is spent along the path; where it ends, it leaves.

    Args:
        uniforms: the first for that variable, one more for each branch point on the path.
    """
    arrays, links = rest.arrays, rest.links
    first = links.left.shape[0]

    def choose(node: Any, uniform: Any) -> Any:
        """A child with probability proportional to `leaves - discount`; the node itself where a new one starts."""
        below = row(arrays.count, node)
        total = row(tables.log_total, below + 1) - row(tables.log_total, below)

        def body(carry: Any) -> Any:
            at, last, left_over, chosen, _ = carry
            left = row(links.left, at - first)
            child = jnp.where(last, left, row(links.right, at - first))
            leaves = row(arrays.count, child)
            left_over -= jnp.exp(row(tables.log_follow, leaves + 1) - row(tables.log_follow, leaves) - total)
            more = (left >= first) & (row(arrays.parent, left) == FREE)
            found = left_over < 0.0
            return jnp.where(more & ~last, left, at), ~more, left_over, jnp.where(found, child, chosen), found | last

        initial = node, jnp.asarray(False), uniform, node, jnp.asarray(False)
        return lax.while_loop(lambda carry: ~carry[4], body, initial)[3]

    def body(carry: Any) -> Any:
        node, patience, step, _, _ = carry
        below = row(arrays.count, node)
        rate = row(tables.harmonic, below) - row(tables.harmonic, below - 1)
        start = _integral(tables, row(arrays.depth, row(arrays.parent, node)))
        room = (_integral(tables, row(arrays.depth, node)) - start) * rate
        leaves = patience < room
        chosen = lax.cond(leaves, lambda: node, lambda: choose(jnp.maximum(node, first), row(uniforms, step)))
        return chosen, jnp.where(leaves, start + patience / rate, patience - room), step + 1, leaves, chosen == node

    patience = -jnp.log1p(-uniforms[0])
    initial = top_(links), patience, jnp.asarray(1), jnp.asarray(False), jnp.asarray(False)
    node, level, _, leaves, _ = lax.while_loop(lambda carry: ~carry[4], body, initial)
    return Place(node, jnp.where(leaves, inverse(tables, level), row(arrays.depth, node)), ~leaves)


def inverse(tables: Any, level: Any) -> Any:
    """The depth where the integral of the divergence function has a value: Newton's steps, halving where they leave the
    bracket."""
    constant, rate, square = tables.coefficients[0], tables.coefficients[1], tables.coefficients[2]
    simple = (constant == 0.0) & (square == 0.0)
    by_rate = level / rate
    high = jnp.minimum(by_rate, jnp.log1p(level / square))

    def body(carry: Any) -> Any:
        low, high, depth, step = carry
        error = cumulative(tables.coefficients, depth) - level
        low, high = jnp.where(error < 0.0, depth, low), jnp.where(error < 0.0, high, depth)
        better = depth - error / intensity(tables.coefficients, depth)[0]
        inside = (better > low) & (better < high)
        return low, high, jnp.where(inside, better, 0.5 * (low + high)), step + 1

    started = jnp.zeros(()), high, 0.5 * high, jnp.where(simple, 80, 0)
    found = lax.while_loop(lambda carry: carry[3] < 80, body, started)[2]
    return jnp.where(simple, by_rate, found)


def _by_width(arrays: Arrays, leaves: Any, *arguments: Any) -> Any:
    """Compiled as one function, unless columns have their own variances: sums over these are too much for that."""
    moves = native(subtree_moves_) if leaves.variance.shape[1] == 1 else subtree_moves_
    return moves(arrays, leaves, *arguments)


subtree_moves = Kernel(_by_width)
subtree_moves.__doc__ = """Metropolis-Hastings moves of random subtrees, each with probability `share_scored` from the
scored proposal, else from the prior: `subtree_moves(arrays, leaves, tables, seed, steps, share_scored)` gives the
arrays, and how many moves were accepted and proposed, (prior, scored) each.

Source: neal2003density, knowles2012thesis.
"""
