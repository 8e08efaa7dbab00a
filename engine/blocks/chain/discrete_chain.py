"""Chains over discrete states: sums up (from the end), marginals down (from the start), both exact.

With the weights x of a child's states, from all that is known below it, a parent in state i sees y(i) = sum_j P(i, j)
x(j); the child given its parent has the probabilities P(i, j) x(j) / y(i), which lead the marginals down. Weights are
scaled at every step, so that nothing overflows; where one would underflow although it counts (an outlier in a state
that must be passed) everything is done again in logarithms. Arrays have time first, then states, and lanes
(independent chains) last; a table may have one time or one lane for all. Source: rabiner1989hmm.

Both ways are products of matrices: up of P(i, j) w(j), w the weights of a child, and down of the child's probabilities
given its parent. Accelerators multiply them in a tree of pairs (sarkka2021temporal).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .in_pairs import in_pairs

logsumexp = jax.scipy.special.logsumexp
SMALLEST = 1e-280  # below it products of weights lose digits


Probabilities: TypeAlias = Float[jax.Array, "states lanes"]  # of one element, or their logarithms
Transitions: TypeAlias = Float[jax.Array, "time states states lanes"]  # one time or lane may stand for all
Step: TypeAlias = Float[jax.Array, "states states lanes"]  # from, to
LogMessages: TypeAlias = Float[jax.Array, "time states lanes"]


class SmoothedStates(NamedTuple):
    """What is found: log Z, and by element the log message of the chain to it.

    `first` are the probabilities of the first element, `counts` the expected numbers of (parent, child) pairs, shaped
    as the table.
    """

    log_z: Float[jax.Array, " lanes"]
    message: LogMessages
    first: Probabilities
    counts: Transitions


class Upwards(NamedTuple):
    """What the way up leaves.

    What comes from below to the first element and to the others, scaled; the latter times their own weights, and what
    their parents see of that; and the logarithm of all scales.
    """

    root: Probabilities
    below: LogMessages
    known: LogMessages
    seen: LogMessages
    scale: Float[jax.Array, " lanes"]


def smooth(first: Probabilities, table: Transitions, node: LogMessages) -> SmoothedStates:
    """Forward-backward from log p(first), log p(child | parent) and the log messages of all other factors.

    The table has one time less than the messages, or a single one.
    """
    quick, smallest = (by_pairs if in_pairs(node.shape[1] * node.size) else one_by_one)(first, table, node)
    return jax.lax.cond(smallest > SMALLEST, lambda: quick, lambda: in_logarithms(first, table, node))


def _by_step(table: Transitions) -> tuple[Transitions | None, Callable[[Step | None], Step]]:
    """A table as what a scan reads, None where all steps share it; and what a step makes of the part that it reads."""
    if table.shape[0] == 1:
        return None, lambda _: table[0]
    return table, _own


def _own(step: Step | None) -> Step:
    assert step is not None
    return step


def one_by_one(
    first: Probabilities, table: Transitions, node: LogMessages
) -> tuple[SmoothedStates, Float[jax.Array, ""]]:
    """What is found with weights that are scaled at each step, and the smallest of them."""
    top = jnp.max(node, axis=1, keepdims=True)
    weight = jnp.exp(node - top)
    transition = jnp.exp(table)
    moving, at_step = _by_step(transition)

    def up(
        below: Probabilities, element: tuple[Probabilities, Step | None]
    ) -> tuple[Probabilities, tuple[jax.Array, ...]]:
        outside, p = element
        known = outside * below
        seen = jnp.sum(at_step(p) * known, axis=1)
        total = jnp.sum(seen, axis=0)
        return seen / total, (below, known, seen, total)

    ones = jnp.ones_like(weight[0])
    root, (below, known, seen, total) = jax.lax.scan(up, ones, (weight[1:], moving), reverse=True)
    upwards = Upwards(root, below, known, seen, jnp.sum(jnp.log(total), axis=0) + jnp.sum(top[:, 0], axis=0))
    begin, mass = _begin(first, weight, root)

    def down(
        above: jax.Array, element: tuple[jax.Array, jax.Array, jax.Array | None]
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        known, seen, p = element
        share = above / seen
        reached = jnp.sum(at_step(p) * share[:, None], axis=0)
        return reached * known, (share, reached)

    _, (share, reached) = jax.lax.scan(down, begin, (known, seen, moving))
    return _ended(first, transition, upwards, begin, mass, share, reached)


def by_pairs(
    first: Probabilities, table: Transitions, node: LogMessages
) -> tuple[SmoothedStates, Float[jax.Array, ""]]:
    """As `one_by_one`, all steps side by side: what comes from below by products from the end, the marginals from the
    start."""
    top = jnp.max(node, axis=1, keepdims=True)
    weight = jnp.exp(node - top)
    transition = jnp.exp(table)

    def after(later: Transitions, earlier: Transitions) -> Transitions:
        found = jnp.einsum("tijn,tjkn->tikn", earlier, later)
        return found / jnp.max(found, axis=(1, 2), keepdims=True)

    products = jax.lax.associative_scan(after, transition * weight[1:, None], reverse=True)
    below = jnp.sum(products, axis=2)
    below = jnp.concatenate([below / jnp.sum(below, axis=1, keepdims=True), jnp.ones_like(weight[:1])])
    known = weight[1:] * below[1:]
    seen = jnp.sum(transition * known[:, None], axis=2)
    scale = jnp.sum(jnp.log(jnp.sum(seen, axis=1)), axis=0) + jnp.sum(top[:, 0], axis=0)
    upwards = Upwards(below[0], below[1:], known, seen, scale)
    begin, mass = _begin(first, weight, below[0])

    child = transition * known[:, None] / seen[:, :, None]
    reached_from_first = jax.lax.associative_scan(lambda one, two: jnp.einsum("tijn,tjkn->tikn", one, two), child)
    marginal = jnp.einsum("in,tijn->tjn", begin, reached_from_first)
    share = jnp.concatenate([begin[None], marginal[:-1]]) / seen
    reached = jnp.sum(transition * share[:, :, None], axis=1)
    return _ended(first, transition, upwards, begin, mass, share, reached)


def _begin(
    first: Probabilities, weight: LogMessages, root: Probabilities
) -> tuple[Probabilities, Float[jax.Array, " lanes"]]:
    """The probabilities of the first element, and their sum before it was divided out."""
    start = jnp.exp(first) * weight[0] * root
    mass = jnp.sum(start, axis=0)
    return start / mass, mass


def _ended(
    first: Probabilities,
    transition: Transitions,
    upwards: Upwards,
    begin: Probabilities,
    mass: Float[jax.Array, " lanes"],
    share: LogMessages,
    reached: LogMessages,
) -> tuple[SmoothedStates, Float[jax.Array, ""]]:
    """What both ways give in the end: share(i) is what a parent has over what it saw, reached(j) its sum to a child."""
    root, below, known, seen, scale = upwards
    message = jnp.concatenate([(first + jnp.log(root))[None], jnp.log(reached * below)])
    found = SmoothedStates(jnp.log(mass) + scale, message, begin, _counts(transition, share, known))
    return found, jnp.minimum(jnp.min(mass), jnp.min(seen, initial=1.0))


def _counts(transition: Transitions, share: LogMessages, known: LogMessages) -> Transitions:
    """Expected pairs, P(i, j) share(i) known(j), summed over what the table does not vary over."""
    if transition.shape[0] > 1 or share.shape[0] == 1:
        pairs = transition * share[:, :, None] * known[:, None]
    else:
        pairs = transition * jnp.einsum("tin,tjn->ijn", share, known)
    return pairs if transition.shape[-1] == share.shape[-1] else jnp.sum(pairs, axis=-1, keepdims=True)


def in_logarithms(first: Probabilities, table: Transitions, node: LogMessages) -> SmoothedStates:
    """The same as `smooth`, slower, whatever the sizes of the messages."""
    moving, at_step = _by_step(table)

    def up(
        below: Probabilities, element: tuple[Probabilities, Step | None]
    ) -> tuple[Probabilities, tuple[jax.Array, ...]]:
        outside, log_p = element
        known = outside + below
        seen = seen_by_parent(at_step(log_p), known)
        return seen, (below, known, seen)

    zeros = jnp.zeros_like(node[0])
    root, (below, known, seen) = jax.lax.scan(up, zeros, (node[1:], moving), reverse=True)
    start = first + node[0] + root
    log_z = logsumexp(start, axis=0)

    def down(
        above: jax.Array, element: tuple[jax.Array, jax.Array, jax.Array | None]
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        known, seen, log_p = element
        share = shared(above, seen)
        reached = logsumexp(at_step(log_p) + share[:, None], axis=0)
        return reached + known, (share, reached)

    _, (share, reached) = jax.lax.scan(down, start - log_z, (known, seen, moving))
    message = jnp.concatenate([(first + root)[None], reached + below])
    pairs = jnp.exp(table + share[:, :, None] + known[:, None])
    pairs = pairs if table.shape[0] == pairs.shape[0] else jnp.sum(pairs, axis=0, keepdims=True)
    pairs = pairs if table.shape[-1] == pairs.shape[-1] else jnp.sum(pairs, axis=-1, keepdims=True)
    return SmoothedStates(log_z, message, jnp.exp(start - log_z), pairs)


def seen_by_parent(log_p: Float[jax.Array, "states states lanes"], known: Probabilities) -> Probabilities:
    """log sum_j P(i, j) x(j) from both logarithms: the message of a child to its parent."""
    return logsumexp(log_p + known, axis=1)


def shared(above: Probabilities, seen: Probabilities) -> Probabilities:
    """log of a parent's probabilities over what its states saw; nothing of a state that is impossible."""
    return jnp.where(jnp.isneginf(above), -jnp.inf, above - seen)
