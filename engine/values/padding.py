"""Padded plates: rows of weight zero behind those of the data, so that data of a few more rows need no other program.

A padded plate has its padded size in `Scope.sizes`, and the number of its rows that count among the data, as an array.
Padded rows repeat the last one, so that whatever is computed of them is as legal as that.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Int

from ...compiler.blocks.base import Block
from ...compiler.data.keys import number_in
from ...compiler.language.nodes import Plate
from ...factors.arrays import Array, Key, Numeric
from .plated import Placed
from .scope import Scope

WORDS = 2**32 - 1  # the largest of 32 bits


def padded_plates(block: Block, scope: Scope) -> tuple[Plate, ...]:
    """The plates of a block that are padded."""
    return tuple(plate for plate in block.plates if plate in set(scope.padded))


def counts(plate: Plate, scope: Scope) -> Placed:
    """One for each row of the data, zero for each that is padding."""
    rows = jnp.arange(scope.sizes[plate.name]) < scope.data[number_in(plate.name)]
    return Placed(rows.astype(float), (plate,))


def numbers_of_rows(plates: tuple[Plate, ...], scope: Scope) -> list[Numeric]:
    """How many rows of each plate count."""
    return [scope.data[number_in(p.name)] if p in set(scope.padded) else scope.sizes[p.name] for p in plates]


def among_padded(places: Array, numbers: list[Numeric], sizes: list[int]) -> Int[Array, "..."]:
    """The places of instances, counted along plates of `numbers` rows, where the plates have `sizes` rows."""
    found, stride = jnp.zeros_like(places), 1
    for number, size in zip(reversed(numbers), reversed(sizes), strict=True):
        found = found + places % number * stride
        places, stride = places // number, stride * size
    return found


def shuffled(key: Key, size: int, number: Numeric) -> Int[Array, " size"]:
    """The places before `number` in the random order of `jax.random.permutation(key, number)`, then the rest in turn.

    Sorted by random words as there, with the largest word for what is to stay behind. The words of the first places do
    not depend on how many there are.
    """
    place = jnp.arange(size)
    order = place
    rounds = jnp.ceil(3.0 * jnp.log(number) / math.log(WORDS))
    for i in range(math.ceil(3.0 * math.log(size) / math.log(WORDS))):
        key, own = jax.random.split(key)
        words = jnp.where(place < number, jax.random.bits(own, (size,), jnp.uint32), jnp.uint32(WORDS))
        order = jnp.where(i < rounds, jax.lax.sort_key_val(words, order)[1], order)
    return order
