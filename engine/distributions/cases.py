"""Finite mixtures whose cases may be of different families, and beliefs that stand for others by their moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...factors.arrays import Array, Key, Numeric
from ...factors.conditional import inverted
from ...factors.conditionals.beliefs import below
from ...factors.families import FOR_DOMAIN, DiscreteFamily, Family
from ...factors.families.base import ExponentialFamily, Levels
from ...factors.switches import double_precision
from ..support.compiled import compiled
from .shown import Belief, Shown


@final
class Cases(Shown):
    """sum_k weights[k] q_k(x): each of `parts` holds some of the cases, on an axis after its plates.

    `weights` has an array shaped plates + (cases,) for each part. `projection` is the member of the family with
    the mixture's expected statistics, which messages use.
    """

    parts: tuple[Belief, ...]
    weights: tuple[Array, ...]
    projection: ExponentialFamily

    def stand_in(self) -> ExponentialFamily:
        return self.projection

    def mean(self) -> Array:
        return self._sum(lambda part: part.mean())

    def variance(self) -> Array:
        mean = self.mean()
        place = jnp.ndim(self.weights[0]) - 1
        return self._sum(lambda part: part.variance() + (part.mean() - jnp.expand_dims(mean, place)) ** 2)

    def covariance(self) -> Array:
        """Cov x of a vector, shaped plates + (D, D)."""
        mean = jnp.expand_dims(self.mean(), jnp.ndim(self.weights[0]) - 1)

        def second(part: PyTree) -> Array:
            gap = part.mean() - mean
            return part.covariance() + gap[..., :, None] * gap[..., None, :]

        return self._sum(second)

    def log_density(self, value: Array) -> Array:
        """The logarithm of the mixture's density at a value shaped plates + event (more leading axes allowed)."""
        event = jnp.ndim(self.mean()) - len(self.plates)
        value = jnp.asarray(value, float)
        value = jnp.expand_dims(value, jnp.ndim(value) - event)
        found = [part.log_density(value) for part in self.parts]
        return jax.scipy.special.logsumexp(jnp.concatenate(found, -1), b=jnp.concatenate(self.weights, -1), axis=-1)

    def below(self, x: Array) -> Array:
        """P(X <= x), by element, at a value shaped plates + event (more leading axes allowed)."""
        event = jnp.ndim(self.mean()) - len(self.plates)
        x = jnp.expand_dims(x, jnp.ndim(x) - event)
        total = jnp.zeros(())
        for part, weight in zip(self.parts, self.weights, strict=True):
            shape = jnp.shape(part.mean())
            at = jnp.broadcast_to(x, jnp.broadcast_shapes(jnp.shape(x), shape))
            weight = jnp.reshape(weight, jnp.shape(weight) + (1,) * event)
            total = total + (weight * below(part, at)).sum(-1 - event)
        return total

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        level = np.asarray(level, float)
        with double_precision():
            return np.asarray(_quantile(self, level))

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        which, inner = jax.random.split(key)
        weights = jnp.concatenate(self.weights, -1)
        chosen = jax.random.categorical(which, jnp.log(weights), shape=(*shape, *self.plates))
        keys = jax.random.split(inner, len(self.parts))
        drawn = [part.sample(own, shape) for part, own in zip(self.parts, keys, strict=True)]
        place = len(shape) + len(self.plates)
        drawn = jnp.concatenate([jnp.asarray(d, float) for d in drawn], place)
        index = jnp.reshape(chosen, (*chosen.shape, *(1,) * (drawn.ndim - place)))
        return jnp.take_along_axis(drawn, index, place).squeeze(place)

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        kinds = dict.fromkeys(title(part) for part in self.parts)
        return f"Mixture of {' and '.join(kinds)}"

    @property
    def plates(self) -> tuple[int, ...]:
        """The shape of the plates."""
        return tuple(jnp.shape(self.weights[0])[:-1])

    def _sum(self, function: Callable[[PyTree], Array]) -> Array:
        """The sum over all cases of their weight times an array with the cases after the plates."""
        place, total = len(self.plates), jnp.zeros(())
        for part, weight in zip(self.parts, self.weights, strict=True):
            values = function(part)
            weight = jnp.reshape(weight, jnp.shape(weight) + (1,) * (jnp.ndim(values) - jnp.ndim(weight)))
            total = total + jnp.where(weight > 0, weight * values, 0.0).sum(place)
        return total


def _quantile_of(own: Cases, level: Array) -> Array:
    shape = jnp.shape(own.mean())
    wanted = jnp.reshape(level, jnp.shape(level) + (1,) * len(shape))
    return inverted(lambda x: own.below(x) < wanted, own.kind, jnp.shape(level) + shape)


_quantile = compiled("quantile of cases", (), _quantile_of)


@final
class Projected(Shown):
    """A member of a family that stands for a distribution which is none, with its mean and variance or statistics."""

    own: PyTree  # a family

    def stand_in(self) -> ExponentialFamily:
        return self.own

    def mean(self) -> Array:
        return self.own.mean()

    def variance(self) -> Array:
        return self.own.variance()

    def covariance(self) -> Array:
        """Cov x of a vector."""
        return self.own.covariance()

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        return self.own.quantile(level)

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return self.own.sample(key, shape)

    def log_density(self, value: Array) -> Array:
        """That of the stand-in."""
        return self.own.log_density(value)

    def below(self, x: Array) -> Array:
        """That of the stand-in."""
        return below(self.own, x)

    def parameters(self) -> dict[str, Numeric]:
        return self.own.parameters()

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        return f"{type(self.own).__name__} (projection)"

    @property
    def plates(self) -> tuple[int, ...]:
        """The shape of the plates."""
        return self.own.plates


def title(family: Family) -> str:
    """The name under which a distribution is shown."""
    return getattr(family, "title", type(family).__name__)


def mixed(parts: tuple[Belief, ...], weights: tuple[Array, ...]) -> Family:
    """The mixture of cases on the first axis of each part; probabilities of discrete outcomes are averaged."""
    own = FOR_DOMAIN[parts[0].kind].mixture(parts, weights)
    return own if isinstance(own, DiscreteFamily) else Cases(parts, weights, own)
