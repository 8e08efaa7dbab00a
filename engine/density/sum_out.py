"""Discrete variables summed out of a log density, instance by instance.

A discrete variable stands for the array of its states along a plate of its own, so every log density that it touches
becomes a table over its states; variables are then eliminated one after the other, those of most plates first. Source:
obermeyer2019tensor.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...compiler.language.atoms import atom_key
from ...compiler.language.nodes import Apply, Expr, Gather, Let, Plate, Random, parents
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.factor import VECTOR_LINKS
from ..values.evaluate import value
from ..values.plated import Placed, mapped, to_event
from ..values.scope import Scope

LARGEST_TABLE = 10**7


class InstanceDensity(NamedTuple):
    """A log density by instance: `plates` are all plates of its instances, also those it is constant over.

    `gathers` tells by variable the gather through which the piece reads it, None where it reads its own element.
    """

    name: str
    density: Placed
    plates: tuple[Plate, ...]
    gathers: Mapping[str, Gather | None]


def states_plate(variable: Random) -> Plate:
    """The plate of a variable's states."""
    return Plate(f"states of {variable.name}")


def states(variable: Random, plate: Plate, scope: Scope) -> Placed:
    """All values of a discrete variable along the plate of its states."""
    if variable.domain.is_boolean:
        return Placed(jnp.asarray([False, True]), (plate,))
    return Placed(jnp.arange(scope.size(variable.domain.size)), (plate,))


def gathers_of(
    name: str, roots: tuple[Expr, ...], summed: Mapping[str, Random], data: Collection[str]
) -> dict[str, Gather | None]:
    """How the factor called `name` with these parts reads each summed variable.

    UnsupportedError where an instance reads several elements of one: they would have to be enumerated jointly.
    """
    found: dict[str, Gather | None] = {}
    keys: dict[str, tuple | None] = {}
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(root, ()) for root in roots]
    while stack:
        node, above = stack.pop()
        if isinstance(node, (Random, Let)) and node.name in data:
            continue
        if isinstance(node, Random):
            if node.name in summed:
                gather = _only_gather(name, node, above)
                key = None if gather is None else atom_key(gather.index)
                if keys.setdefault(node.name, key) != key:
                    raise UnsupportedError(_coupled(name, node))
                found[node.name] = gather
            continue
        for child in parents(node):
            passes = isinstance(node, Gather) and child is node.source and above_matters(node, child)
            couples = isinstance(node, Apply) and node.op in ("sum", *VECTOR_LINKS)
            stack.append((child, (*above, node) if passes or couples else above))
    return found


def above_matters(gather: Gather, source: Expr) -> bool:
    """A gather matters to what it takes elements of."""
    return gather.axis in set(source.plates)


def _only_gather(name: str, variable: Random, above: tuple[Expr, ...]) -> Gather | None:
    mine = set(variable.plates)
    relevant = [
        node
        for node in above
        if (isinstance(node, Gather) and node.axis in mine) or (isinstance(node, Apply) and node.option("over") in mine)
    ]
    if not relevant:
        return None
    if len(relevant) > 1 or not isinstance(relevant[0], Gather):
        raise UnsupportedError(_coupled(name, variable))
    return relevant[0]


def _coupled(name: str, variable: Random) -> str:
    return (
        f"'{name}' joins several elements of the discrete variable '{variable.name}', so that they cannot be summed "
        "out one by one and the joint log density would need all their combinations. Inference itself does not."
    )


def eliminate(pieces: list[InstanceDensity], summed: Mapping[str, tuple[Random, Plate]], scope: Scope) -> Array:
    """The sum of all pieces, the summed variables integrated out."""
    order = sorted(summed.values(), key=lambda pair: -len(pair[0].plates))
    pieces = list(pieces)
    for variable, axis in order:
        mine = [piece for piece in pieces if axis in set(piece.density.plates)]
        pieces = [piece for piece in pieces if axis not in set(piece.density.plates)]
        owned = [_owned(piece, variable, scope) for piece in mine]
        if not owned:
            continue
        others = {plate for piece in owned for plate in piece.density.plates} - set(variable.plates)
        for other, plate in summed.values():
            if plate in others and not set(other.plates) <= set(variable.plates):
                raise UnsupportedError(_tangled(variable, other))
        size = math.prod(_length(piece, plate) for plate in others for piece in [_with(owned, plate)])
        if size * math.prod(scope.sizes[plate.name] for plate in variable.plates) > LARGEST_TABLE:
            raise UnsupportedError(
                f"Summing '{variable.name}' out needs a table of more than {LARGEST_TABLE:,} entries, because many "
                "discrete variables meet in it. Observe some of them."
            )
        total = mapped(lambda *tables: sum(tables), *(piece.density for piece in owned), order=variable.plates)
        rest = to_event(total, axis)
        density = Placed(jax.nn.logsumexp(rest.value, axis=-1), rest.plates)
        gathers = {name: g for piece in owned for name, g in piece.gathers.items() if name != variable.name}
        pieces.append(InstanceDensity(variable.name, density, variable.plates, gathers))
    return sum((_total(piece, scope) for piece in pieces), jnp.zeros(()))


def _with(pieces: list[InstanceDensity], plate: Plate) -> InstanceDensity:
    return next(piece for piece in pieces if plate in set(piece.density.plates))


def _length(piece: InstanceDensity, plate: Plate) -> int:
    position = [p is plate for p in piece.density.plates].index(True)
    return piece.density.value.shape[position]


def _tangled(variable: Random, other: Random) -> str:
    return (
        f"The discrete variables '{variable.name}' and '{other.name}' meet in one factor but live on different plates, "
        "neither inside the other: their elements cannot be summed out one by one."
    )


def _owned(piece: InstanceDensity, variable: Random, scope: Scope) -> InstanceDensity:
    """The piece with every instance added to the element of `variable` that it reads."""
    gather = piece.gathers.get(variable.name)
    if gather is not None:
        piece = _scattered(piece, variable, gather, scope)
    density = piece.density
    for plate in piece.plates:
        if plate not in set(variable.plates):
            density = _reduced(density, plate, scope)
    return piece._replace(density=density, plates=variable.plates)


def _reduced(density: Placed, plate: Plate, scope: Scope) -> Placed:
    if plate not in set(density.plates):
        return Placed(scope.sizes[plate.name] * density.value, density.plates)
    moved = to_event(density, plate)
    return Placed(jnp.sum(moved.value, axis=-1), moved.plates)


def _scattered(piece: InstanceDensity, variable: Random, gather: Gather, scope: Scope) -> InstanceDensity:
    """Sums instances that read the same element."""
    index = value(gather.index, scope)
    over = gather.index.plates
    full = mapped(lambda d, i: d + 0.0 * i, piece.density, Placed(jnp.asarray(index.value, float), index.plates))
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
    plates = (gather.axis, *(plate for plate in piece.plates if plate not in set(over)))
    return piece._replace(density=Placed(sums, (gather.axis, *kept)), plates=plates)


def _total(piece: InstanceDensity, scope: Scope) -> Array:
    repeats = math.prod(scope.sizes[plate.name] for plate in piece.plates if plate not in set(piece.density.plates))
    return repeats * jnp.sum(piece.density.value)
