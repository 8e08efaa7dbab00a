"""The categorical family on the integers 0, ..., K - 1."""

from __future__ import annotations

from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..arrays import Array, Key, Numeric
from ..errors import UnsupportedError
from ..moments import Category
from .base import Arrays, Levels, Vectors
from .capabilities import DiscreteFamily


@final
class Categorical(DiscreteFamily):
    """P(x = k) = exp(logits_k) / sum_j exp(logits_j), with the statistics 1[x = k].

    `logits` is shaped plates + (K,) and identified up to a constant; minus infinity excludes a class, plus infinity
    chooses one. All classes excluded is a contradiction: probabilities NaN, not proper.
    """

    logits: Vectors
    kind: ClassVar[str] = "category"
    natural_ndims: ClassVar[tuple[int, ...]] = (1,)

    @property
    def probability(self) -> Vectors:
        """The class probabilities, shaped plates + (K,)."""
        odds = jnp.exp(self._shifted())
        return odds / jnp.sum(odds, axis=-1, keepdims=True)

    @classmethod
    def from_parameters(cls, *, probability: Vectors) -> Self:
        return cls(jnp.log(probability))

    def parameters(self) -> dict[str, Array]:
        return {"probability": self.probability}

    def mean(self) -> Vectors:
        return self.probability

    def variance(self) -> Vectors:
        return self.probability * (1.0 - self.probability)

    def log_partition(self) -> Array:
        return logsumexp(self.logits, axis=-1)

    def expected_stats(self) -> Arrays:
        return (self.probability,)

    @classmethod
    def from_stats(cls, stats: Arrays) -> Self:
        return cls.from_parameters(probability=stats[0])

    @classmethod
    def from_moments(cls, moments: Category) -> Self:
        return cls.from_parameters(probability=moments.probability)

    @classmethod
    def from_logits(cls, logits: Array) -> Self:
        return cls(logits)

    def logits_by_state(self) -> Array:
        return self.logits

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """All classes alike."""
        return cls.uniform((), event)

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor(event)

    @classmethod
    def first_moments(cls, event: int | None = None) -> Category:
        return Category(jnp.full((event or 1,), 1.0 / (event or 1)))

    @classmethod
    def legal_value(cls, event: int | None = None) -> float | int:
        return 0

    @classmethod
    def bijection(cls, event: int | None = None) -> None:
        return None

    @classmethod
    def stats_of(cls, value: Array, size: int) -> Arrays:
        """The indicator of the class among `size` classes."""
        return (jax.nn.one_hot(value, size, dtype=float),)

    @classmethod
    def log_base(cls, value: Array) -> Array:
        return jnp.zeros(jnp.shape(value))

    def fisher_solve(self, tangent: Arrays) -> Arrays:
        """The solution of least norm: the tangent is centred, and so is what is returned."""
        probability = self.probability
        excluded = probability == 0.0
        centred = tangent[0] - jnp.mean(tangent[0], axis=-1, keepdims=True)
        solved = jnp.where(excluded, 0.0, centred / jnp.where(excluded, 1.0, probability))
        return (solved - jnp.mean(solved, axis=-1, keepdims=True),)

    def log_density(self, value: Numeric) -> Array:
        chosen = jnp.asarray(value)[..., None] == jnp.arange(self.logits.shape[-1])
        return jnp.sum(jnp.where(chosen, self._log_probability(), 0.0), axis=-1)

    def entropy(self) -> Array:
        shifted = self._shifted()
        odds = jnp.exp(shifted)
        total = jnp.sum(odds, axis=-1)
        # A selection, so that excluded classes give neither NaN nor a NaN derivative; a contradiction stays NaN.
        finite = jnp.where(shifted == -jnp.inf, 0.0, shifted)
        return jnp.log(total) - jnp.sum(odds * finite, axis=-1) / total

    def is_proper(self) -> Array:
        return ~jnp.any(jnp.isnan(self.logits), axis=-1) & (jnp.max(self.logits, axis=-1) > -jnp.inf)

    def moments(self) -> Category:
        return Category(self.probability)

    @classmethod
    def moments_at(cls, value: Array, size: int) -> Category:
        """The moments of a point among `size` classes."""
        return Category(*cls.stats_of(value, size))

    @staticmethod
    def pull(moments: Category, gradient: Category) -> Arrays:
        return (gradient.probability,)

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        raise UnsupportedError(
            "Asked for a quantile of a category: its classes have no order, so none is below another. "
            "Use the probabilities, `mean()`."
        )

    def mode(self) -> Array:
        """The number of the likeliest class."""
        return jnp.argmax(self.mean(), axis=-1)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return jax.random.categorical(key, self._log_probability(), shape=(*shape, *self.plates))

    def _shifted(self) -> Array:
        """The logits less their largest; classes with infinite logits share the probability."""
        top = jnp.max(self.logits, axis=-1, keepdims=True)
        chosen = jnp.where(self.logits == jnp.inf, 0.0, -jnp.inf)
        return jnp.where(top == jnp.inf, chosen, self.logits - top)

    def _log_probability(self) -> Array:
        shifted = self._shifted()
        return shifted - logsumexp(shifted, axis=-1, keepdims=True)
