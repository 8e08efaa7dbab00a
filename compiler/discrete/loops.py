"""Loops of the factor graph: which messages can come back to where they began, and the short loops of discrete ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ..algebra.known import ungathered
from ..blocks.base import Block
from ..blocks.energy import EnergyBlock
from ..blocks.table import TableBlock
from ..graph import Plan
from ..language.atoms import atom_key
from ..language.nodes import Gather, Plate

SHORT = 4  # variables in a loop: from about there on its echo is faint

Place = tuple[tuple[Plate, int], ...]
Element = tuple[str, Place]
Instance = tuple[int, Place]


def _places(plates: Iterable[Plate]) -> Iterator[Place]:
    """Two elements of every plate: enough to show whether messages meet in a loop."""
    return itertools.product(*([(plate, 0), (plate, 1)] for plate in plates))


def _links(blocks: Sequence[Block]) -> Iterator[tuple[Instance, Element]]:
    """The links of the factor graph with two elements of every plate, each once for each way that leads there.

    Index data may point anywhere, so elements that they choose count as one.
    """
    gathered: dict[str, set[Plate]] = {}
    for element in (element for block in blocks for element in block.elements):
        variable = ungathered(element)
        while isinstance(element, Gather):
            gathered.setdefault(str(variable), set()).add(element.axis)
            element = element.source
    for number, block in enumerate(blocks):
        plates = block.independent
        elements = {atom_key(element): element for element in block.elements}
        for place in _places(plates):
            for variable in map(ungathered, elements.values()):
                # A gathered axis is one element; one that the block joins along is all of its elements.
                kept = [plate for plate in variable.plates if plate not in gathered.get(str(variable), set())]
                joined = [plate for plate in kept if plate not in set(plates)]
                for along in _places(joined):
                    found = tuple(pair for pair in (*place, *along) if pair[0] in set(kept))
                    yield (number, place), (str(variable), tuple(sorted(found, key=lambda pair: pair[0].name)))


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


def loopy(plan: Plan) -> list[str]:
    """The names of the blocks with messages through which these may come back to where they began."""
    blocks = [block for block in plan.blocks if not isinstance(block, EnergyBlock)]
    if not loops_among(blocks):
        return []
    import networkx as nx  # here: few plans need it

    web = nx.MultiGraph(_links(blocks))
    found: set[int] = set()
    for component in nx.biconnected_components(nx.Graph(web)):
        nodes = web.subgraph(component)
        if len(component) > 2 or nodes.number_of_edges() > 1:
            found |= {node[0] for node in nodes if isinstance(node[0], int)}
    return [block.name for number, block in enumerate(blocks) if number in found]


def short_loops(plan: Plan, most: int = 5) -> list[tuple[str, ...]]:
    """The names of the variables in loops of at most four of them, among the tables that stay apart; at most `most`."""
    import networkx as nx  # here: only explanations need it

    web = nx.MultiGraph()
    web.add_edges_from(_links([block for block in plan.blocks if isinstance(block, TableBlock)]))
    found: dict[tuple[str, ...], None] = {}
    for cycle in itertools.islice(nx.simple_cycles(web, length_bound=2 * SHORT), 1000):
        found.setdefault(tuple(sorted({node[0] for node in cycle if isinstance(node[0], str)})))
        if len(found) == most:
            break
    return list(found)
