"""The Wishart family on symmetric positive definite matrices."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from .. import draws
from ..arrays import Array, Key, Numeric
from ..errors import UnsupportedError
from ..moments import PosDef
from ..special import digamma, lgamma
from .base import Arrays, ExponentialFamily, Levels, Matrices, Scalars, floating
from .bijections import Bijection, cholesky_factor
from .gamma_functions import gamma_entropy, log_minus_digammas, newton
from .matrices import diagonal, inverse, is_positive_definite, log_det, outer, symmetric, trace_product

_LOG_TWO, _LOG_PI = math.log(2.0), math.log(math.pi)
_NEWTON_STEPS = 8


@final
class Wishart(ExponentialFamily):
    """Wishart(X; dof, scale) proportional to |X|^((dof - D - 1) / 2) exp(-tr(scale^-1 X) / 2): statistics X, log|X|.

    `negative_half_inverse_scale` is minus half the inverse of the scale, symmetric, shaped plates + (D, D);
    `log_det_coefficient` is (dof - D - 1) / 2, shaped plates. E X = dof * scale; proper for dof > D - 1.
    """

    negative_half_inverse_scale: Matrices
    log_det_coefficient: Scalars
    kind: ClassVar[str] = "posdef"
    natural_ndims: ClassVar[tuple[int, ...]] = (2, 0)

    @property
    def dof(self) -> Scalars:
        """The degrees of freedom."""
        return 2.0 * self.log_det_coefficient + self._dimension + 1

    @property
    def scale(self) -> Matrices:
        """The scale matrix: the mean divided by the degrees of freedom."""
        return inverse(self._inverse_scale)

    @classmethod
    def from_parameters(cls, *, dof: Scalars, scale: Matrices) -> Self:
        return cls(-0.5 * inverse(scale), 0.5 * (dof - jnp.shape(scale)[-1] - 1.0))

    def parameters(self) -> dict[str, Scalars]:
        return {"dof": self.dof, "scale": self.scale}

    def mean(self) -> Matrices:
        return jnp.asarray(self.dof)[..., None, None] * self.scale

    def variance(self) -> Matrices:
        """dof (scale_ij^2 + scale_ii scale_jj), by element."""
        scale = self.scale
        return jnp.asarray(self.dof)[..., None, None] * (scale**2 + outer(diagonal(scale), diagonal(scale)))

    def log_partition(self) -> Array:
        half = 0.5 * self.dof
        gammas = jnp.sum(lgamma(_shapes(half, self._dimension)), axis=-1)
        return gammas + _quarter_pairs(self._dimension) * _LOG_PI + half * self._log_det_twice_scale

    def expected_stats(self) -> Arrays:
        digammas = jnp.sum(digamma(_shapes(0.5 * self.dof, self._dimension)), axis=-1)
        return self.mean(), digammas + self._log_det_twice_scale

    @classmethod
    def from_stats(cls, stats: Arrays) -> Self:
        """The scale is mean / dof; dof solves log det E X - E log det X = its value under the family, by Newton."""
        mean, log = stats
        dimension = mean.shape[-1]
        dof = 2.0 * _solve_half_dof(log_det(mean) - log, dimension)
        return cls(-0.5 * dof[..., None, None] * inverse(mean), 0.5 * (dof - dimension - 1.0))

    @classmethod
    def from_moments(cls, moments: PosDef) -> Self:
        return cls.from_stats((moments.mean, moments.log_det))

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """Proportional to exp(-tr X / 2)."""
        uniform = cls.uniform((), event)
        half = uniform.negative_half_inverse_scale - 0.5 * jnp.eye(event or 1)
        return cls(half, uniform.log_det_coefficient)

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        """Of mean I, narrow, so that its inverse has moments."""
        dof = jnp.asarray(100.0 + (event or 1))
        return cls.from_parameters(dof=dof, scale=jnp.eye(event or 1) / dof)

    @classmethod
    def first_moments(cls, event: int | None = None) -> PosDef:
        return PosDef(jnp.eye(event or 1), jnp.zeros(()))

    @classmethod
    def legal_value(cls, event: int | None = None) -> np.ndarray:
        return np.eye(event or 1)

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return cholesky_factor(event or 1)

    @classmethod
    def stats_of(cls, value: Array) -> Arrays:
        """X and log det X."""
        value = floating(value)
        return value, log_det(value)

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros_like(floating(value)[..., 0, 0])

    def fisher_solve(self, tangent: Arrays) -> Arrays:
        dof, inverse_scale = self.dof, self._inverse_scale
        curvature = 0.5 * log_minus_digammas(jnp.asarray(0.5 * dof), self._dimension)[1]
        change = (tangent[1] - trace_product(inverse_scale, tangent[0]) / dof) / curvature
        by_matrix = inverse_scale @ tangent[0] @ inverse_scale - change[..., None, None] * inverse_scale
        return 0.5 * by_matrix / jnp.asarray(dof)[..., None, None], 0.5 * change

    def log_density(self, value: Array) -> Array:
        linear = trace_product(self.negative_half_inverse_scale, value)
        return linear + self.log_det_coefficient * log_det(value) - self.log_partition()

    def entropy(self) -> Array:
        # Written with entropies of Gamma variables, as lgamma and digamma of a large dof cancel.
        dimension = self._dimension
        shapes = _shapes(0.5 * self.dof, dimension)
        gammas = gamma_entropy(shapes) + _halves(dimension, shapes.dtype)[::-1] * digamma(shapes)
        constant = _quarter_pairs(dimension) * (1.0 + _LOG_PI)
        return jnp.sum(gammas, axis=-1) + constant + 0.5 * (dimension + 1) * self._log_det_twice_scale

    def is_proper(self) -> Array:
        return (self.dof > self._dimension - 1) & is_positive_definite(self._inverse_scale)

    def moments(self) -> PosDef:
        return PosDef(*self.expected_stats())

    @classmethod
    def moments_at(cls, value: Array) -> PosDef:
        """The moments of a point."""
        return PosDef(*cls.stats_of(value))

    @staticmethod
    def pull(moments: PosDef, gradient: PosDef) -> Arrays:
        return symmetric(gradient.mean), gradient.log_det

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        raise UnsupportedError(
            "Asked for a quantile of a Wishart: the off-diagonal elements have no closed distribution function. "
            "Use quantiles of draws, `sample(key, shape)`."
        )

    def mode(self) -> Matrices:
        """(dof - dimension - 1) scale; NaN where that is not positive: there is none."""
        more = jnp.asarray(self.dof)[..., None, None] - (self.scale.shape[-1] + 1.0)
        return jnp.where(more >= 0.0, more * self.scale, jnp.nan)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        factor = self.sample_root(key, shape)
        return factor @ jnp.swapaxes(factor, -1, -2)

    def sample_root(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        """Draws of F, lower triangular, with X = F F', shaped shape + plates + (D, D).

        Bartlett: F = R A, R R' = scale, A lower triangular: chi variables on the diagonal, Gaussian below.
        """
        dimension = self._dimension
        root = jnp.linalg.cholesky(self.scale)
        normal_key, gamma_key = jax.random.split(key)
        batch = (*shape, *self.plates)
        below = jnp.tril(jax.random.normal(normal_key, (*batch, dimension, dimension), root.dtype), -1)
        halves = _shapes(jnp.broadcast_to(0.5 * self.dof, self.plates), dimension)
        drawn = draws.log_gamma(gamma_key, jnp.broadcast_to(halves, (*batch, dimension)))
        squares = 2.0 * jnp.exp(drawn).astype(root.dtype)
        return root @ (below + jnp.sqrt(squares)[..., None] * jnp.eye(dimension, dtype=root.dtype))

    @property
    def _dimension(self) -> int:
        return jnp.shape(self.negative_half_inverse_scale)[-1]

    @property
    def _inverse_scale(self) -> Array:
        return -2.0 * self.negative_half_inverse_scale

    @property
    def _log_det_twice_scale(self) -> Array:
        return self._dimension * _LOG_TWO - log_det(self._inverse_scale)


def _quarter_pairs(dimension: int) -> float:
    """d (d - 1) / 4: the powers of pi and e that the off-diagonal elements bring."""
    return 0.25 * dimension * (dimension - 1)


def _halves(dimension: int, dtype: np.dtype) -> Array:
    """0, 1/2, ..., (d - 1) / 2."""
    return 0.5 * jnp.arange(dimension, dtype=dtype)


def _shapes(half_dof: Numeric, dimension: int) -> Array:
    """The shapes of the Gamma variables on Bartlett's diagonal, on a new last axis."""
    half_dof = floating(half_dof)[..., None]
    return half_dof - _halves(dimension, half_dof.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
@partial(jax.jit, static_argnums=1)
def _solve_half_dof(gap: Array, dimension: int) -> Array:
    """Half the degrees of freedom with this gap, log det E X - E log det X, by Newton.

    The reciprocal of the gap is concave in dof and nearly linear, so that Newton from below never overshoots. It begins
    at a lower bound, or where dof are many at what the first two terms in 1 / dof say.
    """
    least, i = 0.5 * (dimension - 1), np.arange(dimension)
    first, second = float(np.sum(i + 1) / 2.0), float(np.sum(i**2 / 8.0 + i / 4.0 + 1.0 / 12.0))

    def step(above: Array) -> Array:
        found, slope = log_minus_digammas(least + above, dimension)
        return above + found * (found / gap - 1.0) / slope

    large = first / gap + second / first
    return least + newton(step, jnp.where(large > 2.0 * dimension, large - least, 1.0 / gap), _NEWTON_STEPS)


@_solve_half_dof.defjvp
def _(dimension, primals, tangents):
    found = _solve_half_dof(*primals, dimension)
    return found, -tangents[0] / log_minus_digammas(found, dimension)[1]
