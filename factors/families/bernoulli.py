"""The Bernoulli family on booleans."""

from __future__ import annotations

from typing import ClassVar, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from ..moments import Boolean
from ..special import sigmoid, softplus
from .base import Levels, Naturals, Scalars, floating, host, levels
from .capabilities import DiscreteFamily

# At this logit the entropy has underflowed to zero; capping there keeps infinity times zero out of it.
_CERTAIN = 1000.0


@final
class Bernoulli(DiscreteFamily):
    """P(x = 1) = probability = 1 / (1 + exp(-logit)), with statistic x.

    `logit` is shaped plates; infinite logits are certain outcomes. The uniform message is a fair coin.
    """

    logit: Scalars
    kind: ClassVar[str] = "boolean"
    natural_ndims: ClassVar[tuple[int, ...]] = (0,)

    @property
    def probability(self) -> Array:
        """P(x is true)."""
        return sigmoid(self.logit)

    @classmethod
    def from_parameters(cls, *, probability: Scalars) -> Self:
        return cls(jnp.log(probability) - jnp.log1p(-probability))

    def parameters(self) -> dict[str, Array]:
        return {"probability": self.probability}

    def mean(self) -> Array:
        return self.probability

    def variance(self) -> Array:
        return sigmoid(self.logit) * sigmoid(-self.logit)

    def log_partition(self) -> Array:
        return softplus(self.logit)

    def expected_stats(self) -> Naturals:
        return (self.probability,)

    @classmethod
    def from_stats(cls, stats: Naturals) -> Self:
        return cls.from_parameters(probability=stats[0])

    @classmethod
    def from_moments(cls, moments: Boolean) -> Self:
        return cls.from_parameters(probability=moments.probability)

    @classmethod
    def from_logits(cls, logits: Array) -> Self:
        """Those of false and true."""
        return cls(logits[..., 1] - logits[..., 0])

    def logits_by_state(self) -> Array:
        return jnp.stack([jnp.zeros_like(self.logit), self.logit], axis=-1)

    @classmethod
    def anchor(cls, event: int | None = None) -> Self:
        """A fair coin."""
        return cls.uniform()

    @classmethod
    def placeholder(cls, event: int | None = None) -> Self:
        return cls.anchor()

    @classmethod
    def first_moments(cls, event: int | None = None) -> Boolean:
        return Boolean(0.5 * jnp.ones(()))

    @classmethod
    def legal_value(cls, event: int | None = None) -> float | int:
        return 0

    @classmethod
    def bijection(cls, event: int | None = None) -> None:
        return None

    @classmethod
    def stats_of(cls, value: Numeric) -> Naturals:
        """1 for true, 0 for false."""
        return (floating(value),)

    @classmethod
    def log_base(cls, value: Numeric) -> Array:
        return jnp.zeros_like(floating(value))

    def fisher_solve(self, tangent: Naturals) -> Naturals:
        variance = self.variance()
        certain = variance == 0.0
        return (jnp.where(certain, 0.0, tangent[0] / jnp.where(certain, 1.0, variance)),)

    def log_density(self, value: Numeric) -> Array:
        return -softplus(jnp.where(jnp.asarray(value).astype(bool), -self.logit, self.logit))

    def entropy(self) -> Array:
        size = jnp.minimum(jnp.abs(self.logit), _CERTAIN)
        return softplus(-size) + size * sigmoid(-size)

    def is_proper(self) -> Array:
        return ~jnp.isnan(self.logit)

    def moments(self) -> Boolean:
        return Boolean(self.probability)

    @classmethod
    def moments_at(cls, value: Numeric) -> Boolean:
        """The moments of a point."""
        return Boolean(floating(value))

    @staticmethod
    def pull(moments: Boolean, gradient: Boolean) -> Naturals:
        return (gradient.probability,)

    def sharpened(self, times: Numeric) -> Self:
        return self

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """False is below true: shaped as the levels, then plates, of booleans."""
        import scipy.special  # here: it takes a third of a second to import

        return levels(level, len(self.plates)) > scipy.special.expit(-host(self.logit)[0])

    def mode(self) -> Array:
        """Whether true is likelier."""
        return self.mean() > 0.5

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return jax.random.bernoulli(key, self.probability, (*shape, *self.plates))
