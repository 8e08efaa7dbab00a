"""Where the nodes of a factor graph are drawn.

Nodes on the same plates share a band of columns, and the bands are ordered so that the bands of each plate are
neighbours whenever an order allows it: then a plate is one rectangle that holds its own nodes and no others. Rows are
distances from the end of the graph.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise, permutations

from ...compiler.language.model import Model
from ...compiler.language.nodes import Apply, Constant, Expr, Gather, Input, Let, Random, is_data, parents, render
from ...factors.factor import VECTOR_LINKS, Chain, Switch, Term, cases_of

ROW, COLUMN, RADIUS, SQUARE, GAP = 0.9, 1.1, 0.4, 0.09, 0.6  # inches; SQUARE is half the side of a factor
_LETTER = 0.064  # width of a letter of a factor's label
_LONGEST = 24
_LINKS = ("logistic", "probit", "exp", *VECTOR_LINKS)


@dataclasses.dataclass(frozen=True)
class Case:
    """One square of a factor node: its label, and the names of the variables that enter by value and as index data."""

    label: str
    values: tuple[str, ...]
    indices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class FactorNode:
    """A factor, a deterministic operation or a constraint; several cases when a gate switches between terms."""

    name: str
    out: str | None
    plates: tuple[str, ...]
    cases: tuple[Case, ...]
    selectors: tuple[str, ...] = ()

    @property
    def parents(self) -> tuple[str, ...]:
        """Every variable that enters, selectors too, each once."""
        return tuple(
            dict.fromkeys([n for case in self.cases for n in (*case.values, *case.indices)] + [*self.selectors])
        )

    @property
    def right(self) -> float:
        """From the first square to the end of the last label."""
        return (len(self.cases) - 1) * self.pitch + self.pitch - 0.2

    @property
    def pitch(self) -> float:
        """Distance between the squares of neighbouring cases."""
        return 0.45 + _LETTER * max(len(case.label) for case in self.cases)


def variables(model: Model) -> dict[str, Input | Random | Let]:
    """All named variables."""
    return {**model.inputs, **model.randoms, **model.lets}


def factor_nodes(model: Model) -> list[FactorNode]:
    """The factors of the model in order of declaration."""
    nodes = [_random_factor(node) for node in model.randoms.values()]
    nodes += [_expression_factor(f"let {node.name}", node.name, node.expression) for node in model.lets.values()]
    return nodes + [_expression_factor(name, None, expression) for name, expression in model.constraints.items()]


def _random_factor(node: Random) -> FactorNode:
    if isinstance(node.term, Switch):
        terms, selector = node.term.terms, node.term.selector
        names = ("true: ", "false: ") if selector.domain.is_boolean else [f"{i}: " for i in range(len(terms))]
        cases = tuple(_case(term, name) for term, name in zip(terms, names, strict=True))
        return FactorNode(f"factor {node.name}", node.name, _names(node), cases, _selectors(node, [selector]))
    if isinstance(node.term, Chain):
        parts = (("first: ", node.term.first), ("then: ", node.term.then))
        cases = tuple(_case(case, name) for name, part in parts for case in cases_of(part))
        gates = [part.selector for _, part in parts if isinstance(part, Switch)]
        return FactorNode(f"factor {node.name}", node.name, _names(node), cases, _selectors(node, gates))
    return FactorNode(f"factor {node.name}", node.name, _names(node), (_case(node.term),), _selectors(node, []))


def _case(term: Term, name: str = "") -> Case:
    args = tuple(term.args.values())
    links = [arg.op for arg in args if isinstance(arg, Apply) and arg.op in _LINKS]
    return Case(name + term.factor.name + (f"({', '.join(links)})" if links else ""), *_inputs_of(args))


def _expression_factor(name: str, out: str | None, expression: Expr) -> FactorNode:
    text = render(expression)
    text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    short = expression.op if isinstance(expression, Apply) else "gather"
    case = Case(text if len(text) <= _LONGEST else short, *_inputs_of((expression,)))
    return FactorNode(name, out, _names(expression), (case,), _selectors(expression, []))


def _names(expr: Expr) -> tuple[str, ...]:
    return tuple(plate.name for plate in expr.plates)


def _inputs_of(roots: tuple[Expr, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Named variables below `roots`: those whose value counts, and data that only index. Selectors are neither."""
    values: dict[str, None] = {}
    indices: dict[str, None] = {}
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if isinstance(node, (Input, Random, Let)):
            values[node.name] = None
        elif isinstance(node, Gather):
            stack.append(node.source)
            if isinstance(node.index, Input):
                indices[node.index.name] = None
        elif not isinstance(node, Constant):
            stack.extend(reversed(parents(node)))
    return tuple(values), tuple(name for name in indices if name not in values)


def _selectors(root: Expr, found: list[Expr]) -> tuple[str, ...]:
    """The random variables that gate an expression, or a random variable's term."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Gather) and not is_data(node.index):
            found.append(node.index)
        stack.extend(child for child in parents(node) if not isinstance(child, (Input, Random, Let)))
    return tuple(dict.fromkeys(node.name for node in found if isinstance(node, (Random, Let))))


@dataclasses.dataclass(frozen=True)
class Layout:
    """Positions in inches by name, and for each plate its rectangles (left, bottom, width, height)."""

    positions: dict[str, tuple[float, float]]
    plates: dict[str, list[tuple[float, float, float, float]]]
    size: tuple[float, float]


def lay_out(model: Model, factors: list[FactorNode]) -> Layout:
    """The layout of all variables and factors."""
    plates_of = {name: _names(node) for name, node in variables(model).items()} | {f.name: f.plates for f in factors}
    right = {f.name: f.right for f in factors}
    rows = _rows(plates_of, factors)
    links = [(name, f.name) for f in factors for name in f.parents] + [(f.name, f.out) for f in factors if f.out]
    bands = _bands(plates_of, links)
    x, edges = _columns(bands, plates_of, rows, links, right)
    y = {name: ROW * row for name, row in rows.items()}
    rectangles = _rectangles(bands, edges, plates_of, y, right, list(model.plates))
    return _moved_to_origin({name: (x[name], y[name]) for name in x}, rectangles, right)


def _rows(plates_of: dict[str, tuple[str, ...]], factors: list[FactorNode]) -> dict[str, int]:
    """Longest distance to the end: variables on even rows, factors on odd ones."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(plates_of)
    for factor in factors:
        graph.add_edges_from((factor.name, name) for name in factor.parents)
        graph.add_edge(factor.out or ("end", factor.name), factor.name)
    generations = nx.topological_generations(graph)
    rows = {name: row for row, names in enumerate(generations) for name in names}
    lowest = min(row for name, row in rows.items() if name in plates_of)
    return {name: rows[name] - lowest for name in plates_of}


def _bands(plates_of: dict[str, tuple[str, ...]], links: list[tuple[str, str]]) -> list[frozenset[str]]:
    """The sets of plates from left to right: few interrupted plates first, then short links."""
    groups = list(dict.fromkeys(map(frozenset, plates_of.values())))
    weight: dict[tuple[frozenset[str], frozenset[str]], int] = defaultdict(int)
    for a, b in links:
        weight[frozenset(plates_of[a]), frozenset(plates_of[b])] += 1
    plates = sorted({plate for group in groups for plate in group})

    def cost(order: tuple[frozenset[str], ...]) -> tuple[int, int]:
        place = {group: i for i, group in enumerate(order)}
        runs = sum(len(_runs(plate, order)) for plate in plates)
        return runs, sum(n * abs(place[a] - place[b]) for (a, b), n in weight.items())

    if len(groups) > 7:  # too many orders to try: by number of plates, then as declared
        return sorted(groups, key=lambda group: (sorted(group), len(group)))
    return list(min(permutations(groups), key=cost))


def _runs(plate: str, order: Sequence[Collection[str]]) -> list[tuple[int, int]]:
    """The stretches of neighbouring bands on a plate: first and last."""
    inside = [plate in group for group in order]
    starts = [i for i, here in enumerate(inside) if here and not (i and inside[i - 1])]
    ends = [i for i, here in enumerate(inside) if here and not (i + 1 < len(inside) and inside[i + 1])]
    return list(zip(starts, ends, strict=True))


def _columns(
    bands: list, plates_of: dict, rows: dict, links: list, right: dict
) -> tuple[dict[str, float], list[tuple[float, float]]]:
    """Horizontal positions, and the left and right end of every band."""
    x: dict[str, float] = {}
    near: dict[str, list[str]] = defaultdict(list)
    for a, b in links:
        pull = 1 if b in right else 6  # a factor stays above the variable that it generates
        near[a] += [b] * pull
        near[b] += [a] * pull
    start, edges = 0.0, []
    for band in bands:
        members = [name for name in plates_of if frozenset(plates_of[name]) == band]
        local = _align(members, rows, near, right)
        left = min(local[name] - RADIUS for name in members)
        x |= {name: start + local[name] - left for name in members}
        end = max(x[name] + right.get(name, RADIUS) for name in members)
        edges.append((start, end))
        start = end + GAP
    return x, edges


def _align(members: list[str], rows: dict, near: dict, right: dict) -> dict[str, float]:
    """Positions within a band: every node as close to the middle of its neighbours as the widths in its row allow."""
    by_row: dict[int, list[str]] = defaultdict(list)
    for name in members:
        by_row[rows[name]].append(name)
    x: dict[str, float] = {}
    for names in by_row.values():
        x |= dict(zip(names, _spread(names, [0.0] * len(names), right), strict=True))
    for sweep in range(8):
        for row in sorted(by_row, reverse=bool(sweep % 2)):
            wish = {n: _mean([x[m] for m in near[n] if m in x] or [x[n]]) for n in by_row[row]}
            names = sorted(by_row[row], key=lambda n: (round(wish[n], 6), by_row[row].index(n)))
            x |= dict(zip(names, _spread(names, [wish[n] for n in names], right), strict=True))
    return x


def _spread(names: list[str], wishes: list[float], right: dict) -> list[float]:
    """Least squares positions in this order without overlap: neighbours that collide are pooled at their mean wish."""
    offset = [0.0]
    for a, _ in pairwise(names):
        offset.append(offset[-1] + max(COLUMN, right.get(a, RADIUS) + RADIUS + 0.1))
    pools: list[tuple[float, int]] = []
    for wish, shift in zip(wishes, offset, strict=True):
        pool = (wish - shift, 1)
        while pools and pools[-1][0] >= pool[0]:
            value, count = pools.pop()
            pool = ((value * count + pool[0] * pool[1]) / (count + pool[1]), count + pool[1])
        pools.append(pool)
    flat = [value for value, count in pools for _ in range(count)]
    return [value + shift for value, shift in zip(flat, offset, strict=True)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _rectangles(bands: list, edges: list, plates_of: dict, y: dict, right: dict, plates: list[str]) -> dict[str, list]:
    """A rectangle for each run of bands; the more bands a plate spans, the further outside it is drawn."""
    found: dict[str, list] = {}
    spans = {plate: sum(plate in band for band in bands) for plate in plates}
    for plate in plates:
        inner = [other for other in plates if (spans[other], plates.index(other)) < (spans[plate], plates.index(plate))]
        for first, last in _runs(plate, bands):
            covered = bands[first : last + 1]
            level = sum(any(other in band for band in covered) for other in inner)
            members = [
                (y[name], 2 * SQUARE if name in right else RADIUS)
                for name in y
                if frozenset(plates_of[name]) in covered
            ]
            side, pad = 0.12 + 0.1 * level, 0.15 + 0.15 * level
            left, bottom = edges[first][0] - side, min(h - half for h, half in members) - pad
            top = max(h + half for h, half in members) + pad
            found.setdefault(plate, []).append((left, bottom, edges[last][1] + side - left, top - bottom))
    return found


def _moved_to_origin(positions: dict, rectangles: dict, right: dict) -> Layout:
    margin = 0.2
    boxes = [box for group in rectangles.values() for box in group]
    for name, (x, y) in positions.items():
        half = 2 * SQUARE if name in right else RADIUS
        boxes.append((x - half, y - half, half + right.get(name, RADIUS), 2 * half))
    left, bottom = min(box[0] for box in boxes) - margin, min(box[1] for box in boxes) - margin
    width = max(box[0] + box[2] for box in boxes) + margin - left
    height = max(box[1] + box[3] for box in boxes) + margin - bottom
    moved = {name: (x - left, y - bottom) for name, (x, y) in positions.items()}
    plates = {name: [(b[0] - left, b[1] - bottom, b[2], b[3]) for b in group] for name, group in rectangles.items()}
    return Layout(moved, plates, (width, height))
