"""Plates whose rows may be dealt to several devices: rows that meet in shared variables only.

Each device then holds its rows alone, and what crosses devices is sums. Any other plate is whole on every device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..factors.factor import Chain
from .algebra.known import ungathered
from .blocks.base import Block
from .blocks.energy import EnergyBlock
from .graph import Plan
from .growing import BY_ROW
from .language.nodes import Apply, Expr, Gather, Input, Let, Member, Plate, Random, inside, parents


def whole(plan: Plan, plate: Plate) -> str:
    """Why every device holds all rows of a plate; empty where they may be dealt."""
    if joint := [member.name for joint in plan.joints for member in joint.members if plate in member.plates]:
        return f"{joint[0]} has one belief over all of its elements"
    for owner, node in _nodes(plan):
        if _reads_others(node, plate):
            return f"{owner} reads elements of other rows"
    for block in plan.blocks:
        if plate not in block.plates or isinstance(block, EnergyBlock):
            continue
        if not isinstance(block, BY_ROW) or block.over is plate:
            return f"{block.name} is solved as a whole"
        if living := [name for name in told(plan, block) if plate in plan.latent[name].plates]:
            return f"{block.name} sends messages to {living[0]}, which has a belief for each row"
        if block.plates[0] is not plate:
            return f"{block.name} has {block.plates[0].name} before it"
    return ""


def told(plan: Plan, block: Block) -> list[str]:
    """The names of the variables that a block with messages sends them to."""
    atoms = [ungathered(atom) for atom in block.atoms]
    names = {*block.latent, *(getattr(atom, "name", "") for atom in atoms)} - set(block.parameters)
    return [name for name in plan.latent if name in names]


def numbers_by_plate(plan: Plan, data: Mapping[str, Any]) -> dict[str, int]:
    """How many numbers of the data are on each plate."""
    model, numbers = plan.model, {}
    for name, array in data.items():
        for plate in {**model.inputs, **model.randoms, **model.lets}[name].plates:
            numbers[plate.name] = numbers.get(plate.name, 0) + math.prod(array.shape)
    return numbers


def dealt_plates(plan: Plan, sizes: Mapping[str, int], numbers: Mapping[str, int], devices: int) -> tuple[Plate, ...]:
    """The plates to deal to so many devices, the one of which the data have most `numbers` first.

    No array has two of them: only one of its axes can be dealt. Every device gets a row at least.
    """
    able = [plate for plate in plan.model.plates.values() if numbers.get(plate.name, 0) and not whole(plan, plate)]
    able = [plate for plate in able if (devices - 1) * -(-sizes[plate.name] // devices) < sizes[plate.name]]
    together = [set(plates) for plates in _groups(plan)]
    found: list[Plate] = []
    for plate in sorted(able, key=lambda plate: -numbers[plate.name]):
        if not any(plate in group and other in group for group in together for other in found):
            found.append(plate)
    return tuple(found)


def _groups(plan: Plan) -> Iterator[tuple[Plate, ...]]:
    """The plates of everything that is an array with all of them."""
    model = plan.model
    for node in {**model.inputs, **model.randoms, **model.lets}.values():
        yield node.plates
    for block in plan.blocks:
        yield block.plates


def _nodes(plan: Plan) -> Iterator[tuple[str, Expr]]:
    """All expressions of the model, with the name of what each belongs to."""
    model = plan.model
    for name, node in {**model.inputs, **model.randoms, **model.lets}.items():
        yield from ((name, part) for part in (node, *inside(parents(node))))
    for name, constraint in model.constraints.items():
        yield from ((name, part) for part in inside([constraint]))


def _reads_others(node: Expr, plate: Plate) -> bool:
    """Whether an expression at one row of a plate may read other rows."""
    if isinstance(node, Gather):
        return node.axis is plate
    if isinstance(node, Apply):
        return dict(node.options).get("over") is plate
    if isinstance(node, Random) and isinstance(node.term, Chain):
        return node.term.over is plate
    if isinstance(node, Member):
        return any(plate in below.plates for below in (node, *parents(node)))
    pointing = isinstance(node, (Input, Random, Let))
    return pointing and (node.domain.plate is plate or node.domain.size is plate)
