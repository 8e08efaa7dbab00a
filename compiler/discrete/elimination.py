"""The order in which discrete variables are summed out of a product of tables over plates.

A table holds one array for every instance of its plates; a variable of more plates is local to the instances of one of
fewer. The tables of most plates come first: their local variables are summed out instance by instance, and what is left
is multiplied over the plates that no remaining variable has. Source: obermeyer2019tensor.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..language.nodes import Plate


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """One discrete variable, or the element `place` of it along the plates that are taken apart.

    `key` names its array, `plates` are the plates that remain, `states` the number of its values.
    """

    key: str
    place: tuple[tuple[Plate, int], ...]
    plates: tuple[Plate, ...]
    states: int


class Step(NamedTuple):
    """Multiplies the tables `inputs`, sums `node` out, then multiplies over the instances of `plates`.

    The result is one more table. A step has a node or plates.
    """

    inputs: tuple[int, ...]
    node: Node | None
    plates: tuple[Plate, ...]


class Elimination(NamedTuple):
    """All steps, the entries of the largest table that arises, by instance, and of all of them together."""

    steps: tuple[Step, ...]
    largest: int
    total: int


class Tangled(NamedTuple):
    """No variable can be summed out instance by instance: variables of different `plates` meet in every table."""

    plates: frozenset[Plate]


Table = tuple[frozenset[Node], frozenset[Plate]]


def elimination(tables: Sequence[Table]) -> Elimination | Tangled:
    """Steps that sum all nodes out of the product of `tables`, each the set of its nodes and of its plates.

    The next node is always the one that makes the smallest table. Returns Tangled where plates stand in the way.
    """
    live = dict(enumerate(tables))
    steps: list[Step] = []
    sizes: list[int] = []

    def record(step: Step, table: Table) -> None:
        for number in step.inputs:
            del live[number]
        live[len(tables) + len(steps)] = table
        steps.append(step)

    while open_tables := [table for table in live.values() if table[0] or table[1]]:
        leaf = max((plates for _, plates in open_tables), key=len)
        level = {number: nodes for number, (nodes, plates) in live.items() if plates == leaf}
        local = {node for nodes in level.values() for node in nodes if frozenset(node.plates) == leaf}
        if local:
            joined = {node: frozenset().union(*(n for n in level.values() if node in n)) for node in local}
            node = min(local, key=lambda n: (_entries(joined[n]), n.key, [at for _, at in n.place]))
            sizes.append(_entries(joined[node]))
            inputs = tuple(number for number, nodes in level.items() if node in nodes)
            record(Step(inputs, node, ()), (joined[node] - {node}, leaf))
            continue
        for number, nodes in level.items():
            kept = frozenset(plate for node in nodes for plate in node.plates)
            if kept == leaf:
                return Tangled(leaf)
            dropped = tuple(sorted(leaf - kept, key=lambda plate: plate.name))
            record(Step((number,), None, dropped), (nodes, kept))
    return Elimination(tuple(steps), max(sizes, default=1), sum(sizes))


def _entries(nodes: frozenset[Node]) -> int:
    return math.prod(node.states for node in nodes)
