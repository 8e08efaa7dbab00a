"""The prior of the matrix as samplers use it: odds of an entry, how many features a row has alone, its own numbers."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from ....engine.sampling.conditionals.slices import slice_step
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError
from ..likelihoods.learned import Gamma, check_gamma, draw_gamma, first_gamma, gamma_given
from .state import State


class RowPrior(Protocol):
    """The prior of one row given all others, for steps given values of features."""

    @property
    def features(self) -> int | None:
        """How many there are, None where it has no end."""
        ...

    def log_odds(self, others: Array, rows: int, state: State) -> Array:
        """(places,) log odds of entries, minus infinity where a feature of this row alone is born and dies with it."""
        ...

    def rate_alone(self, rows: int, state: State) -> Array:
        """The row has Poisson(this) features that no other row has."""
        ...


class OfRow(NamedTuple):
    """A `RowPrior` of numbers: for laws that know more of other rows than how many have a feature.

    Attributes:
        odds: (places,) log odds of entries.
        rate: () of features that the row has alone.
        features: as of the law.
    """

    odds: Array
    rate: Array
    features: int | None = None

    def log_odds(self, others: Array, rows: int, state: State) -> Array:
        """The numbers given."""
        return self.odds

    def rate_alone(self, rows: int, state: State) -> Array:
        """The number given."""
        return self.rate


@dataclasses.dataclass(frozen=True)
class Law:
    """The Indian buffet process, of one parameter, two or three, or with `features` its finite parent.

    Args:
        mass: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        concentration: the same; 1 for the process of one parameter.
        features: None, or the fixed number of features of the finite beta-Bernoulli model, whose weights are integrated
            out.
        discount: a number given, at least 0 and below 1: of the process of three parameters, `StableBeta`.

    Raises:
        ModelError: numbers that are not positive, a discount out of range, or one of the finite prior.

    Source: griffiths2011indian, ghahramani2007bayesian, teh2009indian.
    """

    mass: Gamma = (1.0, 1.0)
    concentration: Gamma = 1.0
    features: int | None = None
    discount: float = 0.0

    def __post_init__(self) -> None:
        check_gamma("Law(mass=)", self.mass)
        check_gamma("Law(concentration=)", self.concentration)
        if not 0.0 <= self.discount < 1.0:
            raise ModelError(f"Law(discount=): give a number of at least 0 and below 1; found {self.discount!r}.")
        if self.discount and self.features is not None:
            raise ModelError(f"Law(features={self.features}): the finite prior has no discount; found {self.discount}.")

    def draw(self, key: Key) -> tuple[Array, Array]:
        """Mass and concentration from their priors."""
        keys = jax.random.split(key)
        return draw_gamma(keys[0], self.mass), draw_gamma(keys[1], self.concentration)

    def first(self) -> tuple[Array, Array]:
        """Where chains begin: the numbers given, or the means of their priors."""
        return first_gamma(self.mass), first_gamma(self.concentration)

    def of_row(self, row: Array, active: Array, state: State) -> RowPrior:
        """The prior of a row given all others: rows are exchangeable, and how many have a feature is enough."""
        return self

    def log_odds(self, others: Array, rows: int, state: State) -> Array:
        """Log odds of an entry given how many other rows have the feature; minus infinity where that is none and a
        feature of one row alone is born and dies with it."""
        if self.features is not None:
            return jnp.log(others + state.mass / self.features) - jnp.log(rows - others)
        d = self.discount
        return jnp.log(jnp.maximum(others - d, 0.0)) - jnp.log(rows - 1 - others + state.concentration + d)

    def rate_alone(self, rows: int, state: State) -> Array:
        """A row has Poisson(this) features that no other row has; none under the finite prior."""
        if self.features is not None:
            return jnp.zeros(())
        if self.discount:
            return state.mass * firsts(state.concentration, rows, self.discount)[-1]
        return state.mass * state.concentration / (state.concentration + rows - 1.0)

    def log_probability(self, owners: Array, rows: int, state: State) -> Array:
        """Log probability of a matrix with so many rows in each place.

        Under the process of the matrix with its columns in an order chosen at random among its `K!`: `(mass c)^K /
        K! exp(-mass H) prod_k B(m_k, rows - m_k + c)`, so that a place more or less for the same columns changes
        nothing; with a discount d, `Gamma(1 + c) / (Gamma(1 - d) Gamma(c + d)) B(m_k - d, rows - m_k + c + d)` for each
        column. Under the finite prior of the matrix as it stands.
        """
        if self.features is not None:
            a = state.mass / self.features
            return jnp.sum(jnp.log(a) + _log_beta(owners + a, rows - owners + 1.0))
        used, c, d = owners > 0, state.concentration, self.discount
        number = jnp.sum(used)
        columns = jnp.where(used, _log_beta(jnp.maximum(owners, 1) - d, rows - owners + c + d), 0.0)
        log_first = gammaln(1.0 + c) - gammaln(1.0 - d) - gammaln(c + d) if d else jnp.log(c)
        mass = number * (jnp.log(state.mass) + log_first) - state.mass * harmonic(c, rows, d)
        return mass + jnp.sum(columns) - gammaln(number + 1.0)

    def update(self, key: Key, state: State) -> State:
        """Mass and concentration drawn given the matrix."""
        return self.update_given(key, jnp.sum(state.active, axis=0).astype(float), state.active.shape[0], state)

    def update_given(self, key: Key, owners: Array, rows: int, state: State) -> State:
        """The same from how many of so many rows have each feature."""
        keys = jax.random.split(key)
        if isinstance(self.concentration, tuple):
            state = state._replace(concentration=self._moved(keys[0], "concentration", owners, rows, state))
        if not isinstance(self.mass, tuple):
            return state
        if self.features is not None:
            return state._replace(mass=self._moved(keys[1], "mass", owners, rows, state))
        rate = harmonic(state.concentration, rows, self.discount)
        return state._replace(mass=gamma_given(keys[1], self.mass, jnp.sum(owners > 0), rate))

    def _moved(self, key: Key, name: str, owners: Array, rows: int, state: State) -> Array:
        """By a transition of a slice sampler in its logarithm.

        Ratios of gamma functions are products: `Gamma(rows - m + c) / Gamma(rows + c)` that of `1 / (c + j)` over j =
        rows - m .. rows - 1, and `Gamma(m + a) / Gamma(rows + 1 + a)` that over j = m .. rows. So the density of a
        number x is `x^K prod_j (x + j)^-w_j`, w_j how many columns have the factor j, times what the mass adds. With a
        discount d, `Gamma(rows - m + x + d) / Gamma(x + d)` is that of `x + d + j` over j = 0 .. rows - m - 1.
        """
        shape, rate = getattr(self, name)
        j = jnp.arange(rows + 1)
        finite, used = self.features is not None, owners > 0
        within = (owners <= j[:, None]) if finite else (used & (j[:, None] >= rows - owners) & (j[:, None] < rows))
        times, number = jnp.sum(within, axis=1), owners.size if finite else jnp.sum(used)

        def log_density(z: Array) -> Array:
            x = jnp.exp(z)
            a = x if self.features is None else x / self.features
            columns = number * z - jnp.sum(times * jnp.log(a + j))
            if self.discount:
                least = jnp.sum(used & (j[:, None] < rows - owners), axis=1)
                columns = jnp.sum(least * jnp.log(x + self.discount + j)) - number * jnp.sum(jnp.log(x + j[1:-1]))
            mass = 0.0 if finite else -state.mass * harmonic(x, rows, self.discount)
            return columns + mass + shape * z - rate * x

        z, _ = slice_step(key, log_density, jnp.log(getattr(state, name)), jnp.ones(()))
        return jnp.exp(z)


def harmonic(concentration: Array, rows: int, discount: float = 0.0) -> Array:
    """The expected number of features for a mass of 1: `sum of c / (c + j)` over j = 0 .. rows - 1, or of `firsts`."""
    if discount:
        return jnp.sum(firsts(concentration, rows, discount))
    return jnp.sum(concentration / (concentration + jnp.arange(rows)))


def firsts(concentration: Array, rows: int, discount: float) -> Array:
    """(rows,) how many features each row is the first to have, for a mass of 1: the product of `(c + discount + j - 1)
    / (c + j)` over all j below the row's number, which begins at 0."""
    j = jnp.arange(1, rows)
    steps = (concentration + discount + j - 1.0) / (concentration + j)
    return jnp.concatenate([jnp.ones(1), jnp.cumprod(steps)])


def _log_beta(first: Array, second: Array) -> Array:
    """By three log gammas: `jax.scipy.special.betaln` has six digits for arguments near ten."""
    return gammaln(first) + gammaln(second) - gammaln(first + second)
