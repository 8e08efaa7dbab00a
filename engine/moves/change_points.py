"""Moves of change points: one appears or vanishes, or goes to a place beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from ...factors.arrays import Array, Key
from ...factors.calls import call_checked
from ...factors.errors import ModelError
from ..mcmc.structure import Place, Score
from .asked import check_times, only
from .priors import Independent, independent

Changes = Bool[jax.Array, " inside"]  # whether a segment begins at each place but the first


@dataclasses.dataclass(frozen=True)
class ChangePoints:
    """See `change_points`."""

    times: int
    prior: Independent | None

    def init(self, key: Key, places: tuple[Place, ...], data: Mapping[str, Any]) -> tuple[Changes, Array]:
        place = only(places, "change_points", self.prior, "booleans")
        if place.states is None or len(place.shape) != 1 or place.shape[0] < 3:
            raise ModelError(
                f"moves= of '{place.name}': change points number the segments of three places or more along one plate, "
                f"a category or an index; it has shape {place.shape}."
            )
        segment = jnp.zeros(place.shape, int) if place.start is None else jnp.asarray(place.start)
        if jnp.any((jnp.diff(segment) < 0) | (jnp.diff(segment) > 1)) or segment[0] != 0:
            raise ModelError(f"'{place.name}' numbers segments: it starts at 0 and never steps back or by more than 1.")
        return jnp.diff(segment) > 0, jnp.asarray(place.states)

    def data_of(self, structure: tuple[Changes, Array]) -> tuple[Array, ...]:
        changes, most = structure
        segment = jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(changes)])
        return (jnp.minimum(segment, most - 1).astype(jnp.int32),)

    def log_prior(self, structure: tuple[Changes, Array]) -> Array:
        changes, most = structure
        own = jnp.zeros(()) if self.prior is None else self.prior.log_probability(changes)
        return jnp.where(jnp.sum(changes) < most, own, -jnp.inf)

    def propose(self, key: Key, structure: tuple[Changes, Array], score: Score) -> tuple[tuple[Changes, Array], Array]:
        changes, most = structure
        keys = jax.random.split(key, 2)
        at = jax.random.randint(keys[0], (), 0, len(changes))
        beside = jnp.clip(at + 1, 0, len(changes) - 1)
        flipped = changes.at[at].set(~changes[at])
        shifted = changes.at[at].set(changes[beside]).at[beside].set(changes[at])
        return (jnp.where(jax.random.bernoulli(keys[1]), flipped, shifted), most), jnp.zeros(())


@call_checked
def change_points(times: int = 10, probability: float | None = None) -> ChangePoints:
    """Moves of the numbers of segments (category or index along one plate, 0 0 1 1 1 2 ...): a change appears, vanishes
    or goes to the place beside it.

    `times`: proposals in a sweep. `probability`: of an input, the prior of a change at each place but the first,
    restricted to so many segments as there are classes; without one all arrays are alike, or a variable has the
    model's. Returns a move for `cv.sample` and `cv.search`.
    """
    prior = None if probability is None else independent(probability)
    return ChangePoints(check_times("change_points", times), prior)
