"""A marginal on matplotlib axes: densities of few numbers, lines of some, a band of many, bars of discrete ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...factors.families import DiscreteFamily
from ..answers.marginal import Marginal
from .figure import BLUE, COLOURS, ORANGE
from .shapes import (
    CURVES,
    ROWS,
    chosen,
    class_probabilities,
    density_curves,
    element_names,
    has_quantiles,
    intervals,
    told,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_marginal(axes: Axes, name: str, marginal: Marginal, axis_names: str, interval: float) -> None:
    """Draws the marginal of what is called `name`, whose elements are told by `axis_names`.

    Up to 6 numbers by their densities with the central `interval` shaded, up to 40 as a line each, more as a band over
    their places; a discrete variable by the probabilities of its values. Of more than 1,000 elements so many.
    """
    if isinstance(marginal.family, DiscreteFamily):
        cut = _draw_probabilities(axes, marginal, axis_names)
    elif marginal.mean.size <= CURVES and has_quantiles(marginal):
        cut = _draw_densities(axes, marginal, interval)
    elif marginal.mean.size <= ROWS:
        cut = _draw_forest(axes, marginal, axis_names, interval)
    else:
        cut = _draw_band(axes, marginal, axis_names, interval)
    axes.set_title(f"{name} ({cut})" if cut else name, fontsize=10)


def _draw_probabilities(axes: Axes, marginal: Marginal, axis_names: str) -> str:
    """A bar for each value of one variable, or for each element of a plate, stacked by value."""
    boolean = marginal.family.kind == "boolean"
    table, values = class_probabilities(marginal, boolean)
    shape = marginal.shape if boolean else marginal.shape[:-1]
    if not shape:
        axes.bar(values, table[0], color=BLUE)
        axes.set(xlabel="value", ylabel="probability", ylim=(0, 1))
        return ""
    places = chosen(len(table))
    shown = table[places]
    bottoms = np.cumsum(shown, axis=1) - shown
    wide = max(1.0, len(table) / len(places))
    for k, value in enumerate(values):
        colour = COLOURS[k % len(COLOURS)]
        axes.bar(places, shown[:, k], bottom=bottoms[:, k], width=wide, color=colour, label=value)
    axes.set(xlabel=axis_names or "element", ylabel="probability of each value", ylim=(0, 1))
    _name_some(axes, marginal, shape)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return told(len(places), len(table))


def _name_some(axes: Axes, marginal: Marginal, shape: tuple[int, ...]) -> None:
    """Names below the elements, where they have some and there is room."""
    size = int(np.prod(shape))
    if marginal.has_names and size <= ROWS:
        axes.set_xticks(np.arange(size), element_names(marginal, shape, range(size)), rotation=90, fontsize=7)
    else:
        axes.locator_params("x", integer=True)


def _draw_densities(axes: Axes, marginal: Marginal, interval: float) -> str:
    points, heights = density_curves(marginal)
    low, high = intervals(marginal, interval)
    names = element_names(marginal, marginal.shape, range(marginal.mean.size))
    for k, label in enumerate(names):
        x, density = points[:, k], heights[:, k]
        inside = (x >= low[k]) & (x <= high[k])
        axes.plot(x, density, color=COLOURS[k], linewidth=1.3, label=label)
        axes.fill_between(x[inside], density[inside], color=COLOURS[k], alpha=0.2, linewidth=0)
    axes.set(xlabel="value", yticks=[])
    axes.set_ylim(bottom=0)
    axes.spines["left"].set_visible(False)
    if len(names) > 1:
        axes.legend(fontsize=7, frameon=False)
    return ""


def _draw_forest(axes: Axes, marginal: Marginal, axis_names: str, interval: float) -> str:
    """Means and intervals, the first element at the top."""
    mean, (low, high) = np.ravel(marginal.mean), intervals(marginal, interval)
    place = np.arange(mean.size)
    axes.hlines(place, low, high, color=BLUE, linewidth=1.4)
    axes.plot(mean, place, "o", color=ORANGE, markersize=3)
    axes.set_ylim(mean.size - 0.5, -0.5)
    axes.set_xlabel(f"mean and {interval:.0%} interval")
    axes.set_ylabel(axis_names)
    labels, step = element_names(marginal, marginal.shape, place), -(-mean.size // 20)
    axes.set_yticks(place[::step], labels[::step], fontsize=7)
    return ""


def _draw_band(axes: Axes, marginal: Marginal, axis_names: str, interval: float) -> str:
    """Means as a line over the places of the elements, their intervals as a band."""
    mean, (low, high) = np.ravel(marginal.mean), intervals(marginal, interval)
    places = chosen(mean.size)
    axes.fill_between(places, low[places], high[places], color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(places, mean[places], color=ORANGE, linewidth=1.0)
    axes.set_xlabel(axis_names or "element")
    axes.set_ylabel(f"mean and {interval:.0%} interval")
    axes.locator_params("x", integer=True)
    return told(len(places), mean.size)
