"""The Gamma family on the positive numbers."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy

from .. import draws
from ..arrays import Array, Key, Numeric
from ..moments import Positive
from ..special import digamma, lgamma
from .base import Levels, Naturals, Scalars, floating, host, levels
from .bijections import Bijection, interval
from .capabilities import DivisorFamily
from .gamma_functions import gamma_entropy, log_minus_digammas, trigamma_minus_reciprocal

_NEWTON_STEPS = 4


@final
class Gamma(DivisorFamily):
    """Gamma(x; shape, rate) = rate^shape x^(shape - 1) exp(-rate x) / gamma(shape), with statistics x and log x.

    `negative_rate` is -rate, `shape_minus_one` is shape - 1; both shaped plates. The mean is shape / rate.
    """

    negative_rate: Scalars
    shape_minus_one: Scalars
    kind: ClassVar[str] = "positive"
    natural_ndims: ClassVar[tuple[int, ...]] = (0, 0)

    @property
    def shape(self) -> Scalars:
        """The shape parameter (not an array shape: that is `plates`)."""
        return 1.0 + self.shape_minus_one

    @property
    def rate(self) -> Scalars:
        """The rate: 1 / scale."""
        return -self.negative_rate

    @classmethod
    def from_parameters(cls, *, shape: Scalars, rate: Scalars) -> Self:
        return cls(-rate, shape - 1.0)

    def parameters(self) -> dict[str, Scalars]:
        return {"shape": self.shape, "rate": self.rate}

    def mean(self) -> Scalars:
        return self.shape / self.rate

    def variance(self) -> Scalars:
        return self.shape / self.rate**2

    def log_partition(self) -> Array:
        return lgamma(self.shape) - self.shape * jnp.log(self.rate)

    def expected_stats(self) -> Naturals:
        return self.mean(), digamma(self.shape) - jnp.log(self.rate)

    @classmethod
    def from_stats(cls, stats: Naturals) -> Self:
        """Solves log(shape) - digamma(shape) = log E x - E log x by generalised Newton; source minka2002gamma."""
        mean, log = stats
        shape = _solve_shape(jnp.log(mean) - log)
        return cls.from_parameters(shape=shape, rate=shape / mean)

    @classmethod
    def from_moments(cls, moments: Positive) -> Self:
        return cls.from_stats((moments.mean, moments.log))

    @classmethod
    def from_mean_and_variance(cls, mean: Scalars, variance: Scalars) -> Self:
        shape = mean**2 / variance
        return cls.from_parameters(shape=shape, rate=shape / mean)

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """Of shape 1 and rate 1."""
        negative_rate, shape_minus_one = cls.uniform().naturals()
        return cls(negative_rate - 1.0, shape_minus_one)

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        """Of mean 1, narrow, so that its inverse has moments."""
        return cls.from_parameters(shape=jnp.asarray(100.0), rate=jnp.asarray(100.0))

    @classmethod
    def first_moments(cls, event: int | None = None) -> Positive:
        return Positive(jnp.ones(()), jnp.zeros(()))

    @classmethod
    def legal_value(cls, event: int | None = None) -> float | int:
        return 1.0

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return interval(0.0, math.inf)

    @classmethod
    def stats_of(cls, value: Numeric) -> Naturals:
        """x and log x."""
        value = floating(value)
        return value, jnp.log(value)

    @classmethod
    def log_base(cls, value: Numeric) -> Array:
        return jnp.zeros_like(floating(value))

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        relative = tangent[0] / self.mean()
        shape = (tangent[1] - relative) / trigamma_minus_reciprocal(self.shape)
        return self.rate * (relative - shape / self.shape), shape

    def log_density(self, value: Numeric) -> Array:
        return xlogy(self.shape_minus_one, value) - self.rate * value - self.log_partition()

    def entropy(self) -> Array:
        return gamma_entropy(self.shape) - jnp.log(self.rate)

    def is_proper(self) -> Array | np.bool_ | bool:
        return (self.shape > 0.0) & (self.rate > 0.0)

    def moments(self) -> Positive:
        return Positive(*map(jnp.asarray, self.expected_stats()))

    @classmethod
    def moments_at(cls, value: Numeric) -> Positive:
        """The moments of a point."""
        return Positive(*map(jnp.asarray, cls.stats_of(value)))

    @staticmethod
    def pull(moments: Positive, gradient: Positive) -> Naturals:
        return gradient.mean, gradient.log

    def sharpened(self, times: Numeric) -> Self:
        return self.from_parameters(shape=times * self.shape, rate=times * self.rate)

    def divisible(self, power: int) -> Self:
        """Both are infinite at small shapes."""
        shape = jnp.where(self.is_proper(), jnp.maximum(self.shape, 2.0 * power + 1.0), self.shape)
        return self.from_parameters(shape=shape, rate=self.rate * shape / self.shape)

    def mean_inverse(self) -> Array:
        shape, heavy = self.shape, jnp.exp(-self.moments().log)
        return jnp.where(shape > 1.0, self.rate / jnp.where(shape > 1.0, shape - 1.0, 1.0), heavy)

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        import scipy.special  # here: it takes a third of a second to import

        negative_rate, shape_minus_one = host(*self.naturals())
        return scipy.special.gammaincinv(1.0 + shape_minus_one, levels(level, len(self.plates))) / -negative_rate

    def mode(self) -> Array:
        """(shape - 1) / rate, zero where that is negative."""
        return jnp.maximum(self.shape - 1.0, 0.0) / jnp.asarray(self.rate)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        own = floating(self.shape)
        drawn = draws.log_gamma(key, jnp.broadcast_to(own, (*shape, *self.plates)))
        return jnp.exp(drawn).astype(own.dtype) / self.rate


@jax.jit
def _solve_shape(gap: Array) -> Array:
    """The a > 0 with log a - digamma(a) = gap > 0: Newton on the reciprocals, which are nearly linear in a."""
    root = jnp.sqrt((gap - 3.0) ** 2 + 24.0 * gap)
    shape = jnp.where(gap < 1.0, (3.0 - gap + root) / (12.0 * gap), 2.0 / (jnp.maximum(gap, 1.0) - 3.0 + root))
    for _ in range(_NEWTON_STEPS):
        found, slope = log_minus_digammas(shape, 1)
        shape = shape + found * (found / gap - 1.0) / slope
    return shape
