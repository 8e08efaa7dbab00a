"""Discrete variables summed out of a log density, instance by instance.

A discrete variable stands for the array of its states along a plate of its own, so every log density that it touches
becomes a table over its states; variables are then eliminated one after the other, those of most plates first. Source:
obermeyer2019tensor.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp

from ...compiler.language.atoms import atom_key
from ...compiler.language.nodes import Apply, Expr, Gather, Let, Plate, Random, parents
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.factor import VECTOR_LINKS
from ..blocks.discrete.networks import NEVER, log_sum
from ..values.evaluate import value
from ..values.plated import Placed, Plates, mapped, to_event
from ..values.scope import Scope
from .sum_chains import Tables, chain_of, sum_chains, together
from .tables import InstanceDensity, Summed, checked_size, lengths, sum_of


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


def eliminate(pieces: list[InstanceDensity], summed: Mapping[str, Summed], scope: Scope) -> Array:
    """The sum of all pieces, the summed variables integrated out."""
    # Of variables on the same plates chains come last: what is local to an element is no part of them then.
    order = sorted(summed.values(), key=lambda one: (-len(one.variable.plates), one.before is not None))
    left = {one.variable.name: one for one in order}
    pieces = [_possible(piece) for piece in pieces]
    while left:
        first = next(iter(left.values()))
        group = {first.variable.name: first} if first.before is None else together(first, left, pieces)
        left = {name: one for name, one in left.items() if name not in group}
        axes = {axis for one in group.values() for axis in (one.axis, one.before)}
        mine = [piece for piece in pieces if axes & set(piece.density.plates)]
        pieces = [piece for piece in pieces if not axes & set(piece.density.plates)]
        if mine:
            pieces.append(_summed_out(tuple(group.values()), mine, left, scope))
    total = sum((_total(piece, scope) for piece in pieces), jnp.zeros(()))
    return jnp.where(total < 1e-5 * NEVER, -jnp.inf, total)


def _possible(piece: InstanceDensity) -> InstanceDensity:
    """The piece with a finite number for what is impossible, so that there are derivatives where all states are."""
    return piece._replace(density=Placed(jnp.maximum(piece.density.value, NEVER), piece.density.plates))


def _summed_out(
    group: tuple[Summed, ...], mine: list[InstanceDensity], left: Mapping[str, Summed], scope: Scope
) -> InstanceDensity:
    """A variable, or chains that meet, summed out of the pieces that read them; `left` are the variables that stay."""
    first = group[0]
    names = {one.variable.name for one in group}
    chain = chain_of(first.variable)
    plates = tuple(p for p in first.variable.plates if chain is None or p is not chain.over)
    for other in left.values():
        _check_read(first.variable, plates, other, [p for p in mine if other.axis in set(p.density.plates)])
    if chain is None:
        density = _one_by_one(first, [_owned(piece, first.variable, scope) for piece in mine], scope)
    else:
        density = sum_chains(group, _tables_of(group, chain.over, mine, scope), scope)
    gathers = {name: g for piece in mine for name, g in piece.gathers.items() if name not in names}
    return InstanceDensity(" & ".join(names), density, plates, gathers)


def _check_read(variable: Random, plates: Plates, other: Summed, pieces: list[InstanceDensity]) -> None:
    """What is left when `variable` is summed out of these pieces must read one element of `other` on its `plates`."""
    gathers = [piece.gathers.get(other.variable.name) for piece in pieces]
    if len({None if gather is None else atom_key(gather.index) for gather in gathers}) > 1:
        raise UnsupportedError(_coupled(variable.name, other.variable))
    for gather in gathers[:1]:
        read = set(other.variable.plates)
        if gather is not None:
            read = read - {gather.axis} | set(gather.index.plates)
        if not read <= set(plates):
            raise UnsupportedError(_tangled(variable, other.variable))


def _one_by_one(one: Summed, owned: list[InstanceDensity], scope: Scope) -> Placed:
    """The states of each element summed out on its own."""
    sizes = {plate: size for piece in owned for plate, size in lengths(piece.density).items()}
    sizes |= {plate: scope.sizes[plate.name] for plate in one.variable.plates}
    checked_size(one.variable.name, math.prod(sizes.values()) // sizes[one.axis])
    rest = to_event(sum_of([piece.density for piece in owned], one.variable.plates), one.axis)
    return Placed(log_sum(rest.value, rest.value.ndim - 1), rest.plates)


def _tables_of(group: tuple[Summed, ...], over: Plate, mine: list[InstanceDensity], scope: Scope) -> Tables:
    """The pieces that read chains, by what they are of these."""
    names, before = {one.variable.name for one in group}, {one.before for one in group}
    firsts, own, moves = [], [], []
    for piece in mine:
        read = {name: gather for name, gather in piece.gathers.items() if name in names}
        if len({None if gather is None else atom_key(gather.index) for gather in read.values()}) > 1:
            raise UnsupportedError(_coupled(piece.name, group[0].variable))
        if over not in set(piece.plates) and piece.name in names:
            firsts.append(piece.density)
            continue
        variable = next((one.variable for one in group if one.variable.name in read), group[0].variable)
        density = _owned(piece, variable, scope).density
        (moves if before & set(density.plates) else own).append(density)
    return Tables(tuple(firsts), tuple(own), tuple(moves))


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
