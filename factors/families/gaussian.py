"""The Gaussian family on the real line."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..moments import Real
from .base import Array, ExponentialFamily, Naturals, floating, host, levels

_LOG_TWO_PI = math.log(2.0 * math.pi)


@final
class Gaussian(ExponentialFamily):
    """N(x; mean, variance) = exp(precision_mean x - precision x^2 / 2 - A), with statistics x and x^2.

    `precision_mean` is mean / variance, `negative_half_precision` is -1 / (2 variance); both shaped plates.
    """

    precision_mean: Array
    negative_half_precision: Array
    kind: ClassVar[str] = "real"
    natural_ndims: ClassVar[tuple[int, ...]] = (0, 0)

    @property
    def precision(self) -> Array:
        """1 / variance; zero for the uniform message, negative in some improper ones."""
        return -2.0 * self.negative_half_precision

    @classmethod
    def from_parameters(cls, *, mean: Array, variance: Array) -> Self:
        return cls(mean / variance, -0.5 / variance)

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    def mean(self) -> Array:
        return self.precision_mean / self.precision

    def variance(self) -> Array:
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
    def stats_of(cls, value: Array) -> Naturals:
        """x and x^2."""
        value = floating(value)
        return value, value**2

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros_like(floating(value))

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        mean, precision = self.mean(), self.precision
        half = 0.5 * precision**2 * (tangent[1] - 2.0 * mean * tangent[0])
        return precision * tangent[0] - 2.0 * mean * half, half

    def log_density(self, value: Array) -> Array:
        # Not eta t - A: that loses all digits when |mean| is many standard deviations.
        return 0.5 * (jnp.log(self.precision) - _LOG_TWO_PI - self.precision * (value - self.mean()) ** 2)

    def entropy(self) -> Array:
        return 0.5 * (1.0 + _LOG_TWO_PI - jnp.log(self.precision))

    def is_proper(self) -> Array:
        return (self.precision > 0.0) & jnp.isfinite(self.precision_mean)

    def moments(self) -> Real:
        return Real(self.mean(), self.variance())

    @classmethod
    def moments_at(cls, value: Array) -> Real:
        """The moments of a point."""
        value = floating(value)
        return Real(value, jnp.zeros_like(value))

    @staticmethod
    def pull(moments: Real, gradient: Real) -> Naturals:
        return gradient.mean - 2.0 * moments.mean * gradient.variance, gradient.variance

    def quantile(self, level: float | np.ndarray) -> np.ndarray:
        import scipy.special  # here: it takes a third of a second to import

        linear, quadratic = host(*self.naturals())
        score = scipy.special.ndtri(levels(level, len(self.plates)))
        return -0.5 * linear / quadratic + score / np.sqrt(-2.0 * quadratic)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        mean = floating(self.mean())
        return mean + jnp.sqrt(self.variance()) * jax.random.normal(key, (*shape, *self.plates), mean.dtype)
