"""The picture of a factor graph: variables, factors, plates and gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from ...compiler.language.model import Model
from ...compiler.language.nodes import Input, Let
from ..answers.inferred import Inferred
from .figure import BLUE, GREY, ORANGE, new_figure
from .graph_layout import RADIUS, SQUARE, FactorNode, Layout, factor_nodes, lay_out, variables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHADE = "#d5dae1"


@overload
def plot_graph(model_or_posterior: Model | Inferred, *, ax: None = None) -> Figure: ...
@overload
def plot_graph(model_or_posterior: Model | Inferred, *, ax: Axes) -> Axes: ...
def plot_graph(model_or_posterior: Model | Inferred, *, ax: Axes | None = None) -> Figure | Axes:
    """The factor graph of a model, or of a posterior's model with its observed variables.

    Circles are variables: shaded when observed (inputs always are), with a double line when deterministic. Squares
    are factors, with arrows to the variable that they generate; a constraint generates none. Rounded rectangles are
    plates. A dashed box is a gate, with a dashed line from the variable that selects; a dotted line is index data.
    Returns a matplotlib Figure. With `ax` it is drawn there, as large as that is, and `ax` is returned.
    UnsupportedError when matplotlib is absent.
    """
    model, observed, sizes = _what_is_known(model_or_posterior)
    factors = factor_nodes(model)
    layout = lay_out(model, factors)
    if ax is not None:
        ax.set_title(model.name, fontsize=11)
        _draw(ax, model, factors, layout, observed, sizes)
        return ax
    figure = new_figure(layout.size[0], layout.size[1] + 0.35, constrained=False)
    height = layout.size[1] / (layout.size[1] + 0.35)
    figure.text(0.5, (1.0 + height) / 2, model.name, ha="center", va="center", fontsize=11)
    _draw(figure.add_axes((0.0, 0.0, 1.0, height)), model, factors, layout, observed, sizes)
    return figure


def _draw(axes: Axes, model: Model, factors: list[FactorNode], layout: Layout, observed: frozenset[str],
          sizes: dict[str, int]) -> None:  # fmt: skip
    """Everything of a layout, on axes that are as large."""
    axes.set(xlim=(0, layout.size[0]), ylim=(0, layout.size[1]), aspect="equal")
    axes.set_axis_off()
    for name, boxes in layout.plates.items():
        _draw_plate(axes, name, sizes.get(name), boxes)
    for factor in factors:
        _draw_factor(axes, factor, layout)
    for name, node in variables(model).items():
        shaded = isinstance(node, Input) or name in observed
        _draw_variable(axes, name, layout.positions[name], shaded, double=isinstance(node, Let))


def _what_is_known(source: Model | Inferred) -> tuple[Model, frozenset[str], dict[str, int]]:
    """The model, the names of observed variables and the sizes of plates."""
    if isinstance(source, Model):
        return source, frozenset(), {name: size for name, (size, _) in source.sizes.items()}
    return source.model, frozenset(source.binding.observed), dict(source.binding.sizes)


def _draw_plate(axes: Axes, name: str, size: int | None, boxes: list[tuple[float, float, float, float]]) -> None:
    from matplotlib.patches import FancyBboxPatch

    label = f"{name} ({size})" if size else name
    line = {"boxstyle": "round,pad=0,rounding_size=0.12", "fill": False, "edgecolor": GREY, "linewidth": 1.0}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    for left, bottom, width, height in boxes:
        axes.add_patch(FancyBboxPatch((left, bottom), width, height, gid=f"plate {name}", **line))
        axes.text(left + 0.18, bottom + height, label, ha="left", va="center", fontsize=8, color="#555a63", bbox=box)


def _draw_variable(axes: Axes, name: str, centre: tuple[float, float], shaded: bool, double: bool) -> None:
    from matplotlib.patches import Circle

    face = _SHADE if shaded else "white"
    axes.add_patch(
        Circle(centre, RADIUS, facecolor=face, edgecolor="black", linewidth=1.0, zorder=3, gid=f"variable {name}")
    )
    if double:
        axes.add_patch(Circle(centre, RADIUS - 0.05, fill=False, edgecolor="black", linewidth=0.7, zorder=3))
    lines = name.replace("_", "_\n").split() if len(name) > 9 else [name]
    room = 2 * (RADIUS - 0.06) * 72
    size = max(5.0, min(10.0, room / (0.6 * max(map(len, lines)))))
    axes.text(*centre, "\n".join(lines), ha="center", va="center", fontsize=size, linespacing=1.0, zorder=4)


def _draw_factor(axes: Axes, factor: FactorNode, layout: Layout) -> None:
    x, y = layout.positions[factor.name]
    for number, case in enumerate(factor.cases):
        spot = (x + number * factor.pitch, y)
        for name in case.values:
            _draw_link(axes, layout.positions[name], spot, "-")
        for name in case.indices:
            _draw_link(axes, layout.positions[name], spot, ":")
        if factor.out:
            _draw_arrow(axes, spot, layout.positions[factor.out])
        _draw_square(axes, spot, factor.name, case.label)
    if factor.selectors:
        _draw_gate(axes, factor, layout)


def _draw_square(axes: Axes, spot: tuple[float, float], name: str, label: str) -> None:
    from matplotlib.patches import Rectangle

    x, y = spot
    style = {"facecolor": BLUE, "edgecolor": "black", "linewidth": 0.8, "zorder": 3}
    axes.add_patch(Rectangle((x - SQUARE, y - SQUARE), 2 * SQUARE, 2 * SQUARE, gid=name, **style))
    axes.text(x + SQUARE + 0.06, y - 0.01, label, ha="left", va="center", fontsize=8, color=BLUE, zorder=2.5)


def _draw_gate(axes: Axes, factor: FactorNode, layout: Layout) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = layout.positions[factor.name]
    left, half, width = x - 0.2, 0.19, factor.right + 0.2
    style = {"fill": False, "edgecolor": ORANGE, "linestyle": "--", "linewidth": 1.1, "zorder": 2}
    shape = "round,pad=0,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch((left, y - half), width, 2 * half, shape, gid=f"gate {factor.name}", **style))
    for name in factor.selectors:
        end = min(max(layout.positions[name][0], left + 0.1), left + width - 0.1)
        _draw_link(axes, layout.positions[name], (end, y + half - SQUARE), "--", ORANGE)


def _draw_link(
    axes: Axes, variable: tuple[float, float], factor: tuple[float, float], style: str, colour: str = "black"
) -> None:
    """From the bottom of a circle to the top of a square: bent between the rows, so that it passes no other node."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = (variable[0], variable[1] - RADIUS), (factor[0], factor[1] + SQUARE)
    turn = max(y0 - 0.6 * (y0 - y1), y0 - 0.35)
    points = [(x0, y0), (x0, turn), (x1, turn), (x1, y1)]
    curve = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(PathPatch(curve, fill=False, edgecolor=colour, linestyle=style, linewidth=1.0, zorder=1.5))


def _draw_arrow(axes: Axes, factor: tuple[float, float], variable: tuple[float, float]) -> None:
    properties = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.0, "shrinkA": 0, "shrinkB": RADIUS * 72}
    axes.annotate("", variable, factor, arrowprops=properties, zorder=1.5)
