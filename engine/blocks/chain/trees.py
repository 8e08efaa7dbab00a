"""Trees: the messages of chains, over parents given by data. The program is the same for every tree of one size.

Elements are visited one after the other, children before parents and then parents before children, in an order
computed from the parents: elements by depth. A root is a child to which its parent's value is no information.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from . import discrete_chain
from .discrete_chain import LogMessages, SmoothedStates
from .gaussian_chain import Above, LinearTransitions, Matrices, Vectors, down, up

logsumexp = jax.scipy.special.logsumexp


class RootedTree(NamedTuple):
    """The parents, which elements are roots, and the elements with parents before children."""

    parent: Int[jax.Array, " elements"]
    root: Bool[jax.Array, " elements"]
    order: Int[jax.Array, " elements"]


def tree_of(parent: Int[jax.Array, " elements"]) -> RootedTree:
    """The order of a tree: its depths by pointer doubling (after n rounds a pointer is 2^n elements above)."""
    size = parent.shape[0]
    places = jnp.arange(size, dtype=parent.dtype)

    def double(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        above, depth = carry
        return above[above], depth + depth[above]

    start = parent, (parent != places).astype(jnp.int32)
    _, depth = jax.lax.fori_loop(0, max(1, (size - 1).bit_length()), double, start)
    return RootedTree(parent, parent == places, jnp.argsort(depth))


def gaussian_messages(
    tree: RootedTree, links: LinearTransitions, precision: Matrices, shift: Vectors
) -> tuple[Matrices, Vectors]:
    """By element what it knows but for its parent; `links` of roots have a = 0 and no e."""

    def step(known: tuple[Matrices, Vectors], i: Int[jax.Array, ""]) -> tuple[tuple[Matrices, Vectors], None]:
        link = jax.tree.map(lambda array: array[i], links)
        precision, shift = known
        more_precision, more_shift = up(link, precision[i], shift[i])
        above = tree.parent[i]
        return (precision.at[above].add(more_precision), shift.at[above].add(more_shift)), None

    return jax.lax.scan(step, (precision, shift), tree.order, reverse=True)[0]


def gaussian_marginals(tree: RootedTree, above: Above) -> tuple[Vectors, Matrices]:
    """The mean and covariance of each element."""

    def step(marginals: tuple[Vectors, Matrices], i: Int[jax.Array, ""]) -> tuple[tuple[Vectors, Matrices], None]:
        means, covariances = marginals
        parent = tree.parent[i]
        mean, covariance = down(jax.tree.map(lambda array: array[i], above), means[parent], covariances[parent])
        return (means.at[i].set(mean), covariances.at[i].set(covariance)), None

    nothing = jnp.zeros_like(above.shift), jnp.zeros_like(above.covariance)
    return jax.lax.scan(step, nothing, tree.order)[0]


def smooth(
    tree: RootedTree,
    first: Float[jax.Array, "states lanes"],
    table: Float[jax.Array, "time states states lanes"],
    node: LogMessages,
) -> SmoothedStates:
    """Sums over discrete states, in logarithms: as `discrete_chain.smooth`, the table with one entry by element.

    `first` of the result holds the summed probabilities of the roots.
    """
    lead = jnp.zeros(node.shape[0], jnp.int32) if table.shape[0] == 1 else jnp.arange(node.shape[0])

    def climb(known: jax.Array, i: Int[jax.Array, ""]) -> tuple[jax.Array, jax.Array]:
        seen = discrete_chain.seen_by_parent(table[lead[i]], known[i])
        message = jnp.where(tree.root[i], 0.0, seen)
        return known.at[tree.parent[i]].add(message), seen

    known, seen_in_order = jax.lax.scan(climb, node, tree.order, reverse=True)
    seen = jnp.zeros_like(node).at[tree.order].set(seen_in_order)
    start = first + known
    log_z = jnp.sum(jnp.where(tree.root[:, None], logsumexp(start, axis=1), 0.0), axis=0)

    def descend(
        carry: tuple[jax.Array, jax.Array, jax.Array], i: Int[jax.Array, ""]
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], None]:
        beliefs, share, reached = carry
        shared = discrete_chain.shared(beliefs[tree.parent[i]], seen[i])
        arrived = jnp.where(tree.root[i], first, logsumexp(table[lead[i]] + shared[:, None], axis=0))
        belief = arrived + known[i]
        belief = belief - jnp.where(tree.root[i], logsumexp(belief, axis=0), 0.0)
        return (beliefs.at[i].set(belief), share.at[i].set(shared), reached.at[i].set(arrived)), None

    zeros = jnp.zeros_like(node)
    (beliefs, share, reached), _ = jax.lax.scan(descend, (zeros, zeros, zeros), tree.order)
    pairs = jnp.exp(table + share[:, :, None] + known[:, None])
    pairs = jnp.where(tree.root[:, None, None, None], 0.0, pairs)
    pairs = pairs if table.shape[0] == pairs.shape[0] else jnp.sum(pairs, axis=0, keepdims=True)
    pairs = pairs if table.shape[-1] == pairs.shape[-1] else jnp.sum(pairs, axis=-1, keepdims=True)
    roots = jnp.sum(jnp.where(tree.root[:, None, None], jnp.exp(beliefs), 0.0), axis=0)
    return SmoothedStates(log_z, reached + known - node, roots, pairs)
