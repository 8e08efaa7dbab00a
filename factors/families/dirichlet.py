"""The Dirichlet family on probability vectors."""

from __future__ import annotations

from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy

from .. import draws
from ..arrays import Array, Key, Numeric
from ..moments import Simplex
from ..special import digamma, lgamma
from .base import Arrays, ExponentialFamily, Levels, Vectors, floating, host, levels
from .bijections import Bijection, broken_stick
from .dirichlet_functions import dirichlet_entropy, dirichlet_fisher_solve, solve_concentration


@final
class Dirichlet(ExponentialFamily):
    """Dirichlet(x; c) = gamma(sum c) / prod gamma(c_k) prod x_k^(c_k - 1), with statistics log x_k.

    `concentration_minus_one` is c - 1, shaped plates + (K,).
    """

    concentration_minus_one: Vectors
    kind: ClassVar[str] = "simplex"
    natural_ndims: ClassVar[tuple[int, ...]] = (1,)

    @property
    def concentration(self) -> Vectors:
        """The concentration, shaped plates + (K,)."""
        return 1.0 + self.concentration_minus_one

    @classmethod
    def from_parameters(cls, *, concentration: Vectors) -> Self:
        return cls(concentration - 1.0)

    def parameters(self) -> dict[str, Array]:
        return {"concentration": self.concentration}

    def mean(self) -> Vectors:
        return self.concentration / jnp.sum(self.concentration, axis=-1, keepdims=True)

    def variance(self) -> Vectors:
        mean = self.mean()
        return mean * (1.0 - mean) / (1.0 + jnp.sum(self.concentration, axis=-1, keepdims=True))

    def log_partition(self) -> Array:
        concentration = self.concentration
        return jnp.sum(lgamma(concentration), axis=-1) - lgamma(jnp.sum(concentration, axis=-1))

    def expected_stats(self) -> Arrays:
        concentration = self.concentration
        return (digamma(concentration) - digamma(jnp.sum(concentration, axis=-1, keepdims=True)),)

    @classmethod
    def from_stats(cls, stats: Arrays) -> Self:
        """Newton's iteration with the matrix inversion lemma; source minka2000dirichlet."""
        return cls.from_parameters(concentration=solve_concentration(stats[0]))

    @classmethod
    def from_moments(cls, moments: Simplex) -> Self:
        return cls.from_stats((moments.log,))

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """The uniform distribution."""
        return cls.uniform((), event)

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor(event)

    @classmethod
    def first_moments(cls, event: int | None = None) -> Simplex:
        return Simplex(jnp.full((event or 1,), -jnp.log(1.0 * (event or 1))))

    @classmethod
    def legal_value(cls, event: int | None = None) -> np.ndarray:
        return np.full(event or 1, 1.0 / (event or 1))

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return broken_stick(event or 1)

    @classmethod
    def stats_of(cls, value: Array) -> Arrays:
        """log x."""
        return (jnp.log(floating(value)),)

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros_like(floating(value)[..., 0])

    def fisher_solve(self, tangent: Arrays) -> Arrays:
        return (dirichlet_fisher_solve(self.concentration, tangent[0]),)

    def log_density(self, value: Array) -> Array:
        return jnp.sum(xlogy(self.concentration_minus_one, value), axis=-1) - self.log_partition()

    def entropy(self) -> Array:
        return dirichlet_entropy(self.concentration)

    def is_proper(self) -> Array:
        return jnp.all(self.concentration > 0.0, axis=-1)

    def moments(self) -> Simplex:
        return Simplex(*self.expected_stats())

    @classmethod
    def moments_at(cls, value: Array) -> Simplex:
        """The moments of a point."""
        return Simplex(*cls.stats_of(value))

    @staticmethod
    def pull(moments: Simplex, gradient: Simplex) -> Arrays:
        return (gradient.log,)

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """The quantile of each coordinate (its marginal is a Beta), shaped as the levels, then plates + (K,)."""
        import scipy.special  # here: it takes a third of a second to import

        concentration = 1.0 + host(self.concentration_minus_one)[0]
        rest = concentration.sum(axis=-1, keepdims=True) - concentration
        return scipy.special.betaincinv(concentration, rest, levels(level, len(self.plates) + 1))

    def mode(self) -> Array:
        """(concentration - 1) over its sum; NaN where a concentration is one or less: there is none inside."""
        more = self.concentration - 1.0
        inside = jnp.all(more > 0.0, axis=-1, keepdims=True)
        return jnp.where(inside, more / jnp.sum(more, axis=-1, keepdims=True), jnp.nan)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        own = floating(self.concentration)
        drawn = draws.log_gamma(key, jnp.broadcast_to(own, (*shape, *own.shape)))
        return jax.nn.softmax(drawn, axis=-1).astype(own.dtype)
