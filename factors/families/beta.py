"""The Beta family on the unit interval."""

from __future__ import annotations

from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlog1py, xlogy

from ..moments import Unit
from ..special import digamma, lgamma
from .base import Array, ExponentialFamily, Naturals, floating, host, levels
from .dirichlet_functions import dirichlet_entropy, dirichlet_fisher_solve, solve_concentration


@final
class Beta(ExponentialFamily):
    """Beta(x; a, b) = x^(a - 1) (1 - x)^(b - 1) / B(a, b), with statistics log x and log(1 - x).

    `a_minus_one` and `b_minus_one` are shaped plates.
    """

    a_minus_one: Array
    b_minus_one: Array
    kind: ClassVar[str] = "unit"
    natural_ndims: ClassVar[tuple[int, ...]] = (0, 0)

    @property
    def a(self) -> Array:
        """The exponent of x, plus one."""
        return 1.0 + self.a_minus_one

    @property
    def b(self) -> Array:
        """The exponent of 1 - x, plus one."""
        return 1.0 + self.b_minus_one

    @classmethod
    def from_parameters(cls, *, a: Array, b: Array) -> Self:
        return cls(a - 1.0, b - 1.0)

    def parameters(self) -> dict[str, Array]:
        return {"a": self.a, "b": self.b}

    def mean(self) -> Array:
        return self.a / (self.a + self.b)

    def variance(self) -> Array:
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
    def stats_of(cls, value: Array) -> Naturals:
        """log x and log(1 - x)."""
        value = floating(value)
        return jnp.log(value), jnp.log1p(-value)

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros_like(floating(value))

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        return _split(dirichlet_fisher_solve(self._concentration, jnp.stack(tangent, axis=-1)))

    def log_density(self, value: Array) -> Array:
        return xlogy(self.a_minus_one, value) + xlog1py(self.b_minus_one, -value) - self.log_partition()

    def entropy(self) -> Array:
        return dirichlet_entropy(self._concentration)

    def is_proper(self) -> Array:
        return (self.a > 0.0) & (self.b > 0.0)

    def moments(self) -> Unit:
        return Unit(*self.expected_stats())

    @classmethod
    def moments_at(cls, value: Array) -> Unit:
        """The moments of a point."""
        return Unit(*cls.stats_of(value))

    @staticmethod
    def pull(moments: Unit, gradient: Unit) -> Naturals:
        return gradient.log, gradient.log_complement

    def quantile(self, level: float | np.ndarray) -> np.ndarray:
        import scipy.special  # here: it takes a third of a second to import

        a_minus_one, b_minus_one = host(*self.naturals())
        return scipy.special.betaincinv(1.0 + a_minus_one, 1.0 + b_minus_one, levels(level, len(self.plates)))

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        own = floating(self.a)
        return jax.random.beta(key, own, self.b, (*shape, *self.plates), own.dtype)

    @property
    def _concentration(self) -> Array:
        return jnp.stack(jnp.broadcast_arrays(self.a, self.b), axis=-1)


def _split(pair: Array) -> Naturals:
    return pair[..., 0], pair[..., 1]
