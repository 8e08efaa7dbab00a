"""Moves of boolean arrays: one element, two that change places, features that appear and vanish."""

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
from .priors import Prior

Booleans = Bool[jax.Array, "..."]


@dataclasses.dataclass(frozen=True)
class OfBooleans:
    """An array of booleans, which is its own structure and begins at random."""

    times: int
    prior: Prior | None

    def init(self, key: Key, places: tuple[Place, ...], data: Mapping[str, Any]) -> Booleans:
        place = only(places, type(self).__name__.lower(), self.prior, "booleans")
        if place.states != 2:
            raise ModelError(f"moves= of '{place.name}': {type(self).__name__.lower()} are of booleans; it is none.")
        self.check(place)
        if place.start is not None:
            return jnp.asarray(place.start, bool)
        return self.begin(key, place)

    def begin(self, key: Key, place: Place) -> Booleans:
        """Where no start is given."""
        return jax.random.bernoulli(key, 0.5, place.shape)

    def check(self, place: Place) -> None:
        """ModelError where the array has too few axes or elements."""

    def data_of(self, structure: Booleans) -> tuple[Array, ...]:
        return (structure,)

    def log_prior(self, structure: Booleans) -> Array:
        return jnp.zeros(()) if self.prior is None else self.prior.log_probability(structure)


class Flips(OfBooleans):
    """See `flips`."""

    def propose(self, key: Key, structure: Booleans, score: Score) -> tuple[Booleans, Array]:
        flat = structure.ravel()
        at = jax.random.randint(key, (), 0, flat.size)
        return flat.at[at].set(~flat[at]).reshape(structure.shape), jnp.zeros(())


class Swaps(OfBooleans):
    """See `swaps`."""

    def check(self, place: Place) -> None:
        if not place.shape or place.shape[-1] < 2:
            raise ModelError(f"moves= of '{place.name}': swaps need two elements along the last axis.")

    def propose(self, key: Key, structure: Booleans, score: Score) -> tuple[Booleans, Array]:
        keys = jax.random.split(key)
        rows = structure.reshape((-1, structure.shape[-1]))
        row = jax.random.randint(keys[0], (), 0, len(rows))
        pair = jax.random.choice(keys[1], rows.shape[1], (2,), replace=False)
        return rows.at[row, pair].set(rows[row, pair[::-1]]).reshape(structure.shape), jnp.zeros(())


class Births(OfBooleans):
    """See `births`."""

    def check(self, place: Place) -> None:
        if len(place.shape) != 2:
            raise ModelError(
                f"moves= of '{place.name}': births are of rows and features, two plates; it has shape {place.shape}."
            )

    def propose(self, key: Key, structure: Booleans, score: Score) -> tuple[Booleans, Array]:
        keys = jax.random.split(key, 3)
        row = jax.random.randint(keys[0], (), 0, len(structure))
        owners = jnp.sum(structure, axis=0)
        empty, own = owners == 0, (owners == 1) & structure[row]
        birth = jax.random.bernoulli(keys[1])
        places = jnp.where(birth, empty, own)
        feature = jax.random.categorical(keys[2], jnp.where(places, 0.0, -jnp.inf))
        found = jnp.where(jnp.any(places), structure.at[row, feature].set(birth), structure)
        there, back = jnp.sum(places), jnp.where(birth, jnp.sum(own), jnp.sum(empty)) + 1
        return found, jnp.where(jnp.any(places), jnp.log(there) - jnp.log(back), 0.0)


@call_checked
def flips(times: int = 10, prior: Prior | None = None) -> Flips:
    """Moves of booleans that propose the other value of one element, all elements alike.

    `times`: proposals in a sweep. `prior`: the law of the array where the model takes it as an input, such as
    `cv.moves.independent(0.1)`; without one all arrays are alike, or a variable has the model's. Returns a move for
    `cv.sample` and `cv.search`.
    """
    return Flips(check_times("flips", times), prior)


@call_checked
def swaps(times: int = 10, prior: Prior | None = None) -> Swaps:
    """Moves of booleans that propose to let two elements along the last axis change places, such as two features of a
    row.

    `times`: proposals in a sweep. `prior`: the law of an input, as for `flips`. How many are true stays as it is:
    add `flips` in a list. Returns a move for `cv.sample` and `cv.search`.
    """
    return Swaps(check_times("swaps", times), prior)


@call_checked
def births(times: int = 10, prior: Prior | None = None) -> Births:
    """Moves of booleans (row, feature): a feature that no row has appears in one row, or one that a single row has
    vanishes.

    `times`: proposals in a sweep. `prior`: the law of an input, as `cv.moves.indian_buffet(mass)`. Features that rows
    share stay: add `flips` in a list. Returns a move for `cv.sample` and `cv.search`.
    """
    return Births(check_times("births", times), prior)
