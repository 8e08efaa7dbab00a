"""Prior probabilities of structures that the model takes as inputs."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Protocol

import jax.numpy as jnp
from jaxtyping import Bool, Int

from ...factors.arrays import Array
from ...factors.calls import call_checked
from ...factors.special import lgamma
from .asked import check_number


class Prior(Protocol):
    """The law of an array of booleans, or of the sizes of classes, up to a constant; `of` says which."""

    of: ClassVar[str]

    def log_probability(self, structure: Array) -> Array: ...


@dataclasses.dataclass(frozen=True)
class Independent:
    """See `independent`."""

    of: ClassVar[str] = "booleans"

    probability: float

    def log_probability(self, structure: Bool[Array, "..."]) -> Array:
        odds = jnp.log(self.probability) - jnp.log1p(-self.probability)
        return odds * jnp.sum(structure)


@dataclasses.dataclass(frozen=True)
class IndianBuffet:
    """See `indian_buffet`."""

    of: ClassVar[str] = "booleans"

    mass: float

    def log_probability(self, structure: Bool[Array, "row feature"]) -> Array:
        rows, most = structure.shape
        owners = jnp.sum(structure, axis=0)
        some = jnp.maximum(owners, 1).astype(float)
        features = jnp.sum(owners > 0).astype(float)
        own = jnp.log(self.mass) + lgamma(rows - some + 1.0) + lgamma(some) - lgamma(rows + 1.0)
        return jnp.sum(jnp.where(owners > 0, own, 0.0)) + lgamma(most - features + 1.0)


@dataclasses.dataclass(frozen=True)
class ChineseRestaurant:
    """See `chinese_restaurant`."""

    of: ClassVar[str] = "classes"

    concentration: float

    def log_probability(self, size: Int[Array, " classes"]) -> Array:
        own = jnp.log(self.concentration) + lgamma(jnp.maximum(size, 1).astype(float))
        return jnp.sum(jnp.where(size > 0, own, 0.0)) + lgamma(jnp.sum(size == 0) + 1.0)


@call_checked
def independent(probability: float) -> Independent:
    """The law of booleans that are true with this probability each, between 0 and 1, for `prior=` of a move."""
    return Independent(check_number("independent(probability)", probability, 1.0))


@call_checked
def indian_buffet(mass: float) -> IndianBuffet:
    """The Indian buffet process of this positive `mass`, for `prior=` of a move of booleans (row, feature).

    P(features) = mass^K / K_1! K_2! ... exp(-mass (1 + 1/2 + ... 1/N)) prod_k (N - m_k)! (m_k - 1)! / N!, m_k the rows
    that have feature k and K_h how many features are equal, where the places of features are chosen at random. It is
    restricted to so many features as the array has. Source: griffiths2011indian.
    """
    return IndianBuffet(check_number("indian_buffet(mass)", mass))


@call_checked
def chinese_restaurant(concentration: float) -> ChineseRestaurant:
    """The Chinese restaurant process of this positive `concentration`, for `prior=` of a move of classes.

    P(partition) is proportional to concentration^K prod_k (n_k - 1)!, n_k the sizes of its K classes, whose labels are
    chosen at random. It is restricted to so many classes as there are labels. Source: neal2000markov.
    """
    return ChineseRestaurant(check_number("chinese_restaurant(concentration)", concentration))
