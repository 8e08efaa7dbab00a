"""The normal-Wishart family: a vector whose precision is a multiple of a matrix, and that matrix."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from ..errors import UnsupportedError
from ..moments import VectorWithPrecision
from .base import Arrays, Levels, Matrices, Scalars, Vectors, floating
from .bijections import Bijection, beside, cholesky_factor, space
from .capabilities import MarginalOfMean, PairFamily
from .matrices import diagonal, inverse, outer, symmetric, times
from .vector_gaussian import VectorGaussian
from .wishart import Wishart

_LOG_TWO_PI = math.log(2.0 * math.pi)


@final
class NormalWishart(PairFamily):
    """N(x; mean, (multiple P)^-1) Wishart(P; dof, scale), with statistics P x, x' P x, P and log|P|.

    `scaled_mean` is multiple * mean, shaped plates + (D,); `negative_half_multiple` is -multiple / 2, shaped plates;
    `negative_half_matrix` is minus half of scale^-1 + multiple mean mean', symmetric, shaped plates + (D, D);
    `log_det_coefficient` is (dof - D) / 2, shaped plates. A value is shaped plates + (D, D + 1): x, and beside it P.
    """

    scaled_mean: Vectors
    negative_half_multiple: Scalars
    negative_half_matrix: Matrices
    log_det_coefficient: Scalars
    kind: ClassVar[str] = "normal_wishart"
    natural_ndims: ClassVar[tuple[int, ...]] = (1, 0, 2, 0)

    @property
    def multiple(self) -> Scalars:
        """How many times P the precision of x is."""
        return -2.0 * self.negative_half_multiple

    def precision(self) -> Wishart:
        """The belief about P."""
        shift = outer(self.scaled_mean, self.scaled_mean) / jnp.asarray(self.multiple)[..., None, None]
        return Wishart(self.negative_half_matrix + 0.5 * shift, self.log_det_coefficient - 0.5)

    def of_mean(self) -> MarginalOfMean:
        """Student's t of dof - D + 1 degrees of freedom."""
        mean, dof = self.centre(), self.freedom()
        square = self.square() / jnp.asarray(self.multiple)[..., None, None]
        more = jnp.where(dof > 2.0, dof / jnp.where(dof > 2.0, dof - 2.0, 1.0), 1.0)
        formulas = (("dof", ("known", 0)), ("mean", ("known", 1)), ("square", ("known", 2)))
        stand_in = VectorGaussian.from_parameters(mean=mean, covariance=more[..., None, None] * square)
        return MarginalOfMean("vector_student_t", (), (dof, mean, square), formulas, stand_in)

    def freedom(self) -> Array:
        """dof - D + 1, shaped plates: of the Student-t distributions of x and of what is Gaussian about it."""
        return jnp.asarray(self.precision().dof - self._dimension + 1.0)

    def square(self) -> Array:
        """scale^-1 / (dof - D + 1), shaped plates + (D, D): theirs for a vector of precision P."""
        return inverse(self.precision().scale) / self.freedom()[..., None, None]

    def centre(self) -> Vectors:
        """E x, shaped plates + (D,)."""
        return self.scaled_mean / jnp.asarray(self.multiple)[..., None]

    @classmethod
    def from_parameters(cls, *, mean: Vectors, multiple: Scalars, dof: Scalars, scale: Matrices) -> Self:
        multiple = jnp.asarray(multiple)
        matrix = inverse(scale) + multiple[..., None, None] * outer(mean, mean)
        return cls(multiple[..., None] * mean, -0.5 * multiple, -0.5 * matrix, 0.5 * (dof - jnp.shape(mean)[-1]))

    def parameters(self) -> dict[str, Numeric]:
        matrix = self.precision()
        return {"mean": self.centre(), "multiple": self.multiple, "dof": matrix.dof, "scale": matrix.scale}

    def mean(self) -> Array:
        return _together(self.centre(), self.precision().mean())

    def variance(self) -> Array:
        """Of x infinite where dof is at most D + 1: its distribution is a Student-t one of dof - D + 1."""
        matrix = self.precision()
        excess = jnp.asarray(matrix.dof - self._dimension - 1.0)
        spread = diagonal(inverse(matrix.scale)) / (jnp.asarray(self.multiple) * excess)[..., None]
        return _together(jnp.where(excess[..., None] > 0.0, spread, jnp.inf), matrix.variance())

    def log_partition(self) -> Array:
        return self.precision().log_partition() + 0.5 * self._dimension * (_LOG_TWO_PI - jnp.log(self.multiple))

    def expected_stats(self) -> Arrays:
        mean, (matrix, log) = self.centre(), self.precision().expected_stats()
        shift = times(matrix, mean)
        square = self._dimension / jnp.asarray(self.multiple) + jnp.sum(mean * shift, axis=-1)
        return shift, square, matrix, log

    @classmethod
    def from_stats(cls, stats: Arrays) -> Self:
        shift, square, matrix, log = stats
        mean = times(inverse(matrix), shift)
        multiple = jnp.shape(shift)[-1] / (square - jnp.sum(mean * shift, axis=-1))
        own = Wishart.from_stats((matrix, log))
        half = own.negative_half_inverse_scale - 0.5 * multiple[..., None, None] * outer(mean, mean)
        return cls(multiple[..., None] * mean, -0.5 * multiple, half, own.log_det_coefficient + 0.5)

    @classmethod
    def from_moments(cls, moments: VectorWithPrecision) -> Self:
        return cls.from_stats(tuple(moments))

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """Of mean 0, multiple 1 and Wishart(D + 1, I)."""
        size = event or 1
        return cls.from_parameters(
            mean=jnp.zeros(size), multiple=jnp.ones(()), dof=jnp.asarray(size + 1.0), scale=jnp.eye(size)
        )

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        size = event or 1
        dof = jnp.asarray(100.0 + size)
        return cls.from_parameters(mean=jnp.zeros(size), multiple=jnp.ones(()), dof=dof, scale=jnp.eye(size) / dof)

    @classmethod
    def first_moments(cls, event: int | None = None) -> VectorWithPrecision:
        return cls.anchor(event).moments()

    @classmethod
    def legal_value(cls, event: int | None = None) -> np.ndarray:
        return np.concatenate([np.zeros((event or 1, 1)), np.eye(event or 1)], axis=1)

    @classmethod
    def bijection(cls, event: int | None = None) -> Bijection:
        return beside(space(event or 1), cholesky_factor(event or 1), _together, _apart)

    @classmethod
    def stats_of(cls, value: Array) -> Arrays:
        """P x, x' P x, P and log det P."""
        vector, matrix = _apart(floating(value))
        shift = times(matrix, vector)
        return shift, jnp.sum(vector * shift, axis=-1), *Wishart.stats_of(matrix)

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros_like(floating(value)[..., 0, 0])

    def fisher_solve(self, tangent: Arrays) -> Arrays:
        """Natural parameters move with the usual ones: those of the matrix, then the multiple and the mean."""
        matrix, mean, multiple = self.precision(), self.centre(), jnp.asarray(self.multiple)
        expected = matrix.mean()
        moved = times(inverse(expected), tangent[0] - times(tangent[2], mean))
        square = tangent[1] - jnp.sum(mean * times(tangent[2], mean), axis=-1)
        square = square - 2.0 * jnp.sum(mean * times(expected, moved), axis=-1)
        more = -(multiple**2) * square / self._dimension
        by_matrix, by_log = matrix.fisher_solve((tangent[2], tangent[3]))
        cross = outer(moved, mean) + outer(mean, moved)
        half = by_matrix - 0.5 * (more[..., None, None] * outer(mean, mean) + multiple[..., None, None] * cross)
        return more[..., None] * mean + multiple[..., None] * moved, -0.5 * more, half, by_log

    def log_density(self, value: Array) -> Array:
        vector, matrix = _apart(floating(value))
        gap = vector - self.centre()
        own = self.precision()
        normal = 0.5 * self._dimension * (jnp.log(self.multiple) - _LOG_TWO_PI) + 0.5 * Wishart.stats_of(matrix)[1]
        square = jnp.sum(gap * times(matrix, gap), axis=-1)
        return own.log_density(matrix) + normal - 0.5 * jnp.asarray(self.multiple) * square

    def entropy(self) -> Array:
        own = self.precision()
        normal = 0.5 * self._dimension * (1.0 + _LOG_TWO_PI - jnp.log(self.multiple))
        return own.entropy() + normal - 0.5 * own.expected_stats()[1]

    def is_proper(self) -> Array:
        positive = jnp.asarray(self.multiple) > 0.0
        safe = jnp.where(positive, self.negative_half_multiple, -0.5)
        shift = outer(self.scaled_mean, self.scaled_mean) / (-2.0 * safe)[..., None, None]
        matrix = Wishart(self.negative_half_matrix + 0.5 * shift, self.log_det_coefficient - 0.5)
        return positive & matrix.is_proper() & jnp.all(jnp.isfinite(self.scaled_mean), axis=-1)

    def moments(self) -> VectorWithPrecision:
        return VectorWithPrecision(*self.expected_stats())

    @classmethod
    def moments_at(cls, value: Array) -> VectorWithPrecision:
        """The moments of a point."""
        return VectorWithPrecision(*cls.stats_of(value))

    @staticmethod
    def pull(moments: VectorWithPrecision, gradient: VectorWithPrecision) -> Arrays:
        return gradient.shift, gradient.square, symmetric(gradient.precision), gradient.log_det

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        raise UnsupportedError(
            "Asked for a quantile of a NormalWishart: a vector and a matrix together have no order. Use quantiles of "
            "draws, `sample(key, shape)`."
        )

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        """The matrix, then the vector given it."""
        of_matrix, of_vector = jax.random.split(key)
        root = self.precision().sample_root(of_matrix, shape)
        normal = jax.random.normal(of_vector, root.shape[:-1], root.dtype)
        spread = jax.scipy.linalg.solve_triangular(root, normal[..., None], trans=1, lower=True)[..., 0]
        scale = jnp.sqrt(jnp.asarray(self.multiple))[..., None]
        return _together(self.centre() + spread / scale, root @ jnp.swapaxes(root, -1, -2))

    @property
    def _dimension(self) -> int:
        return jnp.shape(self.scaled_mean)[-1]


def _together(vector: Array, matrix: Array) -> Array:
    shape = np.broadcast_shapes(jnp.shape(vector)[:-1], jnp.shape(matrix)[:-2])
    vector = jnp.broadcast_to(vector, (*shape, jnp.shape(vector)[-1]))
    matrix = jnp.broadcast_to(matrix, (*shape, *jnp.shape(matrix)[-2:]))
    return jnp.concatenate([vector[..., None], matrix], axis=-1)


def _apart(value: Array) -> tuple[Array, Array]:
    return value[..., 0], value[..., 1:]
