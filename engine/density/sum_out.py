"""Discrete variables summed out of a log density, instance by instance, in the order that `order` has found.

A discrete variable stands for the array of its states along a plate of its own, so every log density that it touches
becomes a table over its states. Source: obermeyer2019tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ...compiler.language.nodes import Gather, Plate, Random
from ...factors.arrays import Array
from ..blocks.discrete.networks import NEVER, log_sum
from ..values.evaluate import value
from ..values.plated import Placed, mapped, to_event
from ..values.scope import Scope
from .order import Step
from .sum_chains import Tables, chain_of, sum_chains
from .tables import InstanceDensity, Summed, checked_size, lengths, sum_of


def everything(pieces: Sequence[InstanceDensity], scope: Scope) -> Array:
    """The sum of pieces that are finite wherever they are asked for: no choice stands before derivatives."""
    return sum((_total(piece, scope) for piece in pieces), jnp.zeros(()))


def eliminate(pieces: Sequence[InstanceDensity | None], steps: Sequence[Step], scope: Scope) -> Array:
    """The sum of all pieces, variables summed out step by step; a piece that is None adds nothing."""
    live = {number: _possible(piece) for number, piece in enumerate(pieces) if piece is not None}
    for number, step in enumerate(steps, start=len(pieces)):
        mine = [live.pop(place) for place in step.inputs if place in live]
        first = step.group[0]
        if (chain := chain_of(first.variable)) is None:
            density = _one_by_one(first, [owned(piece, first.variable, scope) for piece in mine], scope)
        else:
            density = sum_chains(step.group, _tables_of(step.group, chain.over, mine, scope), scope)
        live[number] = InstanceDensity(step.result, density)
    return sum((_total(piece, scope) for piece in live.values()), jnp.zeros(()))


def _possible(piece: InstanceDensity) -> InstanceDensity:
    """The piece with a finite number for what is impossible, so that there are derivatives where all states are."""
    return piece._replace(density=Placed(jnp.maximum(piece.density.value, NEVER), piece.density.plates))


def _one_by_one(one: Summed, tables: list[Placed], scope: Scope) -> Placed:
    """The states of each element summed out on its own."""
    sizes = {plate: size for table in tables for plate, size in lengths(table).items()}
    sizes |= {plate: scope.sizes[plate.name] for plate in one.variable.plates}
    checked_size(one.variable.name, math.prod(sizes.values()) // sizes[one.axis])
    rest = to_event(sum_of(tables, one.variable.plates), one.axis)
    return Placed(log_sum(rest.value, rest.value.ndim - 1), rest.plates)


def _tables_of(group: tuple[Summed, ...], over: Plate, mine: list[InstanceDensity], scope: Scope) -> Tables:
    """The pieces that read chains, by what they are of these."""
    variables, before = {one.variable.name: one.variable for one in group}, {one.before for one in group}
    firsts, own, moves = [], [], []
    for piece in mine:
        if over not in set(piece.read.plates) and piece.read.name in variables:
            firsts.append(piece.density)
            continue
        variable = next(variable for name, variable in variables.items() if name in piece.read.gathers)
        density = owned(piece, variable, scope)
        (moves if before & set(density.plates) else own).append(density)
    return Tables(tuple(firsts), tuple(own), tuple(moves))


def owned(piece: InstanceDensity, variable: Random, scope: Scope) -> Placed:
    """The piece with every instance added to the element of `variable` that it reads."""
    gather, plates, density = piece.read.gathers.get(variable.name), piece.read.plates, piece.density
    if gather is not None:
        density = _scattered(density, gather, scope)
        plates = tuple(plate for plate in plates if plate not in set(gather.index.plates))
    for plate in plates:
        if plate not in set(variable.plates):
            density = _reduced(density, plate, scope)
    return density


def _reduced(density: Placed, plate: Plate, scope: Scope) -> Placed:
    if plate not in set(density.plates):
        return Placed(scope.sizes[plate.name] * density.value, density.plates)
    moved = to_event(density, plate)
    return Placed(jnp.sum(moved.value, axis=-1), moved.plates)


def _scattered(density: Placed, gather: Gather, scope: Scope) -> Placed:
    """Sums instances that read the same element."""
    index = value(gather.index, scope)
    over = gather.index.plates
    full = mapped(lambda d, i: d + 0.0 * i, density, Placed(jnp.asarray(index.value, float), index.plates))
    for plate in over:
        if plate not in set(full.plates):
            full = mapped(lambda d, i: d, full, Placed(jnp.zeros(scope.sizes[plate.name]), (plate,)))
    kept = tuple(plate for plate in full.plates if plate not in set(over))
    order = [[p is plate for p in full.plates].index(True) for plate in (*over, *kept)]
    array = jnp.transpose(full.value, order)
    array = array.reshape((-1, *array.shape[len(over) :]))
    positions = jnp.broadcast_to(
        jnp.asarray(index.value, jnp.int32), tuple(scope.sizes[plate.name] for plate in over)
    ).ravel()
    sums = jax.ops.segment_sum(array, positions, num_segments=scope.sizes[gather.axis.name])
    return Placed(sums, (gather.axis, *kept))


def _total(piece: InstanceDensity, scope: Scope) -> Array:
    repeats = math.prod(
        scope.sizes[plate.name] for plate in piece.read.plates if plate not in set(piece.density.plates)
    )
    return repeats * jnp.sum(piece.density.value)
