"""An observed variable with missing entries: points where it was given, the predictive marginal where it was not."""

from __future__ import annotations

from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...factors.arrays import Array, Key, Numeric
from ...factors.conditionals.beliefs import below
from ...factors.families import Family
from ...factors.families.base import Levels, Moments


@final
class Completed(Family):
    """`value` where `missing` is false, the family `predicted` where it is true; all over the same plates."""

    value: Array
    missing: Array
    predicted: Family

    def _pick(self, known: Numeric, predicted: Array) -> Array:
        mask = jnp.reshape(
            self.missing, jnp.shape(self.missing) + (1,) * (jnp.ndim(predicted) - jnp.ndim(self.missing))
        )
        return jnp.where(mask, predicted, known)

    def mean(self) -> Array:
        return self._pick(self._known(), self.predicted.mean())

    def variance(self) -> Array:
        return self._pick(0.0, self.predicted.variance())

    def moments(self) -> Moments:
        """Those of points where the value was given."""
        predicted: PyTree = self.predicted
        size = (jnp.shape(predicted.mean())[-1],) if predicted.kind == "category" else ()
        values = self.value if predicted.kind in ("boolean", "category") else jnp.asarray(self.value, float)
        return jax.tree.map(self._pick, predicted.moments_at(values, *size), predicted.moments())

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        predicted = self.predicted.quantile(level)
        return np.where(self.missing, predicted, np.broadcast_to(np.asarray(self.value), predicted.shape))

    def below(self, x: Array) -> Array:
        """P(X <= x), by element."""
        event = jnp.ndim(self.predicted.mean()) - jnp.ndim(self.missing)
        mask = jnp.reshape(self.missing, jnp.shape(self.missing) + (1,) * event)
        return jnp.where(mask, below(self.predicted, x), jnp.asarray(self.value) <= x)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        drawn = self.predicted.sample(key, shape)
        known = jnp.asarray(self.value)
        extra = jnp.ndim(drawn) - len(shape) - jnp.ndim(self.missing)
        mask = jnp.reshape(self.missing, jnp.shape(self.missing) + (1,) * extra)
        return jnp.where(mask, drawn, known)

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    def _known(self) -> Array:
        """The given values in the shape of a mean: classes as indicators."""
        mean = self.predicted.mean()
        if jnp.ndim(self.value) == jnp.ndim(mean):
            return self.value
        return jnp.asarray(self.value)[..., None] == jnp.arange(jnp.shape(mean)[-1])
