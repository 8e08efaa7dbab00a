"""Plates whose rows may be dealt to several devices: rows that meet in shared variables only.

Each device then holds its rows alone, and what crosses devices is sums. Any other plate is whole on every device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from .algebra.known import told
from .blocks.energy import EnergyBlock
from .graph import Plan
from .growing import BY_ROW, expressions, points_to, reads_others
from .language.nodes import Input, Let, Plate, Random


def whole(plan: Plan, plate: Plate) -> str:
    """Why every device holds all rows of a plate; empty where they may be dealt."""
    if joint := [member.name for joint in plan.joints for member in joint.members if plate in member.plates]:
        return f"{joint[0]} has one belief over all of its elements"
    for owner, node in expressions(plan, _declared(plan)):
        if reads_others(node, plate) or (isinstance(node, (Input, Random, Let)) and points_to(node, plate)):
            return f"{owner} reads elements of other rows"
    for block in plan.blocks:
        if plate not in block.plates or isinstance(block, EnergyBlock):
            continue
        if not isinstance(block, BY_ROW) or block.over is plate:
            return f"{block.name} is solved as a whole"
        if living := [name for name in told(block, plan.latent) if plate in plan.latent[name].plates]:
            return f"{block.name} sends messages to {living[0]}, which has a belief for each row"
        if block.plates[0] is not plate:
            return f"{block.name} has {block.plates[0].name} before it"
    return ""


def numbers_by_plate(plan: Plan, data: Mapping[str, Any]) -> dict[str, int]:
    """How many numbers of the data are on each plate."""
    numbers: dict[str, int] = {}
    for name, array in data.items():
        for plate in _declared(plan)[name].plates:
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
    for node in _declared(plan).values():
        yield node.plates
    for block in plan.blocks:
        yield block.plates


def _declared(plan: Plan) -> dict[str, Input | Random | Let]:
    """Everything that the model declares, by name."""
    return {**plan.model.inputs, **plan.model.randoms, **plan.model.lets}
