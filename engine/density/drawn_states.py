"""States of discrete variables, drawn given all continuous ones: jointly, one element after the other.

The probabilities of the states of an element are the derivatives of the log density in what is added to the logs of
their probabilities. An element that was drawn is kept by making its other states impossible, and the next is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ...factors import draws
from ...factors.arrays import Array, Key
from ..blocks.discrete.networks import NEVER
from .log_density import LogDensity

MOST = 2000  # elements that are drawn one after the other

Tilts = dict[str, Array]


def draw_states(density: LogDensity, tied: Collection[str], z: Array, key: Key, data: Mapping[str, Any]) -> Tilts:
    """The number of the state of each element, by name; elements of variables that are not `tied` are drawn at once."""
    values = density.coordinates.values(z, data)
    tilts: Tilts = density.no_tilts()
    probabilities = jax.grad(lambda tilts: density.terms.density(values, data, tilts))
    for i, name in enumerate(sorted(tied)):
        tilts = _one_by_one(name, tilts, probabilities, jax.random.fold_in(key, i))
    keys = jax.random.split(jax.random.fold_in(key, len(tied)), max(len(tilts), 1))
    found = probabilities(tilts)
    return {name: draws.categorical(own, _logs(found[name])) for name, own in zip(sorted(tilts), keys, strict=False)}


def _one_by_one(name: str, tilts: Tilts, probabilities: Any, key: Key) -> Tilts:
    shape = tilts[name].shape
    keys = jax.random.split(key, math.prod(shape[:-1]))

    def draw(element: Array, flat: jax.Array) -> jax.Array:
        table = probabilities({**tilts, name: flat.reshape(shape)})[name].reshape(flat.shape)
        state = draws.categorical(keys[element], _logs(table[element]))
        return flat.at[element].set(jnp.where(jnp.arange(shape[-1]) == state, 0.0, NEVER))

    flat = jax.lax.fori_loop(0, len(keys), draw, jnp.reshape(tilts[name], (-1, shape[-1])))
    return {**tilts, name: flat.reshape(shape)}


def _logs(table: jax.Array) -> jax.Array:
    return jnp.log(jnp.maximum(table, 1e-300))
