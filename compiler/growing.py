"""Plates that may be padded: where rows meet in sums alone, another one of weight zero changes nothing.

A program for a few sizes then serves all (`engine/run/padded.py`). `explain` prints why another plate is compiled for
each of its sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    for owner, node in expressions(plan, {**plan.model.randoms, **plan.model.lets}):
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


def expressions(plan: Plan, declared: Mapping[str, Expr]) -> Iterator[tuple[str, Expr]]:
    """All expressions of what a model has `declared`, and of its constraints, with the name of what each belongs to."""
    for name, node in declared.items():
        yield from ((name, part) for part in (node, *inside(parents(node))))
    for name, constraint in plan.model.constraints.items():
        yield from ((name, part) for part in inside([constraint]))


def reads_others(node: Expr, plate: Plate) -> bool:
    """Whether an expression on one element of a plate may read others."""
    over = [node.over] if isinstance(node, Apply) else [node.axis] if isinstance(node, Gather) else []
    if isinstance(node, Random) and isinstance(node.term, Chain):
        over.append(node.term.over)
    if isinstance(node, Member):
        over.extend(_all_plates(node))
    return any(plate is found for found in over)


def points_to(node: Expr, plate: Plate) -> bool:
    """Whether the values of an expression are elements of a plate, or as many."""
    return plate is node.domain.size or plate is node.domain.plate


def _sees_all(node: Expr, plate: Plate) -> bool:
    """Whether an expression on one element of a plate may depend on the others, or on their number."""
    placed = isinstance(node, Position) and any(plate is found for found in _all_plates(node))
    return placed or reads_others(node, plate) or points_to(node, plate)


def _all_plates(node: Expr) -> tuple[Plate, ...]:
    return (*node.plates, *(plate for below in parents(node) for plate in below.plates))
