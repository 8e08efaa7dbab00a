"""The distribution of a scalar as a table of its quantiles: what an expression of random numbers has, if no family."""

from __future__ import annotations

from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...factors.arrays import Array, Key
from ...factors.families.base import ExponentialFamily, Levels
from ...factors.quadrature import HALF_LOG_2PI
from ...factors.records import fixed
from ...factors.special import ndtr
from ...factors.switches import double_precision
from .shown import Shown

SCORES = np.linspace(-6.0, 6.0, 241)  # the levels of the table are those at which a standard normal number has these
_STEP = SCORES[1] - SCORES[0]
_LOCAL = 4  # steps on each side over which a density is taken


@final
class Tabulated(Shown):
    """A scalar x = values(s) of a standard normal number s, increasing, and linear between the `SCORES`.

    `values` has the plates first and then the table. `projection` is the member of the domain's family with the mean
    and the variance, which are known better than the table tells. `origin` says what the table was made of.
    """

    values: Array
    projection: PyTree  # a family, or none where no message needs one
    origin: str = fixed()

    def stand_in(self) -> ExponentialFamily:
        return self.projection

    def mean(self) -> Array:
        return self.projection.mean()

    def variance(self) -> Array:
        return self.projection.variance()

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        with double_precision():
            scores = jax.scipy.special.ndtri(jnp.asarray(level, float))
            return np.asarray(self._at(scores.reshape(scores.shape + (1,) * len(self.plates))))

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return self._at(jax.random.normal(key, (*shape, *self.plates)))

    def below(self, x: Array) -> Array:
        """P(X <= x), by element, at a value shaped as the plates (more leading axes allowed)."""
        return ndtr(self._score(jnp.asarray(x, float)))

    def log_density(self, value: Array) -> Array:
        """The logarithm of the probability around a value over the width that holds it: a density, a little smoothed.

        Minus infinity outside the table.
        """
        value = jnp.asarray(value, float)
        score = self._score(value)
        low, high = (jnp.clip(score + side * _LOCAL * _STEP, SCORES[0], SCORES[-1]) for side in (-1.0, 1.0))
        width = self._at(high) - self._at(low)
        inside = (value >= self.values[..., 0]) & (value <= self.values[..., -1])
        # Over the width the normal density at the score stands for its mean, and the quotient is that of lengths.
        slope = jnp.log(high - low) - jnp.log(jnp.where(inside, width, 1.0))
        return jnp.where(inside, slope - 0.5 * score**2 - HALF_LOG_2PI, -jnp.inf)

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        return f"Table of {len(SCORES)} quantiles{self.origin}"

    @property
    def plates(self) -> tuple[int, ...]:
        """The shape of the plates."""
        return tuple(jnp.shape(self.values)[:-1])

    def _at(self, score: Array) -> Array:
        """The values at scores shaped plates (more leading axes allowed)."""
        shape = jnp.broadcast_shapes(jnp.shape(score), self.plates)
        place = jnp.broadcast_to(jnp.clip((score - SCORES[0]) / _STEP, 0.0, len(SCORES) - 1.0), shape)
        left = jnp.minimum(jnp.floor(place).astype(int), len(SCORES) - 2)
        share, table = place - left, jnp.broadcast_to(self.values, (*shape, len(SCORES)))
        low, high = (jnp.take_along_axis(table, (left + i)[..., None], -1)[..., 0] for i in (0, 1))
        return low + share * (high - low)

    def _score(self, x: Array) -> Array:
        """The highest score at which the value is at most x; infinite outside the table."""
        shape = jnp.broadcast_shapes(jnp.shape(x), self.plates)
        x, table = jnp.broadcast_to(x, shape), jnp.broadcast_to(self.values, (*shape, len(SCORES)))
        number = jnp.sum(table <= x[..., None], axis=-1)
        left = jnp.clip(number - 1, 0, len(SCORES) - 2)
        low, high = (jnp.take_along_axis(table, (left + i)[..., None], -1)[..., 0] for i in (0, 1))
        share = (x - low) / jnp.where(high > low, high - low, 1.0)
        found = SCORES[0] + _STEP * (left + jnp.clip(share, 0.0, 1.0))
        return jnp.where(number == 0, -jnp.inf, jnp.where(number == len(SCORES), jnp.inf, found))
