"""The picture of a factor graph as SVG: variables, factors, plates and gates, as `plot_graph` draws them.

The places of all nodes are those of `engine.plots.graph_layout`; here they become shapes.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping

from ...compiler.language.model import Model
from ...compiler.language.nodes import Input, Let
from ..plots.graph_layout import RADIUS, SQUARE, Case, FactorNode, Layout, factor_nodes, lay_out, variables
from .escape import Markup, joined, tag
from .svg import LETTER, figure, number, picture, segment, shape, words

INCH = 78.0  # pixels
NODES = 60  # variables and factors that are drawn; of larger models the first
_NOTE = (
    "Circles are variables, shaded where they are observed, with a double line where they are computed; squares are "
    "factors, rounded frames plates, dashed frames gates. Dotted lines are index data."
)


def graph(model: Model, observed: Collection[str] = (), sizes: Mapping[str, int] | None = None) -> Markup:
    """The factor graph of a model with what it shows in words; "" for one without variables."""
    part, total = first_nodes(model)
    factors = factor_nodes(part)
    if not variables(part):
        return Markup("")
    layout = lay_out(part, factors)
    drawn = _Drawing(layout, sizes or {})
    plates = [drawn.plate(name, boxes) for name, boxes in layout.plates.items()]
    nodes = [
        drawn.variable(name, isinstance(node, Input) or name in observed, isinstance(node, Let))
        for name, node in variables(part).items()
    ]
    width, height = (INCH * length for length in layout.size)
    shapes = [*plates, *map(drawn.links, factors), *map(drawn.squares, factors), *nodes]
    told = f"Factor graph of {model.name}: " + "; ".join(map(in_words, factors))
    shown = len(variables(part)) + len(factors)
    cut = "" if shown == total else f" The first {shown} of {total} nodes are drawn; the declarations list all."
    return figure(picture(width, height, told, *shapes), _NOTE + cut)


def in_words(factor: FactorNode) -> str:
    """What goes into a factor and what comes out of it."""
    source = f" from {', '.join(factor.parents)}" if factor.parents else ""
    kinds = " or ".join(case.label for case in factor.cases)
    return f"{factor.out} is {kinds}{source}" if factor.out else f"constraint {kinds}{source}"


def first_nodes(model: Model) -> tuple[Model, int]:
    """The model without what goes beyond the largest picture, and how many nodes all of it has.

    Variables are taken with all that they are made from, so that what is drawn hangs together.
    """
    total = len(variables(model)) + len(factor_nodes(model))
    if total <= NODES:
        return model, total
    kept = _hang_together(model)
    part = copy.copy(model)
    part.inputs = {name: node for name, node in model.inputs.items() if name in kept}
    part.randoms = {name: node for name, node in model.randoms.items() if name in kept}
    part.lets = {name: node for name, node in model.lets.items() if name in kept}
    part.constraints = {}
    used = {plate.name for node in variables(part).values() for plate in node.plates}
    part.plates = {name: plate for name, plate in model.plates.items() if name in used}
    return part, total


def _hang_together(model: Model) -> set[str]:
    """Names of as many variables as there is room for, with all that they are made from."""
    kept: set[str] = set()
    count, waiting = 0, [factor for factor in factor_nodes(model) if factor.out]
    while True:
        ready = [f for f in waiting if all(name in kept or name in model.inputs for name in f.parents)]
        needed = {*ready[0].parents, str(ready[0].out)} - kept if ready else set()
        if not ready or count + len(needed) + 1 > NODES:
            return kept
        kept, count = kept | needed, count + len(needed) + 1
        waiting.remove(ready[0])


class _Drawing:
    """Shapes at the places of a layout, whose vertical axis points up."""

    def __init__(self, layout: Layout, sizes: Mapping[str, int]) -> None:
        self.layout, self.sizes = layout, sizes

    def at(self, place: tuple[float, float]) -> tuple[float, float]:
        """A place in pixels from the top left."""
        return INCH * place[0], INCH * (self.layout.size[1] - place[1])

    def plate(self, name: str, boxes: list[tuple[float, float, float, float]]) -> Markup:
        """Its frames, each with its name on the upper line."""
        label = f"{name} ({self.sizes[name]:,})" if self.sizes.get(name) else name
        shapes = []
        for left, bottom, wide, high in boxes:
            x, y = self.at((left, bottom + high))
            room = max(3, int((INCH * wide - 24.0) / LETTER))
            text = label if len(label) <= room else f"{label[: room - 1]}…"
            shapes += [
                _rectangle(x, y, INCH * wide, INCH * high, 9.0, fill="none", stroke="var(--line)"),
                _rectangle(x + 10.0, y - 8.0, LETTER * len(text) + 8.0, 16.0, 0.0, fill="var(--paper)"),
                words(x + 14.0, y, text, "quiet"),
            ]
        return joined(*shapes)

    def variable(self, name: str, shaded: bool, double: bool) -> Markup:
        """A circle with the name inside it."""
        x, y = self.at(self.layout.positions[name])
        radius = INCH * RADIUS
        face = "var(--shade)" if shaded else "var(--paper)"
        shapes = [shape("circle", cx=x, cy=y, r=radius, fill=face, stroke="var(--ink)")]
        if double:
            shapes.append(shape("circle", "stroke", cx=x, cy=y, r=radius - 4.0, stroke_width=0.8))
        lines = _lines(name)
        size = max(7.0, min(13.0, 2.0 * (radius - 5.0) / (0.6 * max(map(len, lines)))))
        for i, line in enumerate(lines):
            below = y + 1.1 * size * (i - 0.5 * (len(lines) - 1)) + 0.35 * size
            style = f"font-size:{number(size)}px"
            shapes.append(shape("text", None, line, x=x, y=below, text_anchor="middle", style=style))
        return tag("g", tag("title", name), *shapes)

    def links(self, factor: FactorNode) -> Markup:
        """Lines from what goes into a factor, and an arrow to what comes out of it."""
        shapes = [drawn for case, spot in self._places(factor) for drawn in self._of_case(factor, case, spot)]
        return joined(*shapes, *(self._gate(factor) if factor.selectors else []))

    def squares(self, factor: FactorNode) -> Markup:
        """A square with its label for each case."""
        half = INCH * SQUARE
        shapes = []
        for case, (x, y) in self._places(factor):
            shapes += [
                _rectangle(x - half, y - half, 2.0 * half, 2.0 * half, 0.0, fill="var(--c0)", stroke="var(--ink)"),
                words(x + half + 5.0, y, case.label, "t0 small"),
            ]
        return joined(*shapes)

    def _places(self, factor: FactorNode) -> list[tuple[Case, tuple[float, float]]]:
        x, y = self.layout.positions[factor.name]
        return [(case, self.at((x + i * factor.pitch, y))) for i, case in enumerate(factor.cases)]

    def _of_case(self, factor: FactorNode, case: Case, spot: tuple[float, float]) -> list[Markup]:
        shapes = [self._link(name, spot, None) for name in case.values]
        shapes += [self._link(name, spot, "1.5 3") for name in case.indices]
        if factor.out:
            shapes.append(_arrow(*spot, *self.at(self.layout.positions[factor.out])))
        return shapes

    def _link(self, name: str, spot: tuple[float, float], dashes: str | None, colour: str = "ink") -> Markup:
        """From the bottom of a circle to the top of a square, bent between the rows so that it passes no node."""
        x0, y0 = self.at(self.layout.positions[name])
        x1, y1 = spot[0], spot[1] - INCH * SQUARE
        y0 += INCH * RADIUS
        turn = number(min(y0 + 0.6 * (y1 - y0), y0 + 0.35 * INCH))
        ends = [number(value) for value in (x0, y0, x1, y1)]
        path = f"M{ends[0]},{ends[1]} C{ends[0]},{turn} {ends[2]},{turn} {ends[2]},{ends[3]}"
        return shape("path", d=path, fill="none", stroke=f"var(--{colour})", stroke_dasharray=dashes)

    def _gate(self, factor: FactorNode) -> list[Markup]:
        x, y = self.at(self.layout.positions[factor.name])
        left, half, wide = x - 0.2 * INCH, 0.19 * INCH, (factor.right + 0.2) * INCH
        frame = _rectangle(
            left, y - half, wide, 2.0 * half, 5.0, fill="none", stroke="var(--c1)", stroke_dasharray="5 3"
        )
        shapes = [frame]
        for name in factor.selectors:
            end = min(max(self.at(self.layout.positions[name])[0], left + 8.0), left + wide - 8.0)
            shapes.append(self._link(name, (end, y - half + INCH * SQUARE), "5 3", "c1"))
        return shapes


def _rectangle(x: float, y: float, width: float, height: float, corner: float, **more: str) -> Markup:
    return shape("rect", None, x=x, y=y, width=width, height=height, rx=corner, **more)


def _arrow(x0: float, y0: float, x1: float, y1: float) -> Markup:
    """A line to the edge of a circle, with a tip."""
    length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
    right, down = (x1 - x0) / length, (y1 - y0) / length
    x1, y1 = x1 - INCH * RADIUS * right, y1 - INCH * RADIUS * down
    corners = [(x1, y1)] + [(x1 - 9.0 * right + side * down, y1 - 9.0 * down - side * right) for side in (-4.0, 4.0)]
    tip = " ".join(f"{number(x)},{number(y)}" for x, y in corners)
    return joined(segment(x0, y0, x1, y1, "stroke"), shape("polygon", points=tip, fill="var(--ink)"))


def _lines(name: str) -> list[str]:
    """A name in one line, or in several of up to ten letters; no more than three."""
    if len(name) <= 9:
        return [name]
    lines: list[str] = []
    for piece in name.replace("_", "_ ").split():
        if lines and len(lines[-1]) + len(piece) <= 9:
            lines[-1] += piece if lines[-1].endswith("_") else f" {piece}"
        else:
            lines += [piece[i : i + 10] for i in range(0, len(piece), 10)]
    return (lines if len(lines) <= 3 else [*lines[:2], f"{lines[2][:8]}…"]) or [name]
