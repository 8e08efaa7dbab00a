"""The Gaussian family on the real line."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from ..moments import Real
from .base import Levels, Naturals, Number, Scalars, floating, host, levels
from .bijections import Bijection, line
from .capabilities import GaussianFamily, TwoMomentFamily, finite

_LOG_TWO_PI = math.log(2.0 * math.pi)


@final
class Gaussian(TwoMomentFamily, GaussianFamily):
    """N(x; mean, variance) = exp(precision_mean x - precision x^2 / 2 - A), with statistics x and x^2.

    `precision_mean` is mean / variance, `negative_half_precision` is -1 / (2 variance); both shaped plates.
    """

    precision_mean: Scalars
    negative_half_precision: Scalars
    kind: ClassVar[str] = "real"
    natural_ndims: ClassVar[tuple[int, ...]] = (0, 0)

    @property
    def precision(self) -> Scalars:
        """1 / variance; zero for the uniform message, negative in some improper ones."""
        return -2.0 * self.negative_half_precision

    @classmethod
    def from_parameters(cls, *, mean: Scalars, variance: Scalars) -> Self:
        return cls(mean / variance, -0.5 / variance)

    def parameters(self) -> dict[str, Scalars]:
        return {"mean": self.mean(), "variance": self.variance()}

    def mean(self) -> Scalars:
        return self.precision_mean / self.precision

    def variance(self) -> Scalars:
        return 1.0 / self.precision

    def log_partition(self) -> Array:
        return 0.5 * (self.precision_mean * self.mean() - jnp.log(self.precision) + _LOG_TWO_PI)

    def expected_stats(self) -> Naturals:
        mean = self.mean()
        return mean, mean**2 + self.variance()

    @classmethod
    def from_stats(cls, stats: Naturals) -> Self:
        mean, square = stats
        return cls.from_parameters(mean=mean, variance=square - mean**2)

    @classmethod
    def from_moments(cls, moments: Real) -> Self:
        return cls.from_parameters(mean=moments.mean, variance=moments.variance)

    @classmethod
    def from_mean_and_variance(cls, mean: Scalars, variance: Scalars) -> Self:
        return cls.from_parameters(mean=mean, variance=variance)

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """Of mean 0 and variance 1."""
        linear, half = cls.uniform().naturals()
        return cls(linear, half - 0.5)

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor()

    @classmethod
    def first_moments(cls, event: int | None = None) -> Real:
        return Real(jnp.zeros(()), jnp.ones(()))

    @classmethod
    def legal_value(cls, event: int | None = None) -> float | int:
        return 0

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return line()

    @classmethod
    def stats_of(cls, value: Numeric) -> Naturals:
        """x and x^2."""
        value = floating(value)
        return value, value**2

    @classmethod
    def log_base(cls, value: Numeric) -> Array:
        return jnp.zeros_like(floating(value))

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        mean, precision = self.mean(), self.precision
        half = 0.5 * precision**2 * (tangent[1] - 2.0 * mean * tangent[0])
        return precision * tangent[0] - 2.0 * mean * half, half

    def log_density(self, value: Number) -> Array:
        # Not eta t - A: that loses all digits when |mean| is many standard deviations.
        return 0.5 * (jnp.log(self.precision) - _LOG_TWO_PI - self.precision * (value - self.mean()) ** 2)

    def entropy(self) -> Array:
        return 0.5 * (1.0 + _LOG_TWO_PI - jnp.log(self.precision))

    def is_proper(self) -> Array:
        return (self.precision > 0.0) & jnp.isfinite(self.precision_mean)

    def moments(self) -> Real:
        return Real(jnp.asarray(self.mean()), jnp.asarray(self.variance()))

    @classmethod
    def moments_at(cls, value: Numeric) -> Real:
        """The moments of a point."""
        value = floating(value)
        return Real(value, jnp.zeros_like(value))

    @staticmethod
    def pull(moments: Real, gradient: Real) -> Naturals:
        return gradient.mean - 2.0 * moments.mean * gradient.variance, gradient.variance

    def sharpened(self, times: Numeric) -> Self:
        return type(self)(times * self.precision_mean, times * self.negative_half_precision)

    def moved(self, mean: Array) -> Self:
        return type(self)(self.precision * mean, self.negative_half_precision)

    def jittered(self, key: Key) -> Self:
        return self.moved(finite(self.sample(key)))

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        import scipy.special  # here: it takes a third of a second to import

        linear, quadratic = host(*self.naturals())
        score = scipy.special.ndtri(levels(level, len(self.plates)))
        return -0.5 * linear / quadratic + score / np.sqrt(-2.0 * quadratic)

    def mode(self) -> Array:
        """The mean."""
        return jnp.asarray(self.mean())

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        mean = floating(self.mean())
        return mean + jnp.sqrt(self.variance()) * jax.random.normal(key, (*shape, *self.plates), mean.dtype)
