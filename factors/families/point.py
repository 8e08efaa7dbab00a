"""The point: a value that is known."""

from __future__ import annotations

from typing import final

import jax.numpy as jnp
import numpy as np

from .base import Array, Family, levels


@final
class Point(Family):
    """All mass at `value`, shaped plates + event; no exponential family: that a value is observed shows in the type."""

    value: Array

    def parameters(self) -> dict[str, Array]:
        return {"value": self.value}

    def mean(self) -> Array:
        return self.value

    def variance(self) -> Array:
        return jnp.zeros(jnp.shape(self.value))

    def quantile(self, level: float | np.ndarray) -> np.ndarray:
        value = np.asarray(self.value)
        return np.broadcast_to(value, np.broadcast_shapes(levels(level, value.ndim).shape, value.shape))

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        return jnp.broadcast_to(self.value, (*shape, *jnp.shape(self.value)))
