"""Gaussian chains: messages up (from the end) in information form, marginals down (from the start), both exact.

Element t is N(s; A p + b, Q) exp(-p' E p / 2 + e' p) of its parent p, times the message exp(k' s - s' K s / 2) of all
other factors to it; the first element has A = 0. Going up, (K, k) at an element plus what came from its children makes
(L, l), and with S = (I + Q L)^-1 the parent receives E + A' L S A and e + (S A)' (l - L b). Going down, an element
given its parent is N(G p + g, R) with R = S Q, G = S A, g = R l + S b, so that means and covariances are sums without a
subtraction anywhere. Arrays have time first and lanes (independent chains) last. Source: rauch1965smoothing.

Two links that follow one another are one link from the first's parent to the second's child, and two elements given
their parents one element given the first's parent. Accelerators put the steps of a chain together in a tree of such
pairs: twice the work, in as many steps as the logarithm of the time has (sarkka2021temporal).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .conditioned import conditioned
from .in_pairs import in_pairs
from .small_matrices import applied, product, transposed

Vectors: TypeAlias = Float[jax.Array, "*time D lanes"]
Matrices: TypeAlias = Float[jax.Array, "*time D D lanes"]


class LinearTransitions(NamedTuple):
    """What generates each element from its parent: see the module. With or without the axis of time."""

    a: Matrices
    b: Vectors
    q: Matrices
    e_matrix: Matrices
    e: Vectors


class Above(NamedTuple):
    """An element given its parent: N(G p + g, R)."""

    gain: Matrices
    shift: Vectors
    covariance: Matrices


def up(link: LinearTransitions, precision: Matrices, shift: Vectors) -> tuple[Matrices, Vectors]:
    """The message (J, j) to the parent, from everything that an element knows but for its parent."""
    own = conditioned(link.q, link.b, precision, shift)
    back = transposed(link.a)
    return link.e_matrix + product(back, product(own.precision, link.a)), link.e + applied(back, own.shift)


def given_parent(
    link: LinearTransitions, precision: Matrices, shift: Vectors
) -> tuple[Above, Float[jax.Array, "*time lanes"]]:
    """Each element given its parent, and the logarithm of the part of log Z that it adds."""
    own = conditioned(link.q, link.b, precision, shift)
    return Above(product(own.shrink, link.a), own.mean, own.covariance), own.log_z


def down(above: Above, mean: Vectors, covariance: Matrices) -> tuple[Vectors, Matrices]:
    """The marginal of an element from that of its parent."""
    spread = product(product(above.gain, covariance), transposed(above.gain))
    return applied(above.gain, mean) + above.shift, spread + above.covariance


def chain_messages(links: LinearTransitions, precision: Matrices, shift: Vectors) -> tuple[Matrices, Vectors]:
    """By element what it knows but for its parent, (L, l), from the messages (K, k) of the other factors."""
    if in_pairs(precision.size):
        return messages_in_pairs(links, precision, shift)

    def through(
        arriving: tuple[Matrices, Vectors], element: tuple[LinearTransitions, tuple[Matrices, Vectors]]
    ) -> tuple[tuple[Matrices, Vectors], tuple[Matrices, Vectors]]:
        link, (own_precision, own_shift) = element
        known = own_precision + arriving[0], own_shift + arriving[1]
        return up(link, *known), known

    nothing = jnp.zeros_like(precision[0]), jnp.zeros_like(shift[0])
    return jax.lax.scan(through, nothing, (links, (precision, shift)), reverse=True)[1]


def chain_marginals(above: Above) -> tuple[Vectors, Matrices]:
    """The mean and covariance of each element."""
    if in_pairs(above.covariance.size):
        return marginals_in_pairs(above)

    def through(
        parent: tuple[Vectors, Matrices], element: Above
    ) -> tuple[tuple[Vectors, Matrices], tuple[Vectors, Matrices]]:
        marginal = down(element, *parent)
        return marginal, marginal

    nothing = jnp.zeros_like(above.shift[0]), jnp.zeros_like(above.covariance[0])
    return jax.lax.scan(through, nothing, above)[1]


def messages_in_pairs(links: LinearTransitions, precision: Matrices, shift: Vectors) -> tuple[Matrices, Vectors]:
    """As `chain_messages`: the message of an element is a part of the link to its child, so that a pair needs none."""

    def following(array: jax.Array, *own: jax.Array) -> jax.Array:
        """What the link to the child of each element has, with what the element has; the last has no child."""
        later = jnp.concatenate([array[1:], jnp.zeros_like(array[:1])])
        return later + sum(own)

    links = jax.tree.map(lambda array, own: jnp.broadcast_to(array, own.shape), links, _shapes(precision, shift))
    to_child = LinearTransitions(
        following(links.a),
        following(links.b),
        following(links.q),
        following(links.e_matrix, precision),
        following(links.e, shift),
    )
    known = jax.lax.associative_scan(lambda later, earlier: joined(earlier, later), to_child, reverse=True)
    return known.e_matrix, known.e


def _shapes(precision: Matrices, shift: Vectors) -> LinearTransitions:
    return LinearTransitions(precision, shift, precision, precision, shift)


def joined(first: LinearTransitions, second: LinearTransitions) -> LinearTransitions:
    """Two links that follow one another, as one: the element between them integrated out."""
    between, _ = given_parent(first, second.e_matrix, second.e)
    mean, covariance = down(Above(second.a, second.b, second.q), between.shift, between.covariance)
    e_matrix, e = up(first, second.e_matrix, second.e)
    return LinearTransitions(product(second.a, between.gain), mean, covariance, e_matrix, e)


def marginals_in_pairs(above: Above) -> tuple[Vectors, Matrices]:
    """As `chain_marginals`."""

    def pair(first: Above, second: Above) -> Above:
        return Above(product(second.gain, first.gain), *down(second, first.shift, first.covariance))

    found = jax.lax.associative_scan(pair, above)
    return found.shift, found.covariance
