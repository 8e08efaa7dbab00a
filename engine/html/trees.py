"""A tree in a notebook: branches from left to right against time, large clades drawn as one where there are many."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .charts import LONGEST
from .escape import Markup, tag
from .styles import part
from .svg import LETTER, Scale, axis_below, figure, picture, segment, shape, words

TIPS = 60  # leaves, or clades drawn as one, that fit into a picture
PITCH = 15.0
WIDTH = 420.0


@dataclasses.dataclass(frozen=True)
class Nodes:
    """A tree as a picture needs it: by node its children, leaves below it and time, names of leaves, and the top."""

    children: Sequence[Sequence[int]]
    count: np.ndarray
    time: np.ndarray
    names: Sequence[str]
    top: int


def html_of_tree(nodes: Nodes, told: str) -> str:
    """A tree in a notebook."""
    return part(tag("p", told, class_="name"), tree(nodes, told))


def tree(nodes: Nodes, told: str) -> Markup:
    """The picture; in words it is its leaves and its largest clades."""
    tips = shown_tips(nodes)
    down = _down(nodes, tips)
    names = [_label(nodes, tip) for tip in tips]
    across, bottom = Scale(0.0, 1.0, 12.0, WIDTH), PITCH * len(tips) + 8.0
    shapes = [segment(across.at(0.0), down[nodes.top], across.at(nodes.time[nodes.top]), down[nodes.top], "stroke")]
    for node in down:
        if node in tips:
            continue
        x, below = across.at(nodes.time[node]), [down[child] for child in nodes.children[node]]
        shapes.append(segment(x, min(below), x, max(below), "stroke"))
        shapes += [segment(x, down[c], across.at(nodes.time[c]), down[c], "stroke") for c in nodes.children[node]]
    for tip, name in zip(tips, names, strict=True):
        if nodes.children[tip]:
            shapes.append(_clade(across.at(nodes.time[tip]), down[tip]))
        shapes.append(words(WIDTH + 8.0, down[tip], name, "small"))
    width = WIDTH + 20.0 + LETTER * max(map(len, names))
    shapes += axis_below(across, bottom, "time")
    leaves = len(nodes.names)
    cut = (
        f"Clades are drawn as one, so that {len(tips)} ends stand for {leaves:,} leaves." if len(tips) < leaves else ""
    )
    seen = f"{told}: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
    return figure(picture(width, bottom + 36.0, seen, *shapes), cut)


def shown_tips(nodes: Nodes) -> list[int]:
    """The ends of the picture from its top: the largest clade is opened, again and again, while there is room."""
    tips = [nodes.top]
    while open_ := [node for node in tips if nodes.children[node]]:
        node = max(open_, key=lambda one: int(nodes.count[one]))
        if len(tips) - 1 + len(nodes.children[node]) > max(TIPS, 2):
            break
        place = tips.index(node)
        tips[place : place + 1] = sorted(nodes.children[node], key=lambda child: int(nodes.count[child]))
    return tips


def _down(nodes: Nodes, tips: list[int]) -> dict[int, float]:
    """Pixels from the top, of the ends and of all branch points above them: these stand amid their children."""
    down = {tip: PITCH * i + 10.0 for i, tip in enumerate(tips)}
    waiting = [nodes.top]
    while waiting:
        node = waiting[-1]
        missing = [] if node in down else [child for child in nodes.children[node] if child not in down]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if node not in down:
            places = [down[child] for child in nodes.children[node]]
            down[node] = 0.5 * (min(places) + max(places))
    return down


def _clade(x: float, y: float) -> Markup:
    corners = f"{x:.2f},{y:.2f} {WIDTH:.2f},{y - 5.0:.2f} {WIDTH:.2f},{y + 5.0:.2f}"
    return shape("polygon", points=corners, fill="var(--shade)", stroke="var(--ink)")


def _label(nodes: Nodes, tip: int) -> str:
    if nodes.children[tip]:
        return f"{int(nodes.count[tip]):,} leaves"
    name = nodes.names[tip]
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
