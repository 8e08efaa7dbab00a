"""Arrays whose first axes are plates, with the plates named, and functions mapped over them.

A value carries only the plates that it varies over. Mapping a scalar function over the union of the plates of its
operands maps each operand over its own plates alone, so an inner product of operands on different plates becomes a
matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...compiler.language.nodes import Plate

Plates = tuple[Plate, ...]


class Placed(NamedTuple):
    """`value` (an array or a tuple of arrays) with one leading axis for each of `plates`."""

    value: PyTree
    plates: Plates


def union(*groups: Plates) -> Plates:
    """All plates in order of first appearance."""
    return tuple(dict.fromkeys(plate for group in groups for plate in group))


def ordered(plates: Plates, order: Plates) -> Plates:
    """`plates` in the order in which they appear in `order`, then the rest."""
    return tuple(plate for plate in order if plate in plates) + tuple(plate for plate in plates if plate not in order)


def arrange(placed: Placed, plates: Plates) -> Placed:
    """The same value with its plate axes in the order of `plates`."""
    target = ordered(placed.plates, plates)
    if target == placed.plates:
        return placed
    order = [placed.plates.index(plate) for plate in target]

    def transpose(array):
        return jnp.transpose(array, order + list(range(len(order), array.ndim)))

    return Placed(jax.tree.map(transpose, placed.value), target)


def mapped(function: Callable[..., PyTree], *operands: Placed, order: Plates = ()) -> Placed:
    """`function`, written for one scalar instance, over all plates of its operands (in `order` where given)."""
    plates = union(*(operand.plates for operand in operands))
    plates = ordered(plates, order)
    placed = [arrange(operand, plates) for operand in operands]
    for plate in reversed(plates):
        axes = [0 if plate in operand.plates else None for operand in placed]
        function = jax.vmap(function, in_axes=axes)
    return Placed(function(*(operand.value for operand in placed)), plates)


def to_event(placed: Placed, plate: Plate) -> Placed:
    """Moves a plate axis to the first event axis."""
    position = placed.plates.index(plate)
    last = len(placed.plates) - 1
    value = jax.tree.map(lambda array: jnp.moveaxis(array, position, last), placed.value)
    return Placed(value, placed.plates[:position] + placed.plates[position + 1 :])


def spread(placed: Placed, plates: Plates, sizes: Mapping[str, int]) -> PyTree:
    """The value broadcast over all of `plates`, in that order."""
    placed = arrange(placed, plates)

    def grow(array):
        event = array.shape[len(placed.plates) :]
        shape = tuple(sizes[plate.name] if plate in placed.plates else 1 for plate in plates)
        return jnp.broadcast_to(array.reshape(shape + event), tuple(sizes[plate.name] for plate in plates) + event)

    return jax.tree.map(grow, placed.value)
