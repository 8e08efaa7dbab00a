"""Pass: tables of discrete variables that meet in loops become one block, summed out jointly and exactly.

Belief propagation is exact on trees and not on loops. Where the joint table stays small it is better to sum it out: by
default where no method was asked for, with `accuracy="best"` always. Factors that read an element through a random
index, or a sum over a plate, have no other treatment.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple

from ...factors.errors import UnsupportedError
from ..blocks.base import Block, Choice
from ..blocks.table import TableBlock
from ..graph import Draft
from ..language.nodes import Let, Plate, Random
from ..methods import EXACT
from .cells import Cell, FactorTable, Reads, Sizes, UnknownSize, cells_of, parts_of, plates_apart, reads
from .elimination import Elimination, Tangled, elimination
from .loops import loops_among


class Limits(NamedTuple):
    """What a joint treatment may cost.

    Entries of the largest table and of all tables by instance, and the number of tables, which is compile time.
    """

    largest: int
    total: int
    cells: int


LOOPS = "its discrete variables meet in loops, where belief propagation is not exact, and their joint table is small"
CHOICES = "elements chosen by a random index, and sums over a plate, need the joint table of their elements"
SMALL = "many discrete factors of a small joint table: exact, and one elimination compiles faster than their messages"
MANY = 6  # tables whose messages compile slower than their elimination
LIMITS = {"default": Limits(2**16, 2**19, 160), "best": Limits(2**20, 2**23, 640)}


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """The variables of a joint table, its tables, and the steps that sum the variables out.

    The tables of the elimination are `cells`, then one for every node of `variables` in the order of `nodes`.
    """

    variables: tuple[Random | Let, ...]
    parts: tuple[FactorTable, ...]
    cells: tuple[Cell, ...]
    nodes: tuple
    elimination: Elimination

    def entries(self, sizes: Mapping[str, int]) -> int:
        """The numbers of all tables, given and in between."""
        given = sum(
            math.prod([sizes[plate.name] for plate in cell.plates] + [n.states for n in cell.nodes if n is not None])
            for cell in self.cells
        )
        return given + self.elimination.total


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class NetworkBlock(Block):
    """Discrete variables that are summed out jointly and exactly, given the messages of all other factors."""

    network: Network

    @property
    def atoms(self) -> tuple[Random | Let, ...]:
        return self.network.variables

    @property
    def independent(self) -> tuple[Plate, ...]:
        return ()


def networks(draft: Draft) -> Draft:
    """Merges the tables of each component that is worth it, and notes at the others why they stay apart."""
    blocks = list(draft.blocks)
    for component in _components(draft):
        merged = _treated(draft, component)
        if merged is None:
            continue
        place = min(blocks.index(block) for block in component)
        blocks = [block for block in blocks if all(block is not other for other in component)]
        blocks[place:place] = merged
    return dataclasses.replace(draft, blocks=tuple(blocks))


def _components(draft: Draft) -> list[tuple[TableBlock, ...]]:
    """Tables that share latent variables, directly or through others."""
    groups: list[tuple[set[Random | Let], list[TableBlock]]] = []
    for block in draft.blocks:
        if not isinstance(block, TableBlock):
            continue
        mine, members = set(_variables(draft, block)), [block]
        for group in [group for group in groups if group[0] & mine]:
            groups.remove(group)
            mine, members = mine | group[0], group[1] + members
        groups.append((mine, members))
    return [tuple(members) for _, members in groups]


def _variables(draft: Draft, block: TableBlock) -> dict[Random | Let, None]:
    """The latent variables of a table, also those inside its sums."""
    found, queue = {}, block.roots
    while queue:
        read: Reads = reads(draft, queue)
        found.update(dict.fromkeys(read.variables))
        queue = [node.args[0] for node in read.sums.values()]
    return found


def _treated(draft: Draft, component: tuple[TableBlock, ...]) -> list[Block] | None:
    """What replaces the tables of a component, None where they stay as they are."""
    needs = next((block for block in component if _needs_joint(draft, block)), None)
    free = all(draft.method_of(block.name).name == "auto" for block in component)
    many = free and len(component) > MANY
    wanted = needs is not None or many or ((free or draft.accuracy == "best") and loops_among(component))
    if not wanted:
        return None
    limits = LIMITS["best" if needs is not None else draft.accuracy]
    try:
        return [_merged(draft, component, limits, CHOICES if needs else LOOPS if loops_among(component) else SMALL)]
    except (UnknownSize, TooLarge) as problem:
        if needs is not None and isinstance(problem, TooLarge):
            raise UnsupportedError(
                f"'{needs.name}' reads discrete variables through a random index or a sum over a plate, so their "
                f"elements must be summed out jointly, and {problem}; at most {limits.largest:,} are affordable. "
                "Make the plate smaller, or split the model."
            ) from None
        if not loops_among(component):
            return None
        advice = "" if draft.accuracy == "best" else "; accuracy='best' allows larger tables"
        note = f"{{}}; loopy, and not summed out jointly: {problem}{advice}"
        return [block.chosen(reason=note.format(block.choice.reason)) for block in component]


def _needs_joint(draft: Draft, block: TableBlock) -> bool:
    """Whether the block reads elements that only a joint table knows."""
    found = reads(draft, block.roots)
    outside = any(not set(atom.plates) <= set(block.plates) for atom in block.atoms)
    return bool(found.sums) or outside


class TooLarge(Exception):
    """The joint table would cost more than the limits allow."""


def _merged(draft: Draft, component: tuple[TableBlock, ...], limits: Limits, reason: str) -> NetworkBlock:
    declared = {name: size for name, (size, _) in draft.model.sizes.items()}
    sizes = Sizes({**declared, **(draft.sizes or {})}, frozenset())
    parts = parts_of(draft, component, sizes)
    variables = tuple(dict.fromkeys(v for block in component for v in _variables(draft, block)))
    found, sizes = eliminated(parts, variables, sizes, limits)
    apart = ", ".join(sorted(plate.name for plate in sizes.apart))
    names = [block.name for block in component]
    steps = f"joint table, variables summed out one by one (largest table: {found.elimination.largest} states"
    return NetworkBlock(
        name=" & ".join(names) if len(names) < 4 else f"{names[0]} ... {names[-1]} ({len(names)} tables)",
        plates=(),
        latent=tuple(variable.name for variable in variables if isinstance(variable, Random)),
        choice=Choice(EXACT, steps + (f", elements of {apart} apart)" if apart else ")"), "exact", reason),
        network=found,
    )


def eliminated(
    parts: list[FactorTable], variables: tuple[Random | Let, ...], sizes: Sizes, limits: Limits
) -> tuple[Network, Sizes]:
    """The network of these tables, and the plates that are taken apart in it; TooLarge beyond the limits."""
    sizes = sizes._replace(apart=plates_apart(parts))
    while isinstance(found := _in_cells(parts, variables, sizes, limits), Tangled):
        # Variables of different plates meet: take one plate apart, the smallest.
        plate = min(found.plates, key=lambda plate: (sizes.known.get(plate.name, math.inf), plate.name))
        sizes = sizes._replace(apart=sizes.apart | {plate})
    return found, sizes


def _in_cells(parts: list[FactorTable], variables: tuple, sizes: Sizes, limits: Limits) -> Network | Tangled:
    cells = tuple(cells_of(parts, sizes, limits.cells + 1))
    if len(cells) > limits.cells:
        raise TooLarge(f"it would take more than {limits.cells} tables")
    for part in parts:
        entries = math.prod(axis.size or 1 for axis in part.axes)
        if entries > limits.largest:
            raise TooLarge(f"the table of '{part.name}' alone has {entries:,} states")
    names = {variable.name for variable in variables}
    every = tuple(dict.fromkeys(node for cell in cells for node in cell.nodes if node is not None))
    own = tuple(node for node in every if node.key in names)
    tables = [(frozenset(node for node in cell.nodes if node is not None), frozenset(cell.plates)) for cell in cells]
    tables += [(frozenset((node,)), frozenset(node.plates)) for node in own]
    steps = elimination(tables)
    if isinstance(steps, Tangled):
        return steps
    if steps.largest > limits.largest or steps.total > limits.total:
        raise TooLarge(f"its largest table would have {steps.largest:,} states")
    return Network(variables, tuple(parts), cells, own, steps)
