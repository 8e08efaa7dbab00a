"""The normal-Gamma family: a number whose precision is a multiple of a positive one, and that one."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from ..errors import UnsupportedError
from ..moments import RealWithPrecision
from .base import Arrays, Levels, Naturals, Scalars, floating
from .bijections import Bijection, beside, interval, line
from .capabilities import MarginalOfMean, PairFamily
from .gamma import Gamma
from .gaussian import Gaussian

_LOG_TWO_PI = math.log(2.0 * math.pi)


@final
class NormalGamma(PairFamily):
    """N(x; mean, 1 / (multiple t)) Gamma(t; shape, rate), with statistics t x, t x^2, t and log t.

    `scaled_mean` is multiple * mean, `negative_half_multiple` is -multiple / 2, `negative_rate` is
    -(rate + multiple mean^2 / 2), `shape_less_half` is shape - 1 / 2; all shaped plates. A value is shaped plates +
    (2,): x and t.
    """

    scaled_mean: Scalars
    negative_half_multiple: Scalars
    negative_rate: Scalars
    shape_less_half: Scalars
    kind: ClassVar[str] = "normal_gamma"
    natural_ndims: ClassVar[tuple[int, ...]] = (0, 0, 0, 0)

    @property
    def multiple(self) -> Scalars:
        """How many times t the precision of x is."""
        return -2.0 * self.negative_half_multiple

    def precision(self) -> Gamma:
        """The belief about t."""
        return Gamma(self.negative_rate + 0.5 * self.scaled_mean**2 / self.multiple, self.shape_less_half - 0.5)

    def of_mean(self) -> MarginalOfMean:
        """Student's t of twice the shape degrees of freedom."""
        own, mean = self.precision(), jnp.asarray(self.centre())
        square, dof = jnp.asarray(own.rate / (own.shape * self.multiple)), jnp.asarray(2.0 * own.shape)
        variance = jnp.where(dof > 2.0, square * dof / jnp.where(dof > 2.0, dof - 2.0, 1.0), square)
        formulas = (("dof", ("known", 0)), ("mean", ("known", 1)), ("scale", ("known", 2)))
        stand_in = Gaussian.from_parameters(mean=mean, variance=variance)
        return MarginalOfMean("student_t", (), (dof, mean, jnp.sqrt(square)), formulas, stand_in)

    def centre(self) -> Scalars:
        """E x, shaped plates."""
        return self.scaled_mean / self.multiple

    @classmethod
    def from_parameters(cls, *, mean: Scalars, multiple: Scalars, shape: Scalars, rate: Scalars) -> Self:
        return cls(multiple * mean, -0.5 * multiple, -(rate + 0.5 * multiple * mean**2), shape - 0.5)

    def parameters(self) -> dict[str, Numeric]:
        positive = self.precision()
        return {"mean": self.centre(), "multiple": self.multiple, "shape": positive.shape, "rate": positive.rate}

    def mean(self) -> Array:
        return _together(self.centre(), self.precision().mean())

    def variance(self) -> Array:
        """Of x infinite where the shape is at most 1: its distribution is a Student-t one of twice the shape."""
        positive = self.precision()
        excess = jnp.asarray(positive.shape - 1.0)
        spread = jnp.where(excess > 0.0, positive.rate / (self.multiple * excess), jnp.inf)
        return _together(spread, positive.variance())

    def log_partition(self) -> Array:
        return self.precision().log_partition() + 0.5 * (_LOG_TWO_PI - jnp.log(self.multiple))

    def expected_stats(self) -> Naturals:
        mean, (precision, log) = self.centre(), self.precision().expected_stats()
        return precision * mean, 1.0 / self.multiple + precision * mean**2, precision, log

    @classmethod
    def from_stats(cls, stats: Naturals) -> Self:
        shift, square, precision, log = stats
        mean = shift / precision
        multiple = 1.0 / (square - mean * shift)
        own = Gamma.from_stats((precision, log))
        return cls.from_parameters(mean=mean, multiple=multiple, shape=own.shape, rate=own.rate)

    @classmethod
    def from_moments(cls, moments: RealWithPrecision) -> Self:
        return cls.from_stats(tuple(moments))

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """Of mean 0, multiple 1 and Gamma(1, 1)."""
        one = jnp.ones(())
        return cls.from_parameters(mean=0.0 * one, multiple=one, shape=one, rate=one)

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        one = jnp.ones(())
        return cls.from_parameters(mean=0.0 * one, multiple=one, shape=100.0 * one, rate=100.0 * one)

    @classmethod
    def first_moments(cls, event: int | None = None) -> RealWithPrecision:
        return cls.anchor(event).moments()

    @classmethod
    def legal_value(cls, event: int | None = None) -> np.ndarray:
        return np.array([0.0, 1.0])

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return beside(line(), interval(0.0, math.inf), _together, _apart)

    @classmethod
    def stats_of(cls, value: Array) -> Arrays:
        """t x, t x^2, t and log t."""
        x, t = _apart(floating(value))
        return t * x, t * x**2, t, jnp.log(t)

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros_like(floating(value)[..., 0])

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        """Natural parameters move with the usual ones: those of t, then the multiple and the mean of x."""
        mean, multiple, positive = self.centre(), self.multiple, self.precision()
        moved = (tangent[0] - tangent[2] * mean) / positive.mean()
        more = -(multiple**2) * (tangent[1] - tangent[2] * mean**2 - 2.0 * mean * positive.mean() * moved)
        by_rate, by_shape = positive.fisher_solve((tangent[2], tangent[3]))
        scaled = more * mean + multiple * moved
        return scaled, -0.5 * more, by_rate - 0.5 * (more * mean**2 + 2.0 * multiple * mean * moved), by_shape

    def log_density(self, value: Array) -> Array:
        x, t = _apart(floating(value))
        normal = 0.5 * (jnp.log(self.multiple * t) - _LOG_TWO_PI - self.multiple * t * (x - self.centre()) ** 2)
        return self.precision().log_density(t) + normal

    def entropy(self) -> Array:
        own = self.precision()
        normal = 0.5 * (1.0 + _LOG_TWO_PI - jnp.log(self.multiple))
        return own.entropy() + normal - 0.5 * own.expected_stats()[1]

    def is_proper(self) -> Array:
        positive = jnp.asarray(self.multiple) > 0.0
        multiple = jnp.where(positive, self.multiple, 1.0)
        own = Gamma(self.negative_rate + 0.5 * self.scaled_mean**2 / multiple, self.shape_less_half - 0.5)
        return positive & own.is_proper() & jnp.isfinite(self.scaled_mean)

    def moments(self) -> RealWithPrecision:
        return RealWithPrecision(*map(jnp.asarray, self.expected_stats()))

    @classmethod
    def moments_at(cls, value: Array) -> RealWithPrecision:
        """The moments of a point."""
        return RealWithPrecision(*cls.stats_of(value))

    @staticmethod
    def pull(moments: RealWithPrecision, gradient: RealWithPrecision) -> Naturals:
        return gradient.shift, gradient.square, gradient.precision, gradient.log

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        raise UnsupportedError(
            "Asked for a quantile of a NormalGamma: two numbers together have no order. Use quantiles of draws, "
            "`sample(key, shape)`."
        )

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        """t, then x given it."""
        of_t, of_x = jax.random.split(key)
        t = self.precision().sample(of_t, shape)
        normal = jax.random.normal(of_x, jnp.shape(t), t.dtype)
        return _together(self.centre() + normal / jnp.sqrt(self.multiple * t), t)


def _together(x: Numeric, t: Numeric) -> Array:
    return jnp.stack(jnp.broadcast_arrays(jnp.asarray(x), jnp.asarray(t)), axis=-1)


def _apart(value: Array) -> tuple[Array, Array]:
    return value[..., 0], value[..., 1]
