"""A factor of VMP as EP would read one instance of it: every number that it touches is a variable of that instance.

VMP keeps the beliefs of these numbers apart, so that how they depend on each other is in the factor alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from ...factors.domains import real
from ...factors.errors import UnsupportedError
from ..algebra.known import latent_names
from ..blocks.energy import EnergyBlock
from ..blocks.slots import Edge, SlotsBlock
from ..graph import Facts
from ..language.atoms import atom_key
from ..language.nodes import Apply, Expr, Let, Random, union_plates
from ..methods import EP
from . import slots


class Apart(NamedTuple):
    """The factor over numbers of its own, as VMP reads it and as EP does, and what each number is in the model."""

    energy: EnergyBlock
    tilted: SlotsBlock
    edges: Mapping[Random, Edge]


def apart(facts: Facts, block: EnergyBlock) -> Apart | None:
    """A block of VMP over numbers of its own; None where EP has no operator for it, and for one with discrete ones."""
    if block.constant or block.gates or getattr(block.out, "name", None) in facts.partly:
        return None
    try:
        found = slots.term_block(facts, block, EP, "")
        if found.discrete or any(edge.variable.domain.is_vector and edge.direction is None for edge in found.edges):
            return None
        edges = {_number(block, number, edge): edge for number, edge in enumerate(found.edges)}
        own = {atom_key(edge.expr): number for number, edge in edges.items()}
        args = {name: _with(arg, own) for name, arg in block.args.items()}
        energy = dataclasses.replace(block, out=_with(block.out, own), args=args)
        if latent_names(facts, [energy.out, *args.values()]):  # a number that is written in some other way
            return None
        tilted = dataclasses.replace(slots.term_block(facts, energy, EP, ""), plates=block.plates)
    except UnsupportedError:
        return None
    return Apart(energy, tilted, edges)


def _number(block: EnergyBlock, number: int, edge: Edge) -> Random:
    domain = real if edge.direction is not None else edge.variable.domain
    return Random(f"number {number} of {block.name}", None, block.plates, domain)  # type: ignore[arg-type]


def _with(expr: Expr, own: Mapping[tuple, Random]) -> Expr:
    """An expression of other numbers, given by the keys of those that it is made of."""
    if (number := own.get(atom_key(expr))) is not None:
        return number
    if isinstance(expr, Let):
        inside = _with(expr.expression, own)
        return expr if inside is expr.expression else inside
    if isinstance(expr, Apply):
        args = tuple(_with(arg, own) for arg in expr.args)
        if any(new is not old for new, old in zip(args, expr.args, strict=True)):
            return dataclasses.replace(expr, args=args, plates=union_plates(expr.plates, *(arg.plates for arg in args)))
    return expr
