"""Elements of a chain or a tree that are given: the others are inferred as if the chain were cut there.

An element given as v is certain, whatever its parent is: N(v, 0). Its parent gets the density that v has,
N(v; A p + b, Q), which is a message like any other, and its children start from v. No precision is large. Source:
rauch1965smoothing.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....compiler.data.keys import given_values, is_given
from ....compiler.language.nodes import Random
from ....factors.arrays import Array
from ....factors.families.base import ExponentialFamily
from ....factors.quadrature import HALF_LOG_2PI
from ...values.plated import Placed
from ...values.scope import Scope
from .discrete_chain import LogMessages
from .gaussian_chain import LinearTransitions, Matrices, Vectors
from .small_matrices import applied, eye, inner, log_det, product, symmetric, transposed
from .transitions import Axes


class KnownElements(NamedTuple):
    """Which elements are given, by lane and with all plates in one axis, and the values, arbitrary elsewhere."""

    given: Bool[jax.Array, "time lanes"]
    flat: Bool[jax.Array, " elements"]
    value: jax.Array

    def of(self, cavity: tuple[Array, ...], marginals: tuple[Array, ...]) -> tuple[jax.Array, ...]:
        """The naturals of the marginals; elements given get no message: their belief stays what it was."""

        def own(before: Array, found: Array) -> jax.Array:
            return jnp.where(self.flat.reshape((-1,) + (1,) * (jnp.ndim(found) - 1)), before, found)

        return tuple(map(own, cavity, marginals))

    def normaliser(self, family: type[ExponentialFamily], cavity: tuple[Array, ...]) -> Float[jax.Array, ""]:
        """What the beliefs that stand for elements given add to log Z, which their log partitions take away again."""
        return jnp.sum(jnp.where(self.flat, family.from_naturals(cavity).log_partition(), 0.0))


def known_elements(node: Random, axes: Axes, scope: Scope) -> KnownElements | None:
    """The elements of a partly observed chain that data give; None of one that is not observed."""
    if is_given(node.name) not in scope.data:
        return None
    given = jnp.asarray(scope.data[is_given(node.name)], bool)
    values = jnp.asarray(scope.data[given_values(node.name)])
    if node.domain.is_real:
        values = values[..., None]
    plates = node.plates
    return KnownElements(axes.lanes(Placed(given, plates)), given.ravel(), axes.lanes(Placed(values, plates)))


class CutLinks(NamedTuple):
    """What generates each element where some are given, the messages of other factors, and what these add to log Z."""

    links: LinearTransitions
    precision: Matrices
    shift: Vectors
    log_z: Float[jax.Array, "time lanes"]


def cut(
    known: KnownElements, links: LinearTransitions, weight: Matrices, precision: Matrices, shift: Vectors
) -> CutLinks:
    """A Gaussian chain with what is given put in; `weight` is the inverse of Q."""
    given, vectors, matrices = known.given, known.given[:, None], known.given[:, None, None]
    error = jnp.where(vectors, known.value - links.b, 0.0)
    weighted = applied(weight, error)
    back = transposed(links.a)
    told = LinearTransitions(
        jnp.where(matrices, 0.0, links.a),
        jnp.where(vectors, known.value, links.b),
        jnp.where(matrices, 0.0, links.q),
        links.e_matrix + jnp.where(matrices, symmetric(product(product(back, weight), links.a)), 0.0),
        links.e + jnp.where(vectors, applied(back, weighted), 0.0),
    )
    density = 0.5 * log_det(weight) - links.b.shape[-2] * HALF_LOG_2PI - 0.5 * inner(error, weighted)
    return CutLinks(
        told,
        jnp.where(matrices, 0.0, precision),
        jnp.where(vectors, 0.0, shift),
        jnp.where(given, density, 0.0),
    )


def invertible(known: KnownElements, covariance: Matrices) -> Matrices:
    """The covariances, with the identity for elements given, which have none."""
    return jnp.where(known.given[:, None, None], eye(covariance.shape[-2]), covariance)


def in_given_states(known: KnownElements, outside: LogMessages) -> LogMessages:
    """The messages of the other factors to the states of a discrete chain: elements given are in one state alone."""
    states = jnp.arange(outside.shape[1])[:, None]
    certain = jnp.where(states == known.value.astype(jnp.int32)[:, None], 0.0, -jnp.inf)
    return jnp.where(known.given[:, None], certain, outside)
