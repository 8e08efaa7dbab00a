"""The point: a value that is known."""

from __future__ import annotations

from typing import final

import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Key, Numeric
from .base import Family, Levels, levels


@final
class Point(Family):
    """All mass at `value`, shaped plates + event; no exponential family: that a value is observed shows in the type."""

    value: Numeric

    def parameters(self) -> dict[str, Numeric]:
        return {"value": self.value}

    def mean(self) -> Numeric:
        return self.value

    def variance(self) -> Array:
        return jnp.zeros(jnp.shape(self.value))

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        value = np.asarray(self.value)
        return np.broadcast_to(value, np.broadcast_shapes(levels(level, value.ndim).shape, value.shape))

    def below(self, x: Array) -> Array:
        """P(X <= x), by element: 1 from the value on, else 0."""
        return jnp.where(jnp.asarray(self.value) <= x, 1.0, 0.0)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return jnp.broadcast_to(self.value, (*shape, *jnp.shape(self.value)))
