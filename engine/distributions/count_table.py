"""A count with a probability for each of its values: what a sum over them gives, where no family holds it."""

from __future__ import annotations

from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from ...factors.arrays import Array, Key
from ...factors.families import Family
from ...factors.families.base import Levels
from ...factors.moments import Count
from ...factors.special import lgamma
from ...factors.switches import double_precision


@final
class CountTable(Family):
    """P(low + stride * i) = exp(log_probabilities[i]), i = 0, 1, ...; zero elsewhere.

    `log_probabilities` is shaped plates + (values,), `low` and `stride` plates. A stride is one up to some hundreds of
    values; a longer one stands for that many whole numbers around each entry.
    """

    low: Array
    stride: Array
    log_probabilities: Array

    def values(self) -> Array:
        """The values of the entries, shaped as the probabilities."""
        steps = jnp.arange(jnp.shape(self.log_probabilities)[-1])
        return jnp.asarray(self.low)[..., None] + jnp.asarray(self.stride)[..., None] * steps

    def _probabilities(self) -> Array:
        return jnp.exp(self.log_probabilities)

    def mean(self) -> Array:
        return jnp.sum(self._probabilities() * self.values(), axis=-1)

    def variance(self) -> Array:
        away = self.values() - self.mean()[..., None]
        return jnp.sum(self._probabilities() * away**2, axis=-1) + (jnp.asarray(self.stride) ** 2 - 1.0) / 12.0

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    def log_density(self, value: Array) -> Array:
        """log P at values shaped plates (more leading axes allowed)."""
        value = jnp.asarray(value, float)
        place = (value - self.low) / self.stride
        last = jnp.shape(self.log_probabilities)[-1] - 1
        before = jnp.clip(jnp.floor(place), 0, last).astype(int)
        table = jnp.broadcast_to(self.log_probabilities, (*jnp.shape(place), last + 1))

        def at(index: Array) -> Array:
            return jnp.take_along_axis(table, index[..., None], axis=-1)[..., 0]

        share, lower = place - before, at(before)
        between = jnp.where(share > 0.0, (1.0 - share) * lower + share * at(jnp.minimum(before + 1, last)), lower)
        inside = (place >= 0.0) & (place <= last) & (value == jnp.floor(value))
        return jnp.where(inside, between - jnp.log(self.stride), -jnp.inf)

    def below(self, x: Array) -> Array:
        """P(X <= x) at values shaped plates (more leading axes allowed)."""
        return jnp.sum(jnp.where(self.values() <= jnp.asarray(x)[..., None], self._probabilities(), 0.0), axis=-1)

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        with double_precision():
            up_to, values = (np.asarray(a) for a in (jnp.cumsum(self._probabilities(), -1), self.values()))
        level = np.asarray(level, float)
        level = level.reshape(level.shape + (1,) * (up_to.ndim - 1))
        index = np.minimum((up_to < level[..., None]).sum(-1), up_to.shape[-1] - 1)
        wide = np.broadcast_to(values, (*index.shape, values.shape[-1]))
        return np.take_along_axis(wide, index[..., None], -1)[..., 0]

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        which, inner = jax.random.split(key)
        index = jax.random.categorical(which, self.log_probabilities, shape=(*shape, *self.plates))
        around = jnp.floor(jax.random.uniform(inner, index.shape) * self.stride) - jnp.floor((self.stride - 1.0) / 2.0)
        return jnp.maximum(self.low + self.stride * index + around, 0.0)

    @property
    def kind(self) -> str:
        """The kind of its domain."""
        return "count"

    @property
    def plates(self) -> tuple[int, ...]:
        """The shape of the plates."""
        return tuple(jnp.shape(self.log_probabilities)[:-1])

    def moments(self) -> Count:
        """E x and E log x!."""
        return Count(self.mean(), jnp.sum(self._probabilities() * lgamma(self.values() + 1.0), axis=-1))

    @classmethod
    def moments_at(cls, value: Array, *size: int) -> Count:
        """The moments of a point."""
        return Count(jnp.asarray(value, float), lgamma(jnp.asarray(value, float) + 1.0))
