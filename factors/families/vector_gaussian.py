"""The Gaussian family on vectors."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from ..moments import Vector
from .base import Arrays, Levels, Matrices, Vectors, floating, host, levels
from .bijections import Bijection, space
from .capabilities import GaussianFamily, finite
from .matrices import diagonal, inverse, inverse_root, is_positive_definite, log_det, outer, solve, symmetric, times

_LOG_TWO_PI = math.log(2.0 * math.pi)


@final
class VectorGaussian(GaussianFamily):
    """N(x; mean, covariance) = exp(precision_mean' x - x' precision x / 2 - A), with statistics x and x x'.

    `precision_mean` is precision @ mean, shaped plates + (D,); `negative_half_precision` is minus half the inverse
    covariance, symmetric, shaped plates + (D, D).
    """

    precision_mean: Vectors
    negative_half_precision: Matrices
    kind: ClassVar[str] = "vector"
    natural_ndims: ClassVar[tuple[int, ...]] = (1, 2)

    @property
    def precision(self) -> Matrices:
        """The inverse covariance."""
        return -2.0 * self.negative_half_precision

    @classmethod
    def from_parameters(cls, *, mean: Vectors, covariance: Matrices) -> Self:
        precision = inverse(covariance)
        return cls(times(precision, mean), -0.5 * precision)

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "covariance": self.covariance()}

    def mean(self) -> Vectors:
        return solve(self.precision, self.precision_mean)

    def covariance(self) -> Matrices:
        """Cov x, shaped plates + (D, D)."""
        return inverse(self.precision)

    def variance(self) -> Vectors:
        return diagonal(self.covariance())

    def log_partition(self) -> Array:
        square = jnp.sum(self.precision_mean * self.mean(), axis=-1)
        return 0.5 * (square - log_det(self.precision) + self._dimension * _LOG_TWO_PI)

    def expected_stats(self) -> Arrays:
        mean, covariance = self.mean(), self.covariance()
        return mean, covariance + outer(mean, mean)

    @classmethod
    def from_stats(cls, stats: Arrays) -> Self:
        mean, square = stats
        return cls.from_parameters(mean=mean, covariance=square - outer(mean, mean))

    @classmethod
    def from_moments(cls, moments: Vector) -> Self:
        return cls.from_parameters(mean=moments.mean, covariance=moments.covariance)

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """Of mean 0 and the identity as covariance."""
        uniform = cls.uniform((), event)
        return cls(uniform.precision_mean, uniform.negative_half_precision - 0.5 * jnp.eye(event or 1))

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor(event)

    @classmethod
    def first_moments(cls, event: int | None = None) -> Vector:
        return Vector(jnp.zeros(event or 1), jnp.eye(event or 1))

    @classmethod
    def legal_value(cls, event: int | None = None) -> np.ndarray:
        return np.zeros(event or 1)

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return space(event or 1)

    @classmethod
    def stats_of(cls, value: Array) -> Arrays:
        """x and x x'."""
        value = floating(value)
        return value, outer(value, value)

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros_like(floating(value)[..., 0])

    def fisher_solve(self, tangent: Arrays) -> Arrays:
        mean, precision = self.mean(), self.precision
        shift = outer(mean, tangent[0])
        half = 0.5 * precision @ (tangent[1] - shift - jnp.swapaxes(shift, -1, -2)) @ precision
        return times(precision, tangent[0]) - 2.0 * times(half, mean), half

    def log_density(self, value: Array) -> Array:
        centred = value - self.mean()
        square = jnp.sum(centred * times(self.precision, centred), axis=-1)
        return 0.5 * (log_det(self.precision) - self._dimension * _LOG_TWO_PI - square)

    def entropy(self) -> Array:
        return 0.5 * (self._dimension * (1.0 + _LOG_TWO_PI) - log_det(self.precision))

    def is_proper(self) -> Array:
        return is_positive_definite(self.precision) & jnp.all(jnp.isfinite(self.precision_mean), axis=-1)

    def moments(self) -> Vector:
        return Vector(self.mean(), self.covariance())

    @classmethod
    def moments_at(cls, value: Array) -> Vector:
        """The moments of a point."""
        value = floating(value)
        return Vector(value, jnp.zeros((*value.shape, value.shape[-1]), value.dtype))

    @staticmethod
    def pull(moments: Vector, gradient: Vector) -> Arrays:
        quadratic = symmetric(gradient.covariance)
        return gradient.mean - 2.0 * times(quadratic, moments.mean), quadratic

    def sharpened(self, times: Numeric) -> Self:
        return type(self)(times * self.precision_mean, times * self.negative_half_precision)

    def moved(self, mean: Array) -> Self:
        return type(self)(times(self.precision, mean), self.negative_half_precision)

    def jittered(self, key: Key) -> Self:
        return self.moved(finite(self.sample(key)))

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """The quantile of each coordinate, shaped as the levels, then plates + (D,)."""
        import scipy.special  # here: it takes a third of a second to import

        linear, quadratic = host(*self.naturals())
        covariance = np.linalg.inv(-2.0 * quadratic)
        mean = np.einsum("...ij,...j->...i", covariance, linear)
        score = scipy.special.ndtri(levels(level, len(self.plates) + 1))
        return mean + score * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))

    def mode(self) -> Array:
        """The mean."""
        return self.mean()

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        mean, root = self.mean(), inverse_root(self.precision)
        noise = jax.random.normal(key, (*shape, *self.plates, self._dimension), root.dtype)
        return mean + jnp.einsum("...ji,...j->...i", root, noise)

    @property
    def _dimension(self) -> int:
        return jnp.shape(self.precision_mean)[-1]
