"""Figures without pyplot: nothing global changes, and matplotlib is only loaded when a figure is made."""

from __future__ import annotations

from typing import Any

from ..factors.errors import UnsupportedError

BLUE, ORANGE, GREY = "#33658a", "#d1603d", "#8a8f98"
INK, PALE = "#4a4f58", "#dfe5ea"
COLOURS = (
    BLUE, ORANGE, "#6a994e", "#7b5e9e", "#b8892b", "#4aa3a2",
    "#c2698f", "#5c6b1e", "#8c4a32", "#3d4f9f", "#d9a514", "#2f7d5b",
)  # fmt: skip


def new_figure(width: float, height: float, constrained: bool = True) -> Any:
    """An empty matplotlib Figure of this size in inches. UnsupportedError when matplotlib is absent."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError(
            "Asked for a plot, but matplotlib cannot be imported; everything else works without it. "
            "Install it: pip install matplotlib, or the extra cavity[plot]."
        ) from error
    return Figure(figsize=(width, height), dpi=150, layout="constrained" if constrained else None)


def clean(axes: Any) -> Any:
    """Axes without the upper and right frame and with small ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return axes
