"""Pictures of a posterior: marginals, and how the run converged. Only drawing loads matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.special

from ...factors.errors import DataError, UnsupportedError
from ...factors.families import DiscreteFamily, Point
from ..answers.inferred import Inferred
from ..answers.marginal import Marginal
from .figure import BLUE, COLOURS, GREY, ORANGE, clean, new_figure
from .graph_plot import plot_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CURVES = 6  # up to so many elements have their densities drawn, more are a forest of intervals
_SHOWN = 40
_EVENT_AXES = {"vector": ["coordinate"], "simplex": ["value"], "posdef": ["row", "column"]}


def plot_posterior(posterior: Inferred, names: Sequence[str] = (), interval: float = 0.9) -> Figure:
    """The marginals of the named variables (by default all that inference gave a belief), and a panel of convergence.

    A variable of up to 6 continuous elements is drawn by its densities with the central `interval` shaded, a longer
    one as a forest of means and intervals, a discrete one by the probabilities of its values; of long variables the
    first 40 elements. Returns a matplotlib Figure. DataError when a variable is observed, KeyError when it is
    unknown, UnsupportedError when matplotlib is absent.
    """
    names = list(names) or [name for name in posterior.model.randoms if not _observed(posterior, name)]
    for name in names:
        if _observed(posterior, name):
            raise DataError(f"{name!r} is observed, so its marginal is a point. Name variables that were inferred.")
    marginals = [posterior[name] for name in names]
    columns = min(3, len(names) + 1)
    rows = -(-(len(names) + 1) // columns)
    figure = new_figure(4.0 * columns, 3.4 * rows)
    panels = [clean(figure.add_subplot(rows, columns, i + 1)) for i in range(len(names) + 1)]
    for axes, name, marginal in zip(panels, names, marginals, strict=False):
        _draw_marginal(axes, name, marginal, _axis_names(posterior, name), interval)
    _draw_residual(panels[-1], posterior)
    if np.isfinite(posterior.trace.evidence).any():
        _draw_evidence(panels[-1].twinx(), posterior)
    panels[-1].set_title("convergence", fontsize=10)
    return figure


def plot_convergence(posterior: Inferred) -> Figure:
    """Two panels over the sweeps: residual (logarithmic) with the tolerance, and log evidence where it was recorded.

    Rejected sweeps, whose residual is infinite, are left out. Returns a matplotlib Figure. UnsupportedError when
    matplotlib is absent.
    """
    figure = new_figure(8.0, 3.2)
    _draw_residual(clean(figure.add_subplot(1, 2, 1)), posterior)
    axes = clean(figure.add_subplot(1, 2, 2))
    if np.isfinite(posterior.trace.evidence).any():
        _draw_evidence(axes, posterior)
    else:
        axes.set_axis_off()
        axes.text(
            0.5,
            0.5,
            "evidence was not recorded\n(trace_evidence=True)",
            ha="center",
            va="center",
            fontsize=9,
            color=GREY,
        )
    figure.suptitle(f"{posterior.model.name}: {posterior.code} in {posterior.iterations} sweeps", fontsize=11)
    return figure


def _observed(posterior: Inferred, name: str) -> bool:
    return isinstance(posterior[name].family, Point)


def _axis_names(posterior: Inferred, name: str) -> str:
    """What the indices of an element run over: the plates, then the axes of one value."""
    model = posterior.model
    node = {**model.randoms, **model.lets}[name]
    return ", ".join([plate.name for plate in node.plates] + _EVENT_AXES.get(node.domain.kind, []))


def _draw_marginal(axes: Axes, name: str, marginal: Marginal, axis_names: str, interval: float) -> None:
    family = marginal.family
    if isinstance(family, DiscreteFamily):
        probability = np.asarray(marginal.mean)
        if family.kind == "boolean":
            probability = np.stack([1.0 - probability, probability], axis=-1)
        numbers = tuple(map(str, range(probability.shape[-1])))
        total = _draw_probabilities(axes, probability, ("false", "true") if family.kind == "boolean" else numbers)
    elif marginal.mean.size <= _CURVES and _has_quantiles(marginal):
        total = _draw_densities(axes, marginal, interval)
    else:
        total = _draw_forest(axes, marginal, axis_names, interval)
    axes.set_title(name if total <= _SHOWN else f"{name} (first {_SHOWN} of {total})", fontsize=10)


def _draw_probabilities(axes: Axes, probability: np.ndarray, values: tuple[str, ...]) -> int:
    """A bar for each value of one variable, or for each element of a plate, stacked by value. Returns the elements."""
    if probability.ndim == 1:
        axes.bar(values, probability, color=BLUE)
        axes.set(xlabel="value", ylabel="probability", ylim=(0, 1))
        return 1
    table = probability.reshape(-1, probability.shape[-1])
    shown = table[:_SHOWN]
    bottoms = np.cumsum(shown, axis=1) - shown
    for k, value in enumerate(values):
        axes.bar(
            np.arange(len(shown)),
            shown[:, k],
            bottom=bottoms[:, k],
            width=1.0,
            color=COLOURS[k % len(COLOURS)],
            label=value,
        )
    axes.set(xlabel="element", ylabel="probability of each value", ylim=(0, 1))
    axes.locator_params("x", integer=True)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return len(table)


def _has_quantiles(marginal: Marginal) -> bool:
    try:
        marginal.quantile(0.5)
    except UnsupportedError:
        return False
    return True


def _draw_densities(axes: Axes, marginal: Marginal, interval: float) -> int:
    """The density of each element by differences of its distribution function: quantiles are all it needs."""
    levels = scipy.special.ndtr(np.linspace(-4.0, 4.0, 201))
    points = marginal.quantile(levels).reshape(levels.size, -1)
    low, high = (np.ravel(end) for end in marginal.interval(interval))
    labels = _labels(marginal.mean.shape)
    for k, label in enumerate(labels):
        x = points[:, k]
        middle, density = 0.5 * (x[1:] + x[:-1]), np.diff(levels) / np.maximum(np.diff(x), 1e-300)
        inside = (middle >= low[k]) & (middle <= high[k])
        axes.plot(middle, density, color=COLOURS[k], linewidth=1.3, label=label)
        axes.fill_between(middle[inside], density[inside], color=COLOURS[k], alpha=0.2, linewidth=0)
    axes.set(xlabel="value", yticks=[])
    axes.set_ylim(bottom=0)
    axes.spines["left"].set_visible(False)
    if len(labels) > 1:
        axes.legend(fontsize=7, frameon=False)
    return len(labels)


def _draw_forest(axes: Axes, marginal: Marginal, axis_names: str, interval: float) -> int:
    """Means and intervals, the first element at the top; those of a Gaussian where a family has no quantiles."""
    mean = np.ravel(marginal.mean)[:_SHOWN]
    if _has_quantiles(marginal):
        low, high = (np.ravel(end)[:_SHOWN] for end in marginal.interval(interval))
    else:
        half = scipy.special.ndtri(0.5 + 0.5 * interval) * np.ravel(marginal.sd)[:_SHOWN]
        low, high = mean - half, mean + half
    place = np.arange(mean.size)
    axes.hlines(place, low, high, color=BLUE, linewidth=1.4)
    axes.plot(mean, place, "o", color=ORANGE, markersize=3)
    axes.set_ylim(mean.size - 0.5, -0.5)
    axes.set_xlabel(f"mean and {interval:.0%} interval")
    axes.set_ylabel(axis_names)
    labels, step = _labels(marginal.mean.shape, _SHOWN), -(-mean.size // 20)
    axes.set_yticks(place[::step], labels[::step], fontsize=7)
    return marginal.mean.size


def _labels(shape: tuple[int, ...], limit: int = _SHOWN) -> list[str]:
    indices = [np.unravel_index(i, shape) for i in range(min(int(np.prod(shape)), limit))]
    return [", ".join(map(str, index)) for index in indices]


def _draw_residual(axes: Axes, posterior: Inferred) -> None:
    residual = posterior.trace.residual
    sweeps = np.arange(1, residual.size + 1)
    keep = np.isfinite(residual) & (residual > 0)
    axes.semilogy(sweeps[keep], residual[keep], ".-", color=BLUE, linewidth=1.2, markersize=4)
    tolerance = posterior.request.options.tolerance
    axes.axhline(tolerance, color=GREY, linewidth=0.9, linestyle="--")
    axes.annotate(
        "tolerance",
        (0.3, tolerance),
        xycoords=("axes fraction", "data"),
        ha="center",
        va="bottom",
        fontsize=7,
        color=GREY,
    )
    axes.set_xlabel("sweep")
    axes.set_ylabel("residual (posterior sd)", color=BLUE)
    axes.locator_params("x", integer=True)


def _draw_evidence(axes: Axes, posterior: Inferred) -> None:
    evidence = posterior.trace.evidence
    sweeps = np.arange(1, evidence.size + 1)
    keep = np.isfinite(evidence)
    axes.plot(sweeps[keep], evidence[keep], ".-", color=ORANGE, linewidth=1.2, markersize=4)
    axes.set_xlabel("sweep")
    axes.set_ylabel("log evidence", color=ORANGE)
    axes.tick_params(labelsize=8)
    axes.spines["top"].set_visible(False)
    axes.locator_params("x", integer=True)


__all__ = ["plot_convergence", "plot_graph", "plot_posterior"]
