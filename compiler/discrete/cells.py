"""The tables of a discrete network, one for each place of the plates whose elements meet in a factor.

An element read through a random index may be any of its plate, so its factor is a table over all of them: those plates
are taken apart, and every element of a variable along them is a node of its own. All other plates stay plates. A sum
over a plate becomes a chain of partial sums, so that its table stays small.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from ...factors.errors import UnsupportedError
from ..algebra.known import known_in
from ..blocks.table import TableBlock
from ..graph import Draft
from ..language.atoms import atom_key
from ..language.nodes import Apply, Constant, Expr, Gather, Let, Plate, Random, applies, parents
from ..language.operations import SUM
from .elimination import Node

Variable = Random | Let | Apply
Place = tuple[tuple[Plate, int], ...]


class UnknownSize(Exception):
    """A plate must be taken apart, or a variable has as many states, and its size is not declared."""


@dataclasses.dataclass(frozen=True, eq=False)
class TableEdge:
    """How a part reads a variable: its own element, or all elements along the plates `whole`.

    `axes` are the axes of the part's table, one for each of `places` along `whole`.
    """

    variable: Variable
    whole: tuple[Plate, ...]
    places: tuple[Place, ...]
    axes: tuple[Plate, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class FactorTable:
    """A factor as a table over its `plates` and the axes of its edges; `block` has the table, where there is one.

    `chain` is the sum that the part adds one element to: its last two axes are the partial sum before and after.
    """

    name: str
    plates: tuple[Plate, ...]
    edges: tuple[TableEdge, ...]
    block: TableBlock | None = None
    chain: Apply | None = None
    ends: tuple[Plate, ...] = ()

    @property
    def axes(self) -> tuple[Plate, ...]:
        """All axes of states."""
        return (*(axis for edge in self.edges for axis in edge.axes), *self.ends)


class Cell(NamedTuple):
    """The instances of a part at one place of the plates taken apart; `plates` remain.

    `nodes` has one node for each axis of the part; None where a chain starts.
    """

    part: int
    place: Place
    plates: tuple[Plate, ...]
    nodes: tuple[Node | None, ...]


class Reads(NamedTuple):
    """What an expression reads: variables, with the plates along which it reads all their elements, and sums."""

    variables: dict[Random | Let, frozenset[Plate]]
    sums: dict[tuple, Apply]


def reads(draft: Draft, roots: list[Expr]) -> Reads:
    """The latent discrete variables below expressions, and the way in which they are read."""

    def latent(node: Expr) -> TypeGuard[Random | Let]:
        return isinstance(node, Random) or (isinstance(node, Let) and node.name in draft.latent)

    return reads_of(roots, known_in(draft), latent)


def reads_of(
    roots: Sequence[Expr],
    known: Callable[[Expr], bool],
    latent: Callable[[Expr], TypeGuard[Random | Let]],
    sums: bool = True,
) -> Reads:
    """The `latent` variables below expressions; without `sums` all that an operation on a plate takes is read."""
    found = Reads({}, {})
    stack: list[tuple[Expr, frozenset[Plate]]] = [(root, frozenset()) for root in roots]
    while stack:
        node, whole = stack.pop()
        if known(node) or isinstance(node, Constant):
            continue
        if latent(node):
            found.variables[node] = found.variables.get(node, frozenset()) | (whole & set(node.plates))
        elif isinstance(node, Random):
            continue
        elif isinstance(node, Apply) and node.over is not None and not sums:
            stack.append((node.args[0], whole | {node.over}))
        elif isinstance(node, Apply) and node.operation.aggregate:
            if whole & set(node.plates):
                raise UnsupportedError(
                    f"'{node}' is indexed without a name of its own. Name it first: total = m.let('total', {node})."
                )
            found.sums[atom_key(node)] = node
        elif isinstance(node, Gather):
            stack += [(node.source, whole | {node.axis}), (node.index, whole)]
        else:
            stack += [(child, whole) for child in parents(node)]
    return found


class Sizes(NamedTuple):
    """The sizes of plates as far as they are declared, and the plates to take apart."""

    known: Mapping[str, int]
    apart: frozenset[Plate]

    def plate(self, plate: Plate) -> int:
        """The size of a plate; UnknownSize where it is not declared."""
        if plate.name not in self.known:
            raise UnknownSize(f"the size of plate '{plate.name}' is not declared")
        return self.known[plate.name]

    def states(self, variable: Expr) -> int:
        """Number of values of a discrete variable."""
        size = variable.domain.size
        if variable.domain.is_boolean:
            return 2
        return self.plate(size) if isinstance(size, Plate) else size

    def places(self, plates: tuple[Plate, ...]) -> list[Place]:
        """All combinations of elements of the plates."""
        ranges = [[(plate, k) for k in range(self.plate(plate))] for plate in plates]
        return list(itertools.product(*ranges))

    def place(self, place: Place, plates: tuple[Plate, ...]) -> Place:
        """The part of a place that lies on the given plates."""
        return tuple((plate, k) for plate, k in place if plate in set(plates))


def parts_of(draft: Draft, blocks: tuple[TableBlock, ...], sizes: Sizes) -> list[FactorTable]:
    """One part for every block, and one for every sum inside them."""
    parts: list[FactorTable] = []
    chains: dict[tuple, Apply] = {}
    for block in blocks:
        found = reads(draft, block.roots)
        parts.append(FactorTable(block.name, block.plates, edges_of(found, sizes), block))
        chains.update(found.sums)
        queue = list(found.sums.values())
        while queue:
            inner = reads(draft, [queue.pop().args[0]])
            queue += [node for key, node in inner.sums.items() if key not in chains]
            chains.update(inner.sums)
    for chain in chains.values():
        ends = tuple(Plate(f"{chain} {when}", sizes.states(chain)) for when in ("before", "after"))
        edges = edges_of(reads(draft, [chain.args[0]]), sizes)
        parts.append(FactorTable(blocks[0].name, chain.args[0].plates, edges, None, chain, ends))
    return parts


def edges_of(found: Reads, sizes: Sizes) -> tuple[TableEdge, ...]:
    """One edge for every variable and every sum that is read."""
    edges = []
    for variable, along in found.variables.items():
        whole = tuple(plate for plate in variable.plates if plate in along)
        places = tuple(sizes.places(whole))
        axes = tuple(Plate(f"{variable}{[k for _, k in place] or ''}", sizes.states(variable)) for place in places)
        edges.append(TableEdge(variable, whole, places, axes))
    edges += [TableEdge(node, (), ((),), (Plate(str(node), sizes.states(node)),)) for node in found.sums.values()]
    return tuple(edges)


def plates_apart(parts: list[FactorTable]) -> frozenset[Plate]:
    """The plates that must be taken apart."""
    whole = {plate for part in parts for edge in part.edges for plate in edge.whole}
    return frozenset(whole | {part.chain.option("over") for part in parts if part.chain is not None})


def cells_of(parts: list[FactorTable], sizes: Sizes, limit: float = math.inf) -> Iterator[Cell]:
    """The parts at all places of the plates that are taken apart; ends after `limit` cells."""
    nodes: dict[tuple[str, Place], Node] = {}

    def node(key: str, variable: Expr, place: Place, states: int) -> Node:
        place = tuple(sorted(place, key=lambda pair: pair[0].name))
        plates = tuple(plate for plate in variable.plates if plate not in sizes.apart)
        return nodes.setdefault((key, place), Node(key, place, plates, states))

    count = 0
    for number, part in enumerate(parts):
        plates = tuple(plate for plate in part.plates if plate not in sizes.apart)
        for place in sizes.places(tuple(plate for plate in part.plates if plate in sizes.apart)):
            count += 1
            if count > limit:
                return
            mine: list[Node | None] = []
            for edge in part.edges:
                own = sizes.place(place, tuple(p for p in edge.variable.plates if p not in set(edge.whole)))
                states = sizes.states(edge.variable)
                mine += [node(key_of(edge.variable), edge.variable, (*own, *at), states) for at in edge.places]
            if part.chain is not None:
                mine += _links(part.chain, place, sizes, node)
            yield Cell(number, place, plates, tuple(mine))


def key_of(variable: Variable) -> str:
    """The name of a variable, or of a sum."""
    return str(variable) if isinstance(variable, Apply) else variable.name


def _links(chain: Apply, place: Place, sizes: Sizes, node: Callable[..., Node]) -> tuple[Node | None, Node]:
    """The partial sum before and after the element at `place`; the last one is the sum itself."""
    over = chain.option("over")
    element, rest = dict(place)[over], tuple(pair for pair in place if pair[0] is not over)
    last, total = sizes.plate(over) - 1, sizes.states(chain)
    per_element = (total - 1) // (last + 1)

    def link(k: int) -> Node:
        if k == last:
            return node(key_of(chain), chain, rest, total)
        return node(f"{chain} up to {k}", chain, rest, (k + 1) * per_element + 1 if applies(chain, SUM) else total)

    return (None if element == 0 else link(element - 1)), link(element)
