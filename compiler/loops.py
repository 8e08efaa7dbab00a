"""Loops among tables: whether messages may come back to where they began, and through which short ways."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from .expressions import Gather, Plate
from .graph import Block, Graph
from .known import ungathered

SHORT = 4  # variables in a loop: from about there on its echo is faint

Place = tuple[tuple[Plate, int], ...]
Element = tuple[str, Place]
Instance = tuple[int, Place]


def _links(blocks: Sequence[Block]) -> Iterator[tuple[Instance, Element]]:
    """The links of the factor graph with two elements of every plate: enough to show whether they meet in a loop.

    Index data may point anywhere, so elements that they choose count as one.
    """
    gathered: dict[str, set[Plate]] = {}
    for atom in (atom for block in blocks for atom in block.atoms):
        variable = ungathered(atom)
        while isinstance(atom, Gather):
            gathered.setdefault(str(variable), set()).add(atom.axis)
            atom = atom.source
    for number, block in enumerate(blocks):
        for place in itertools.product(*([(plate, 0), (plate, 1)] for plate in block.plates)):
            for atom in block.atoms:
                variable = ungathered(atom)
                kept = set(variable.plates) - gathered.get(str(variable), set())
                yield (number, place), (str(variable), tuple(pair for pair in place if pair[0] in kept))


def loops_among(blocks: Sequence[Block]) -> bool:
    """True where the factor graph of these tables may have a loop."""
    above: dict[object, object] = {}

    def top(item: object) -> object:
        while (parent := above.get(item)) is not None:
            item = parent
        return item

    for instance, element in _links(blocks):
        one, other = top(instance), top(element)
        if one == other:
            return True
        above[one] = other
    return False


def short_loops(graph: Graph, most: int = 5) -> list[tuple[str, ...]]:
    """The names of the variables in loops of at most four of them, among the tables that stay apart; at most `most`."""
    import networkx as nx  # here: only explanations need it

    web = nx.MultiGraph()
    web.add_edges_from(_links([block for block in graph.blocks if block.kind == "table"]))
    found: dict[tuple[str, ...], None] = {}
    for cycle in itertools.islice(nx.simple_cycles(web, length_bound=2 * SHORT), 1000):
        found.setdefault(tuple(sorted({node[0] for node in cycle if isinstance(node[0], str)})))
        if len(found) == most:
            break
    return list(found)
