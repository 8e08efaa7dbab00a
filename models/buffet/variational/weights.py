"""Beliefs about how common features are: each feature's weight by itself, or the sticks whose products they are."""

from __future__ import annotations

import abc
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ....factors.arrays import Array
from ....factors.errors import UnsupportedError
from ..samplers.law import Law
from . import beliefs
from .bounds import beyond_places, multinomial, stick_parameters, taylor

PASSES = 3  # of updates of the sticks, each given which stick stops a row


class Beliefs(NamedTuple):
    """Beta beliefs of weights or sticks, and a gamma belief of the mass.

    Attributes:
        first, second: (places,) of each beta distribution.
        mass: of the prior.
    """

    first: Float[Array, " place"]
    second: Float[Array, " place"]
    mass: beliefs.Positive


@dataclasses.dataclass(frozen=True)
class Weights(abc.ABC):
    """Weights or sticks `w_k ~ Beta(mass unit, 1)`; abstract.

    Args:
        law: the prior.
        places: the number of features.
    """

    law: Law
    places: int

    @property
    @abc.abstractmethod
    def unit(self) -> float:
        """What the mass is multiplied with."""

    @abc.abstractmethod
    def logs(self, now: Beliefs) -> tuple[Array, Array]:
        """(places,) twice: `E log` of the probability that a row has each feature, and of that it has not, or less."""

    @abc.abstractmethod
    def weighted(self, now: Beliefs, ones: Array, rows: int) -> Beliefs:
        """Weights given expected numbers of rows with each feature."""

    @abc.abstractmethod
    def ordered(self, now: Beliefs, ones: Array, rows: int) -> tuple[Beliefs, Array]:
        """The weights updated, and (places,) the order of features that they are for."""

    @abc.abstractmethod
    def evaluated(self, now: Beliefs, ones: Array, rows: int) -> tuple[Array, Array]:
        """More than `bound` and still no more than the evidence: of the prior with so many places, and of the limit."""

    def start(self) -> Beliefs:
        """Even."""
        return Beliefs(jnp.ones(self.places), jnp.ones(self.places), beliefs.point(self.law.first()[0]))

    def massed(self, now: Beliefs) -> Beliefs:
        """The mass given the weights."""
        log_weight = beliefs.beta_logs(now.first, now.second)[0]
        count = jnp.asarray(float(self.places))
        return now._replace(mass=beliefs.positive(self.law.mass, count, -self.unit * jnp.sum(log_weight)))

    def bound(self, now: Beliefs, ones: Array, rows: int) -> Array:
        """Expected log density of weights and of entries given them, and the entropy of weights."""
        on, off = self.logs(now)
        return jnp.sum(ones * on + (rows - ones) * off) - self.divergence(now)

    def divergence(self, now: Beliefs) -> Array:
        """From the prior, of weights and mass."""
        a, b, mass = now
        on, off = beliefs.beta_logs(a, b)
        log_prior = mass.log_mean + jnp.log(self.unit) + (mass.mean * self.unit - 1.0) * on
        return jnp.sum((a - 1.0) * on + (b - 1.0) * off - beliefs.log_beta(a, b) - log_prior) + mass.divergence


@dataclasses.dataclass(frozen=True)
class Separate(Weights):
    """The finite beta-Bernoulli prior: exact expectations. Source: paisley2009nonparametric."""

    @property
    def unit(self) -> float:
        return 1.0 / self.places

    def logs(self, now: Beliefs) -> tuple[Array, Array]:
        return beliefs.beta_logs(now.first, now.second)

    def weighted(self, now: Beliefs, ones: Array, rows: int) -> Beliefs:
        return now._replace(first=now.mass.mean * self.unit + ones, second=1.0 + rows - ones)

    def ordered(self, now: Beliefs, ones: Array, rows: int) -> tuple[Beliefs, Array]:
        return self.weighted(now, ones, rows), jnp.arange(self.places)

    def evaluated(self, now: Beliefs, ones: Array, rows: int) -> tuple[Array, Array]:
        found = self.bound(now, ones, rows)
        return found, found


@dataclasses.dataclass(frozen=True)
class Sticks(Weights):
    """The Indian buffet process of one parameter by sticks, the features after the last place left out.

    Source: teh2007stick, doshivelez2009variational.
    """

    @property
    def unit(self) -> float:
        return 1.0

    def logs(self, now: Beliefs) -> tuple[Array, Array]:
        passed = beliefs.beta_logs(now.first, now.second)[0]
        return jnp.cumsum(passed), multinomial(now.first, now.second).bound

    def weighted(self, now: Beliefs, ones: Array, rows: int) -> Beliefs:
        def again(_: Array, both: tuple[Array, Array]) -> tuple[Array, Array]:
            return stick_parameters(multinomial(*both), ones, rows, now.mass.mean)

        first, second = jax.lax.fori_loop(0, PASSES, again, (now.first, now.second))
        return now._replace(first=first, second=second)

    def ordered(self, now: Beliefs, ones: Array, rows: int) -> tuple[Beliefs, Array]:
        """Places are in an order: the commoner features first, where the bound is higher so."""
        orders = jnp.stack([jnp.arange(self.places), jnp.argsort(-ones, stable=True)])
        found = jax.vmap(lambda order: self.weighted(now, ones[order], rows))(orders)
        better = jnp.argmax(jax.vmap(lambda new, order: self.bound(new, ones[order], rows))(found, orders))
        return jax.tree.map(lambda array: array[better], found), orders[better]

    def evaluated(self, now: Beliefs, ones: Array, rows: int) -> tuple[Array, Array]:
        """By the series in place of the bound that has updates."""
        on, _ = self.logs(now)
        off = taylor(now.first, now.second).lower
        found = jnp.sum(ones * on + (rows - ones) * off) - self.divergence(now)
        return found, found - rows * now.mass.mean * beyond_places(now.first, now.second)


def weights_of(law: Law, places: int) -> Weights:
    """The beliefs for a prior; UnsupportedError for the process of more parameters than one."""
    if law.features is not None:
        return Separate(law, places)
    if law.concentration != 1.0 or law.discount:
        raise UnsupportedError(
            "Mean field has the Indian buffet process of one parameter, whose sticks are independent; found "
            f"concentration={law.concentration!r}, discount={law.discount!r}. Leave them out, or run a sampler."
        )
    return Sticks(law, places)
