"""Trees: the messages of chains, over parents given by data. The program is the same for every tree of one size.

Elements are visited one after the other, children before parents and then parents before children, in an order
computed from the parents: elements by depth. A root is a child whose parent tells it nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from . import discrete_chain
from .gaussian_chain import Above, Links, down, up

logsumexp = jax.scipy.special.logsumexp


class Tree(NamedTuple):
    """The parents, which elements are roots, and the elements with parents before children."""

    parent: Any
    root: Any
    order: Any


def tree_of(parent: Any) -> Tree:
    """The order of a tree: its depths by pointer doubling (after n rounds a pointer is 2^n elements above)."""
    size = parent.shape[0]
    places = jnp.arange(size, dtype=parent.dtype)

    def double(_, carry):
        above, depth = carry
        return above[above], depth + depth[above]

    start = parent, (parent != places).astype(jnp.int32)
    _, depth = jax.lax.fori_loop(0, max(1, (size - 1).bit_length()), double, start)
    return Tree(parent, parent == places, jnp.argsort(depth))


def gaussian_messages(tree: Tree, links: Links, precision: Any, shift: Any) -> tuple[Any, Any]:
    """By element what it knows but for its parent; `links` of roots have a = 0 and no e."""

    def step(known, i):
        link = jax.tree.map(lambda array: array[i], links)
        messages = up(link, known[0][i], known[1][i])
        above = tree.parent[i]
        return tuple(k.at[above].add(message) for k, message in zip(known, messages, strict=True)), None

    return jax.lax.scan(step, (precision, shift), tree.order, reverse=True)[0]


def gaussian_marginals(tree: Tree, above: Above) -> tuple[Any, Any]:
    """The mean and covariance of each element."""

    def step(found, i):
        parent = tuple(f[tree.parent[i]] for f in found)
        here = down(jax.tree.map(lambda array: array[i], above), *parent)
        return tuple(f.at[i].set(value) for f, value in zip(found, here, strict=True)), None

    nothing = jnp.zeros_like(above.shift), jnp.zeros_like(above.covariance)
    return jax.lax.scan(step, nothing, tree.order)[0]


def smooth(tree: Tree, first: Any, table: Any, node: Any) -> discrete_chain.Smoothed:
    """Sums over discrete states, in logarithms: as `discrete_chain.smooth`, the table with one entry by element.

    `first` of the result holds the summed probabilities of the roots.
    """
    lead = jnp.zeros(node.shape[0], jnp.int32) if table.shape[0] == 1 else jnp.arange(node.shape[0])

    def climb(known, i):
        seen = discrete_chain.seen_by_parent(table[lead[i]], known[i])
        message = jnp.where(tree.root[i], 0.0, seen)
        return known.at[tree.parent[i]].add(message), seen

    known, seen_in_order = jax.lax.scan(climb, node, tree.order, reverse=True)
    seen = jnp.zeros_like(node).at[tree.order].set(seen_in_order)
    start = first + known
    log_z = jnp.sum(jnp.where(tree.root[:, None], logsumexp(start, axis=1), 0.0), axis=0)

    def descend(carry, i):
        found, share, reached = carry
        here = discrete_chain.shared(found[tree.parent[i]], seen[i])
        arrived = jnp.where(tree.root[i], first, logsumexp(table[lead[i]] + here[:, None], axis=0))
        belief = arrived + known[i]
        belief = belief - jnp.where(tree.root[i], logsumexp(belief, axis=0), 0.0)
        return (found.at[i].set(belief), share.at[i].set(here), reached.at[i].set(arrived)), None

    zeros = jnp.zeros_like(node)
    (found, share, reached), _ = jax.lax.scan(descend, (zeros, zeros, zeros), tree.order)
    pairs = jnp.exp(table + share[:, :, None] + known[:, None])
    pairs = jnp.where(tree.root[:, None, None, None], 0.0, pairs)
    pairs = pairs if table.shape[0] == pairs.shape[0] else jnp.sum(pairs, axis=0, keepdims=True)
    pairs = pairs if table.shape[-1] == pairs.shape[-1] else jnp.sum(pairs, axis=-1, keepdims=True)
    roots = jnp.sum(jnp.where(tree.root[:, None, None], jnp.exp(found), 0.0), axis=0)
    return discrete_chain.Smoothed(log_z, reached + known - node, roots, pairs)
