"""The Beta family on the unit interval."""

from __future__ import annotations

from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlog1py, xlogy

from .. import draws
from ..arrays import Array, Key, Numeric
from ..moments import Unit
from ..special import digamma, lgamma
from .base import Levels, Naturals, Number, Scalars, floating, host, levels
from .bijections import Bijection, interval
from .capabilities import TwoMomentFamily
from .dirichlet_functions import dirichlet_entropy, dirichlet_fisher_solve, solve_concentration


@final
class Beta(TwoMomentFamily):
    """Beta(x; a, b) = x^(a - 1) (1 - x)^(b - 1) / B(a, b), with statistics log x and log(1 - x).

    `a_minus_one` and `b_minus_one` are shaped plates.
    """

    a_minus_one: Scalars
    b_minus_one: Scalars
    kind: ClassVar[str] = "unit"
    natural_ndims: ClassVar[tuple[int, ...]] = (0, 0)

    @property
    def a(self) -> Scalars:
        """The exponent of x, plus one."""
        return 1.0 + self.a_minus_one

    @property
    def b(self) -> Scalars:
        """The exponent of 1 - x, plus one."""
        return 1.0 + self.b_minus_one

    @classmethod
    def from_parameters(cls, *, a: Scalars, b: Scalars) -> Self:
        return cls(a - 1.0, b - 1.0)

    def parameters(self) -> dict[str, Scalars]:
        return {"a": self.a, "b": self.b}

    def mean(self) -> Scalars:
        return self.a / (self.a + self.b)

    def variance(self) -> Scalars:
        total = self.a + self.b
        return self.a / total * (self.b / total) / (total + 1.0)

    def log_partition(self) -> Array:
        return lgamma(self.a) + lgamma(self.b) - lgamma(self.a + self.b)

    def expected_stats(self) -> Naturals:
        total = digamma(self.a + self.b)
        return digamma(self.a) - total, digamma(self.b) - total

    @classmethod
    def from_stats(cls, stats: Naturals) -> Self:
        """The Dirichlet projection of two classes; source minka2000dirichlet."""
        a, b = _split(solve_concentration(jnp.stack(stats, axis=-1)))
        return cls.from_parameters(a=a, b=b)

    @classmethod
    def from_moments(cls, moments: Unit) -> Self:
        return cls.from_stats((moments.log, moments.log_complement))

    @classmethod
    def from_mean_and_variance(cls, mean: Scalars, variance: Scalars) -> Self:
        total = mean * (1.0 - mean) / variance - 1.0
        return cls.from_parameters(a=mean * total, b=(1.0 - mean) * total)

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """The uniform distribution."""
        return cls.uniform()

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor()

    @classmethod
    def first_moments(cls, event: int | None = None) -> Unit:
        half = jnp.zeros(()) + jnp.log(0.5)
        return Unit(half, half)

    @classmethod
    def legal_value(cls, event: int | None = None) -> float | int:
        return 0.5

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return interval(0.0, 1.0)

    @classmethod
    def stats_of(cls, value: Numeric) -> Naturals:
        """log x and log(1 - x)."""
        value = floating(value)
        return jnp.log(value), jnp.log1p(-value)

    @classmethod
    def log_base(cls, value: Numeric) -> Array:
        return jnp.zeros_like(floating(value))

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        return _split(dirichlet_fisher_solve(self._concentration, jnp.stack(tangent, axis=-1)))

    def log_density(self, value: Number) -> Array:
        return xlogy(self.a_minus_one, value) + xlog1py(self.b_minus_one, -value) - self.log_partition()

    def entropy(self) -> Array:
        return dirichlet_entropy(self._concentration)

    def is_proper(self) -> Array | np.bool_ | bool:
        return (self.a > 0.0) & (self.b > 0.0)

    def moments(self) -> Unit:
        return Unit(*map(jnp.asarray, self.expected_stats()))

    @classmethod
    def moments_at(cls, value: Numeric) -> Unit:
        """The moments of a point."""
        return Unit(*map(jnp.asarray, cls.stats_of(value)))

    @staticmethod
    def pull(moments: Unit, gradient: Unit) -> Naturals:
        return gradient.log, gradient.log_complement

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        import scipy.special  # here: it takes a third of a second to import

        a_minus_one, b_minus_one = host(*self.naturals())
        return scipy.special.betaincinv(1.0 + a_minus_one, 1.0 + b_minus_one, levels(level, len(self.plates)))

    def mode(self) -> Array:
        """(a - 1) / (a + b - 2) inside, else the end of the higher density; of two equal ends the lower one."""
        inner, flat = (self.a > 1.0) & (self.b > 1.0), (self.a == 1.0) & (self.b == 1.0)
        inside = (self.a - 1.0) / jnp.where(inner, self.a + self.b - 2.0, 1.0)
        return jnp.where(inner, inside, jnp.where(flat, 0.5, jnp.where(self.a > self.b, 1.0, 0.0)))

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        pair = floating(self._concentration)
        one, other = jnp.unstack(draws.log_gamma(key, jnp.broadcast_to(pair, (*shape, *pair.shape))), axis=-1)
        return jax.nn.sigmoid(one - other).astype(pair.dtype)

    @property
    def _concentration(self) -> Array:
        return jnp.stack(jnp.broadcast_arrays(self.a, self.b), axis=-1)


def _split(pair: Array) -> Naturals:
    return pair[..., 0], pair[..., 1]
