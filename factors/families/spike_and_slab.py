"""The spike-and-slab family: a Gaussian number that is exactly zero with some probability."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from ..moments import Sparse
from ..special import sigmoid, softplus
from .base import Levels, Naturals, Number, Scalars, floating, host, levels
from .bernoulli import Bernoulli
from .capabilities import GaussianFamily, finite
from .gaussian import Gaussian

_LOG_TWO_PI = math.log(2.0 * math.pi)


@final
class SpikeAndSlab(GaussianFamily):
    """(1 - probability) delta_0(x) + probability N(x; slab_mean, slab_variance), with statistics 1[x != 0], x and x^2.

    The base measure is Lebesgue's plus a unit of mass at zero, so that a density is a probability there and the usual
    density elsewhere. `offset` is the log odds of x != 0 less those that the slab adds, `precision_mean` is slab_mean /
    slab_variance, `negative_half_precision` is -1 / (2 slab_variance); all shaped plates.
    """

    offset: Scalars
    precision_mean: Scalars
    negative_half_precision: Scalars
    kind: ClassVar[str] = "sparse"
    natural_ndims: ClassVar[tuple[int, ...]] = (0, 0, 0)

    @property
    def precision(self) -> Scalars:
        """1 / slab_variance."""
        return -2.0 * self.negative_half_precision

    @property
    def slab_mean(self) -> Scalars:
        """E x given x != 0."""
        return self.precision_mean / self.precision

    @property
    def slab_variance(self) -> Scalars:
        """Var x given x != 0."""
        return 1.0 / self.precision

    @property
    def logit(self) -> Scalars:
        """The log odds of x != 0."""
        return self.offset + self._log_slab()

    @property
    def probability(self) -> Scalars:
        """P(x != 0)."""
        return sigmoid(self.logit)

    def _log_slab(self) -> Array:
        """The log of the integral of the slab, unnormalised."""
        return 0.5 * (self.precision_mean * self.slab_mean + _LOG_TWO_PI - jnp.log(self.precision))

    @classmethod
    def from_parameters(cls, *, probability: Scalars, slab_mean: Scalars, slab_variance: Scalars) -> Self:
        slab = cls(jnp.zeros_like(slab_mean), slab_mean / slab_variance, -0.5 / slab_variance)
        offset = jnp.log(probability) - jnp.log1p(-probability) - slab._log_slab()
        return cls(offset, slab.precision_mean, slab.negative_half_precision)

    def parameters(self) -> dict[str, Scalars]:
        return {"probability": self.probability, "slab_mean": self.slab_mean, "slab_variance": self.slab_variance}

    def mean(self) -> Scalars:
        return self.probability * self.slab_mean

    def variance(self) -> Scalars:
        odds = self.logit
        return sigmoid(odds) * (self.slab_variance + sigmoid(-odds) * self.slab_mean**2)

    def log_partition(self) -> Array:
        return softplus(self.logit)

    def expected_stats(self) -> Naturals:
        p, mean = self.probability, self.slab_mean
        return p, p * mean, p * (mean**2 + self.slab_variance)

    @classmethod
    def from_stats(cls, stats: Naturals) -> Self:
        p, first, second = stats
        return cls.from_parameters(probability=p, slab_mean=first / p, slab_variance=second / p - (first / p) ** 2)

    @classmethod
    def from_moments(cls, moments: Sparse) -> Self:
        p, mean = moments.probability, moments.mean / moments.probability
        variance = (moments.variance - (1.0 - p) * mean * moments.mean) / p
        return cls.from_parameters(probability=p, slab_mean=mean, slab_variance=variance)

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """With a slab of mean 0 and variance 1."""
        offset, linear, half = cls.uniform().naturals()
        return cls(offset, linear, half - 0.5)

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor()

    @classmethod
    def first_moments(cls, event: int | None = None) -> Sparse:
        return Sparse(0.5 * jnp.ones(()), jnp.zeros(()), jnp.ones(()))

    @classmethod
    def legal_value(cls, event: int | None = None) -> float | int:
        return 0

    @classmethod
    def bijection(cls, event: int | None = None) -> None:
        return None

    @classmethod
    def stats_of(cls, value: Numeric) -> Naturals:
        """1[x != 0], x and x^2."""
        value = floating(value)
        return (value != 0.0).astype(value.dtype), value, value**2

    @classmethod
    def log_base(cls, value: Numeric) -> Array:
        return jnp.zeros_like(floating(value))

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        odds, mean, variance = self.logit, self.slab_mean, self.slab_variance
        p, both = sigmoid(odds), sigmoid(odds) * sigmoid(-odds)
        inactive, certain = p == 0.0, both == 0.0
        share = jnp.where(inactive, 1.0, p)
        # What the change of statistics means for the slab's mean and variance, then those for the naturals.
        shift = (tangent[1] - mean * tangent[0]) / share
        spread = (tangent[2] - (mean**2 + variance) * tangent[0]) / share - 2.0 * mean * shift
        shift, spread = (jnp.where(inactive, 0.0, change) for change in (shift, spread))
        of_odds = jnp.where(certain, 0.0, tangent[0] / jnp.where(certain, 1.0, both))
        of_slab = (mean * shift + 0.5 * spread * (1.0 - mean**2 / variance)) / variance
        return of_odds - of_slab, (shift - spread * mean / variance) / variance, 0.5 * spread / variance**2

    def log_density(self, value: Number) -> Array:
        slab = 0.5 * (jnp.log(self.precision) - _LOG_TWO_PI - self.precision * (value - self.slab_mean) ** 2)
        odds = self.logit
        return jnp.where(jnp.asarray(value) == 0.0, -softplus(odds), slab - softplus(-odds))

    def entropy(self) -> Array:
        return Bernoulli(self.logit).entropy() + 0.5 * self.probability * (1.0 + _LOG_TWO_PI - jnp.log(self.precision))

    def is_proper(self) -> Array:
        return (self.precision > 0.0) & jnp.isfinite(self.precision_mean) & ~jnp.isnan(self.offset)

    def moments(self) -> Sparse:
        return Sparse(*map(jnp.asarray, (self.probability, self.mean(), self.variance())))

    @classmethod
    def moments_at(cls, value: Numeric) -> Sparse:
        """The moments of a point."""
        active, value, _ = map(jnp.asarray, cls.stats_of(value))
        return Sparse(active, value, jnp.zeros_like(value))

    @staticmethod
    def pull(moments: Sparse, gradient: Sparse) -> Naturals:
        return gradient.probability, gradient.mean - 2.0 * moments.mean * gradient.variance, gradient.variance

    def sharpened(self, times: Numeric) -> Self:
        return self

    def moved(self, mean: Array) -> Self:
        """The slab moved, and as likely zero as not: from a prior alone most numbers would never be active."""
        slab = Gaussian(self.precision_mean, self.negative_half_precision).moved(mean)
        return type(self)(-slab.log_partition(), slab.precision_mean, slab.negative_half_precision)

    def jittered(self, key: Key) -> Self:
        return self.moved(finite(Gaussian(self.precision_mean, self.negative_half_precision).sample(key)))

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """Zero for all levels that the mass there covers."""
        import scipy.special  # here: it takes a third of a second to import

        odds = host(self.logit)[0]
        linear, quadratic = host(self.precision_mean, self.negative_half_precision)
        mean, sd = -0.5 * linear / quadratic, 1.0 / np.sqrt(-2.0 * quadratic)
        p, level = scipy.special.expit(odds), levels(level, len(self.plates))
        below = p * scipy.special.ndtr(-mean / sd)
        above = level - (1.0 - p)  # of the slab's mass, where the level is beyond that at zero
        inside = np.clip(np.where(level < below, level, above) / np.where(p > 0.0, p, 1.0), 0.0, 1.0)
        found = mean + sd * scipy.special.ndtri(inside)
        return np.where((level >= below) & (above <= below), 0.0, found)

    def mode(self) -> Array:
        """Zero, which has mass, unless the slab has all of it."""
        return jnp.where(self.probability < 1.0, 0.0, self.slab_mean)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        mean, (switch, slab) = floating(self.slab_mean), jax.random.split(key)
        full = (*shape, *self.plates)
        drawn = mean + jnp.sqrt(self.slab_variance) * jax.random.normal(slab, full, mean.dtype)
        return jnp.where(jax.random.bernoulli(switch, self.probability, full), drawn, 0.0)
