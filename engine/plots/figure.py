"""Figures without pyplot: nothing global changes, and matplotlib is only loaded when a figure is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...factors.errors import DataError, ModelError, UnsupportedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#33658a", "#d1603d", "#8a8f98"
INK, PALE = "#4a4f58", "#dfe5ea"
COLOURS = (
    BLUE, ORANGE, "#6a994e", "#7b5e9e", "#b8892b", "#4aa3a2",
    "#c2698f", "#5c6b1e", "#8c4a32", "#3d4f9f", "#d9a514", "#2f7d5b",
)  # fmt: skip


def new_figure(width: float, height: float, constrained: bool = True) -> Figure:
    """An empty matplotlib Figure of this size in inches. UnsupportedError when matplotlib is absent."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError(
            "Asked for a plot, but matplotlib cannot be imported; everything else works without it. "
            "Install it: pip install matplotlib, or the extra cavity[plot]."
        ) from error
    return Figure(figsize=(width, height), dpi=150, layout="constrained" if constrained else None)


def check_axes(ax: object, call: str) -> None:
    """ModelError for what are no axes of matplotlib."""
    if not hasattr(ax, "hlines") or not hasattr(ax, "set_title"):
        raise ModelError(
            f"{call}: ax= are axes of a figure of your own, such as ax = plt.figure().add_subplot(); found "
            f"{type(ax).__name__}."
        )


def clean(axes: Axes) -> Axes:
    """Axes without the upper and right frame and with small ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return axes


def colour(i: int) -> str:
    """The colour of the i-th group."""
    return COLOURS[i % len(COLOURS)]


def coloured(groups: Sequence[object] | None, n: int, what: str, plain: str) -> tuple[list[str], dict[str, str]]:
    """The colour of each of n points (`what`), and that of each group in the order of appearance.

    Raises:
        DataError: not one label for each point.
    """
    if groups is None:
        return [plain] * n, {}
    labels = [str(group) for group in groups]
    if len(labels) != n:
        raise DataError(f"There is one label for each of the {n} {what}; found {len(labels)}.")
    legend = {name: colour(i) for i, name in enumerate(dict.fromkeys(labels))}
    return [legend[name] for name in labels], legend


def draw_legend(figure: Figure, legend: Mapping[str, str]) -> None:
    """What the colours mean, outside where it cannot cover the picture, and once in a figure."""
    if len(legend) < 2 or figure.legends:
        return
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=3, label=name) for name, colour in legend.items()]
    widest = max(2, int(13.0 * figure.get_figwidth() / (5.0 + max(map(len, legend)))))
    lines = -(-len(handles) // widest)
    figure.legend(
        handles=handles, fontsize=8, frameon=False, loc="outside upper center", ncols=-(-len(handles) // lines)
    )
