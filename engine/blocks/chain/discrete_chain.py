"""Chains over discrete states: sums up (from the end), marginals down (from the start), both exact.

With the weights x of a child's states, from all that is known below it, a parent in state i sees y(i) = sum_j P(i, j)
x(j); the child given its parent has the probabilities P(i, j) x(j) / y(i), which lead the marginals down. Weights are
scaled at every step, so that nothing overflows; where one would underflow although it counts (an outlier in a state
that must be passed) everything is done again in logarithms. Arrays have time first, then states, and lanes
(independent chains) last; a table may have one time or one lane for all. Source: rabiner1989hmm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

logsumexp = jax.scipy.special.logsumexp
SMALLEST = 1e-280  # below it products of weights lose digits


class Smoothed(NamedTuple):
    """What is found: log Z, and by element the log message of the chain to it.

    `log_z` is shaped (lanes,) and `message` (time, states, lanes). `first` (states, lanes) are the probabilities of the
    first element, `counts` the expected numbers of (parent, child) pairs, shaped as the table.
    """

    log_z: Any
    message: Any
    first: Any
    counts: Any


def smooth(first: Any, table: Any, node: Any) -> Smoothed:
    """Forward-backward from log p(first), log p(child | parent) and the log messages of all other factors.

    Shaped (states, lanes), (time - 1 or 1, states, states, lanes or 1) and (time, states, lanes).
    """
    quick, smallest = _scaled(first, table, node)
    return jax.lax.cond(smallest > SMALLEST, lambda: quick, lambda: in_logarithms(first, table, node))


def _through(table: Any) -> tuple[Any, Any]:
    """A table as what every step of a scan shares, or as what it reads."""
    return (table[0], None) if table.shape[0] == 1 else (None, table)


def _scaled(first: Any, table: Any, node: Any) -> tuple[Smoothed, Any]:
    top = jnp.max(node, axis=1, keepdims=True)
    weight = jnp.exp(node - top)
    transition = jnp.exp(table)
    fixed, moving = _through(transition)

    def up(below, element):
        own, p = element
        known = own * below
        seen = jnp.sum((fixed if p is None else p) * known, axis=1)
        total = jnp.sum(seen, axis=0)
        return seen / total, (below, known, seen, total)

    ones = jnp.ones_like(weight[0])
    root, (below, known, seen, total) = jax.lax.scan(up, ones, (weight[1:], moving), reverse=True)
    start = jnp.exp(first) * weight[0] * root
    mass = jnp.sum(start, axis=0)
    log_z = jnp.log(mass) + jnp.sum(jnp.log(total), axis=0) + jnp.sum(top[:, 0], axis=0)

    def down(above, element):
        known, seen, p = element
        share = above / seen
        reached = jnp.sum((fixed if p is None else p) * share[:, None], axis=0)
        return reached * known, (share, reached)

    _, (share, reached) = jax.lax.scan(down, start / mass, (known, seen, moving))
    message = jnp.concatenate([(first + jnp.log(root))[None], jnp.log(reached * below)])
    counts = _counts(transition, share, known)
    return Smoothed(log_z, message, start / mass, counts), jnp.minimum(jnp.min(mass), jnp.min(seen, initial=1.0))


def _counts(transition: Any, share: Any, known: Any) -> Any:
    """Expected pairs, P(i, j) share(i) known(j), summed over what the table does not vary over."""
    if transition.shape[0] > 1 or share.shape[0] == 1:
        pairs = transition * share[:, :, None] * known[:, None]
    else:
        pairs = transition * jnp.einsum("tin,tjn->ijn", share, known)
    return pairs if transition.shape[-1] == share.shape[-1] else jnp.sum(pairs, axis=-1, keepdims=True)


def in_logarithms(first: Any, table: Any, node: Any) -> Smoothed:
    """The same, slower, whatever the sizes of the messages."""
    fixed, moving = _through(table)

    def up(below, element):
        own, log_p = element
        known = own + below
        seen = seen_by_parent(fixed if log_p is None else log_p, known)
        return seen, (below, known, seen)

    zeros = jnp.zeros_like(node[0])
    root, (below, known, seen) = jax.lax.scan(up, zeros, (node[1:], moving), reverse=True)
    start = first + node[0] + root
    log_z = logsumexp(start, axis=0)

    def down(above, element):
        known, seen, log_p = element
        share = shared(above, seen)
        reached = logsumexp((fixed if log_p is None else log_p) + share[:, None], axis=0)
        return reached + known, (share, reached)

    _, (share, reached) = jax.lax.scan(down, start - log_z, (known, seen, moving))
    message = jnp.concatenate([(first + root)[None], reached + below])
    pairs = jnp.exp(table + share[:, :, None] + known[:, None])
    pairs = pairs if table.shape[0] == pairs.shape[0] else jnp.sum(pairs, axis=0, keepdims=True)
    pairs = pairs if table.shape[-1] == pairs.shape[-1] else jnp.sum(pairs, axis=-1, keepdims=True)
    return Smoothed(log_z, message, jnp.exp(start - log_z), pairs)


def seen_by_parent(log_p: Any, known: Any) -> Any:
    """log sum_j P(i, j) x(j)."""
    return logsumexp(log_p + known, axis=1)


def shared(above: Any, seen: Any) -> Any:
    """log of a parent's probabilities over what its states saw; nothing of a state that is impossible."""
    return jnp.where(jnp.isneginf(above), -jnp.inf, above - seen)
