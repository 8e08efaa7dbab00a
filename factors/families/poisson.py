"""The Poisson family on counts."""

from __future__ import annotations

from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from ..moments import Count
from ..special import lgamma
from .base import ExponentialFamily, Levels, Naturals, Scalars, floating, host, levels

_NODES = 400
_CUT = 38.0


@final
class Poisson(ExponentialFamily):
    """P(x) = exp(x log_rate - rate) / x!, with statistic x and base measure h(x) = 1 / x!.

    `log_rate` is shaped plates. Naturals are relative to the base measure: zero naturals are Poisson(1), and the
    message from the one factor that generates the count leaves its 1 / x! out, because the family has it.
    """

    log_rate: Scalars
    kind: ClassVar[str] = "count"
    natural_ndims: ClassVar[tuple[int, ...]] = (0,)

    @property
    def rate(self) -> Array:
        """The mean."""
        return jnp.exp(self.log_rate)

    @classmethod
    def from_parameters(cls, *, rate: Scalars) -> Self:
        return cls(jnp.log(rate))

    def parameters(self) -> dict[str, Array]:
        return {"rate": self.rate}

    def mean(self) -> Array:
        return self.rate

    def variance(self) -> Array:
        return self.rate

    def log_partition(self) -> Array:
        return self.rate

    def expected_stats(self) -> Naturals:
        return (self.rate,)

    @classmethod
    def from_stats(cls, stats: Naturals) -> Self:
        return cls.from_parameters(rate=stats[0])

    @classmethod
    def from_moments(cls, moments: Count) -> Self:
        return cls.from_parameters(rate=moments.mean)

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """Of rate 1."""
        return cls.uniform()

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor()

    @classmethod
    def first_moments(cls, event: int | None = None) -> Count:
        return Count(jnp.ones(()), jnp.zeros(()))

    @classmethod
    def legal_value(cls, event: int | None = None) -> float | int:
        return 0

    @classmethod
    def bijection(cls, event: int | None = None) -> None:
        return None

    @classmethod
    def stats_of(cls, value: Numeric) -> Naturals:
        """x."""
        return (floating(value),)

    @classmethod
    def log_base(cls, value: Numeric) -> Array:
        return -lgamma(floating(value) + 1.0)

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        return (tangent[0] / self.rate,)

    def log_density(self, value: Numeric) -> Array:
        value = jnp.asarray(value).astype(floating(self.log_rate).dtype)
        return jnp.where(value == 0.0, 0.0, value * self.log_rate) - self.rate + self.log_base(value)

    def entropy(self) -> Array:
        """rate - rate log rate + E log x!, the last by quadrature to about 1e-13 of the rate."""
        empty = self.log_rate == -jnp.inf
        return self.rate * (1.0 - jnp.where(empty, 0.0, self.log_rate)) + _expected_log_factorial(self.rate)

    def is_proper(self) -> Array | np.bool_ | bool:
        return self.log_rate < jnp.inf

    def moments(self) -> Count:
        return Count(self.rate, _expected_log_factorial(self.rate))

    @classmethod
    def moments_at(cls, value: Numeric) -> Count:
        """The moments of a point."""
        value = floating(value)
        return Count(value, lgamma(value + 1.0))

    @staticmethod
    def pull(moments: Count, gradient: Count) -> Naturals:
        """The gradient in the mean; that in E log x! is dropped, as the base measure holds the 1 / x! it comes from."""
        return (gradient.mean,)

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        import scipy.special  # here: it takes a third of a second to import

        rate = np.exp(host(self.log_rate)[0])
        level = levels(level, len(self.plates))
        count = np.ceil(scipy.special.pdtrik(level, rate))
        below = np.maximum(count - 1.0, 0.0)
        return np.where(scipy.special.pdtr(below, rate) >= level, below, count)

    def mode(self) -> Array:
        """The whole part of the rate."""
        return jnp.floor(self.mean())

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return jax.random.poisson(key, self.rate, (*shape, *self.plates))


def _expected_log_factorial(rate: Numeric) -> Array:
    """E log x! of a Poisson variable.

    Malmsten's integral of log x! averages to the integral over z in (0, 1) of (rate - (1 - exp(-rate z)) / z) divided
    by -log(1 - z). With z = 1 / (1 + exp(-u)) the integrand is analytic and decays at both ends, so that the trapezoid
    rule converges geometrically.
    """
    rate = jnp.asarray(rate)[..., None]
    low = -_CUT - jnp.log1p(rate)
    step = (_CUT - low) / (_NODES - 1)
    u = low + step * jnp.arange(_NODES)
    z, rest = jax.nn.sigmoid(u), jax.nn.sigmoid(-u)
    excess = rate * z + jnp.expm1(-rate * z)
    return jnp.sum(step * rest * excess / jax.nn.softplus(u), axis=-1)
