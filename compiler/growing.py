"""Plates that may be padded: where rows meet in sums alone, another one of weight zero changes nothing.

A program for a few sizes then serves all (`engine/run/padded.py`). `explain` prints why another plate is compiled for
each of its sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..factors.factor import Chain
from .blocks.base import Block
from .blocks.energy import EnergyBlock
from .blocks.mixture import MixtureBlock
from .blocks.site import SiteBlock
from .blocks.slots import SlotsBlock
from .blocks.table import TableBlock
from .discrete.networks import NetworkBlock
from .graph import Plan
from .language.nodes import Apply, Expr, Gather, Member, Plate, Position, Random, inside, parents

BY_ROW = (EnergyBlock, SiteBlock, SlotsBlock, MixtureBlock, TableBlock)  # whose instances may be left out one by one


def open_plates(plan: Plan) -> list[Plate]:
    """The plates whose size the model leaves open."""
    return [plate for name, plate in plan.model.plates.items() if name not in plan.model.sizes]


def one_size(plan: Plan, plate: Plate) -> str:
    """Why a program serves one size of a plate only; empty where it may serve more."""
    members = [member for joint in plan.joints for member in joint.members]
    if living := [variable.name for variable in (*members, *plan.latent.values()) if plate in variable.plates]:
        return f"{living[0]} has a belief for each element"
    for owner, node in _nodes(plan):
        if _sees_all(node, plate):
            return f"{owner} reads several elements at once"
    for block in plan.blocks:
        if plate in _plates(block) and not (isinstance(block, BY_ROW) and block.over is not plate):
            return f"{block.name} is solved as a whole"
    return ""


def _plates(block: Block) -> tuple[Plate, ...]:
    if isinstance(block, NetworkBlock):
        return tuple(plate for part in block.network.parts for plate in part.plates)
    return block.plates


def _nodes(plan: Plan) -> Iterator[tuple[str, Expr]]:
    """All expressions of the model, with the name of what each belongs to."""
    model = plan.model
    for name, node in {**model.randoms, **model.lets}.items():
        yield from ((name, part) for part in (node, *inside(parents(node))))
    for name, constraint in model.constraints.items():
        yield from ((name, part) for part in inside([constraint]))


def _sees_all(node: Expr, plate: Plate) -> bool:
    """Whether an expression on one element of a plate may depend on the others, or on their number."""
    over = [node.over] if isinstance(node, Apply) else [node.axis] if isinstance(node, Gather) else []
    if isinstance(node, Random) and isinstance(node.term, Chain):
        over.append(node.term.over)
    if isinstance(node, (Position, Member)):
        over.extend((*node.plates, *(plate for below in parents(node) for plate in below.plates)))
    return any(plate is found for found in (*over, node.domain.size, node.domain.plate))
