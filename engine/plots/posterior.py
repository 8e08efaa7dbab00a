"""Pictures of a posterior: marginals, and how the run converged. Only drawing loads matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
from jaxtyping import Bool, Float

from ...factors.errors import DataError, ModelError
from ...factors.families import Point
from ..answers.inferred import Inferred
from ..run.diagnosis import counted
from ..support.asked_arguments import known_name
from .figure import BLUE, GREY, ORANGE, check_axes, clean, new_figure
from .graph_plot import plot_graph
from .marginal import draw_marginal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EVENT_AXES = {"vector": ["coordinate"], "simplex": ["value"], "posdef": ["row", "column"]}


@overload
def plot_posterior(
    posterior: Inferred, names: Sequence[str] = (), interval: float = 0.9, *, ax: None = None
) -> Figure: ...
@overload
def plot_posterior(posterior: Inferred, names: Sequence[str] = (), interval: float = 0.9, *, ax: Axes) -> Axes: ...
def plot_posterior(
    posterior: Inferred, names: Sequence[str] = (), interval: float = 0.9, *, ax: Axes | None = None
) -> Figure | Axes:
    """The marginals of the named variables (by default all that inference gave a belief), and a panel of convergence
    where there were sweeps: an integration over a grid has a run for each of its points, weighted draws have none.

    A variable of up to 6 continuous elements is drawn by its densities with the central `interval` shaded, one of up to
    40 as a line for each, a longer one as a band over the places of its elements, a discrete one by the probabilities
    of its values; of more than 1,000 elements so many, evenly spaced. Returns a matplotlib Figure. With `ax` the
    marginal of the one variable that is named is drawn there, and `ax` is returned. DataError when a variable is
    observed, ModelError for several names on one `ax`, KeyError when one is unknown, UnsupportedError when matplotlib
    is absent.
    """
    asked = [known_name(name, [*posterior]) for name in names]
    names = asked or [name for name in posterior.model.randoms if not _observed(posterior, name)]
    for name in names:
        if _observed(posterior, name):
            raise DataError(f"{name!r} is observed, so its marginal is a point. Name variables that were inferred.")
    marginals = [posterior[name] for name in names]
    if ax is not None:
        check_axes(ax, "plot()")
        if len(names) != 1:
            raise ModelError(f"One marginal fits on ax=; asked for {', '.join(names)}. Name one: plot('a', ax=ax).")
        draw_marginal(ax, names[0], marginals[0], _axis_names(posterior, names[0]), interval)
        return ax
    number = max(len(names) + _swept(posterior), 1)
    columns = min(3, number)
    rows = -(-number // columns)
    figure = new_figure(4.0 * columns, 3.4 * rows)
    panels = [clean(figure.add_subplot(rows, columns, i + 1)) for i in range(number)]
    for axes, name, marginal in zip(panels, names, marginals, strict=False):
        draw_marginal(axes, name, marginal, _axis_names(posterior, name), interval)
    if number == len(names):
        return figure
    _draw_residual(panels[-1], posterior)
    if np.isfinite(posterior.trace.evidence).any():
        _draw_evidence(panels[-1].twinx(), posterior)
    panels[-1].set_title("convergence", fontsize=10)
    return figure


@overload
def plot_convergence(posterior: Inferred, *, ax: None = None) -> Figure: ...
@overload
def plot_convergence(posterior: Inferred, *, ax: Axes) -> Axes: ...
def plot_convergence(posterior: Inferred, *, ax: Axes | None = None) -> Figure | Axes:
    """Two panels over the sweeps: residual (logarithmic) with the tolerance, and log evidence where it was recorded.

    Rejected sweeps, whose residual is infinite, are left out. Returns a matplotlib Figure. With `ax` both are drawn
    there, the evidence on an axis at the right, and `ax` is returned. UnsupportedError when matplotlib is absent.
    """
    if ax is not None:
        _draw_residual(ax, posterior)
        if np.isfinite(posterior.trace.evidence).any():
            _draw_evidence(ax.twinx(), posterior)
        return ax
    figure = new_figure(8.0, 3.2)
    _draw_residual(clean(figure.add_subplot(1, 2, 1)), posterior)
    axes = clean(figure.add_subplot(1, 2, 2))
    if np.isfinite(posterior.trace.evidence).any():
        _draw_evidence(axes, posterior)
    else:
        _say(axes, "evidence was not recorded\n(trace_evidence=True)")
    ended = f"{posterior.code} in {counted(posterior.iterations, 'sweep')}"
    figure.suptitle(f"{posterior.model.name}: {ended}", fontsize=11)
    return figure


def _swept(posterior: Inferred) -> bool:
    """Whether there are residuals of sweeps to draw."""
    return bool(_positive(posterior.trace.residual).any())


def _positive(residual: Float[np.ndarray, " sweep"]) -> Bool[np.ndarray, " sweep"]:
    return np.isfinite(residual) & (residual > 0)


def _say(axes: Axes, text: str) -> None:
    """Words where there is nothing to draw."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=9, color=GREY)


def _observed(posterior: Inferred, name: str) -> bool:
    return isinstance(posterior[name].family, Point)


def _axis_names(posterior: Inferred, name: str) -> str:
    """What the indices of an element run over: the plates, then the axes of one value."""
    model = posterior.model
    node = {**model.randoms, **model.lets}[name]
    return ", ".join([plate.name for plate in node.plates] + _EVENT_AXES.get(node.domain.kind, []))


def _draw_residual(axes: Axes, posterior: Inferred) -> None:
    residual = posterior.trace.residual
    if not _swept(posterior):
        _say(axes, f"no sweeps of its own:\n{posterior.code} as a whole")
        return
    sweeps, keep = np.arange(1, residual.size + 1), _positive(residual)
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
