"""Pictures of runs: a number over the draws of chains and its posterior, scores of models, what a search has found.

All take plain arrays, of whatever model and program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...factors.errors import DataError
from .figure import BLUE, INK, ORANGE, PALE, clean, colour, draw_legend, new_figure


def plot_count(
    counts: Any, *, warmup: int = 0, truth: float | None = None, label: str = "number of factors", title: str = ""
) -> Any:
    """A whole number, such as that of factors or classes, over the sweeps of each chain, and its posterior.

    Args:
        counts: (chains, sweeps) or (sweeps,) whole numbers, or a list of chains of different lengths.
        warmup: sweeps at the start that are shaded, and not counted in the posterior.
        truth: a number to mark, where it is known.
        label: what is counted.
        title: of the picture.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: no sweeps, or none after the warm-up. UnsupportedError: matplotlib is absent.
    """
    chains = _chains(counts, warmup, f"Values of the {label}")
    figure, trace, share = _trace(chains, warmup, truth, label, title)
    kept = [chain[warmup:] for chain in chains]
    values = np.arange(min(map(np.min, kept)), max(map(np.max, kept)) + 1)
    width = 0.8 / len(kept)
    for i, chain in enumerate(kept):
        probability = np.mean(chain == values[:, None], axis=1)
        share.barh(values + (i - 0.5 * (len(kept) - 1)) * width, probability, width, color=colour(i))
    trace.yaxis.get_major_locator().set_params(integer=True)
    share.set_xlabel("posterior probability", fontsize=9)
    return figure


def plot_sparsity(fractions: Any, *, warmup: int = 0, truth: float | None = None, title: str = "") -> Any:
    """The share of loadings that are exactly zero (see `fraction_of_zeros`) over each chain, and its posterior.

    Args:
        fractions: (chains, draws) or (draws,) in [0, 1], or a list of chains of different lengths.
        warmup: draws at the start that are shaded, and not counted in the posterior.
        truth: a number to mark, where it is known.
        title: of the picture.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: no draws, or none after the warm-up. UnsupportedError: matplotlib is absent.

    Source: knowles2011nonparametric.
    """
    chains = _chains(fractions, warmup, "Fractions of zeros")
    figure, _, share = _trace(chains, warmup, truth, "fraction of loadings that are zero", title)
    kept = [chain[warmup:] for chain in chains]
    whole = np.concatenate(kept)
    edges = np.linspace(whole.min(), whole.max() + 1e-9, int(np.clip(np.sqrt(len(whole)), 5, 30)) + 1)
    for i, chain in enumerate(kept):
        share.hist(
            chain, bins=list(edges), orientation="horizontal", histtype="stepfilled", alpha=0.25, color=colour(i),
            weights=np.full(len(chain), 1.0 / len(chain)),
        )  # fmt: skip
        share.hist(
            chain, bins=list(edges), orientation="horizontal", histtype="step", color=colour(i),
            weights=np.full(len(chain), 1.0 / len(chain)),
        )  # fmt: skip
    share.set_xlabel("share of draws", fontsize=9)
    return figure


def plot_scores(
    scores: Mapping[str, Any], *, label: str = "held-out log predictive density per entry", title: str = "",
    axes: Any = None,
) -> Any:  # fmt: skip
    """Scores of several models over data sets or splits: a box for each model, with its points.

    A box spans the quartiles, with a line at the median; whiskers reach the last point within 1.5 times its length.

    Args:
        scores: for each model (splits,) scores, drawn in this order from top to bottom.
        label: of the scores.
        title: of the picture.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: a model without scores, or with one that is not finite. UnsupportedError: matplotlib is absent.
    """
    if not scores:
        raise DataError("Scores are drawn of one model at least; found none.")
    axes = clean(new_figure(6.4, 0.42 * len(scores) + 1.1).add_subplot() if axes is None else axes)
    for place, (name, values) in enumerate(scores.items()):
        values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if not values.size or values.ndim != 1 or not np.isfinite(values).all():
            raise DataError(f"Scores of {name!r} are a list of finite numbers; found {values}.")
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        reach = 1.5 * (high - low)
        inside = values[(values >= low - reach) & (values <= high + reach)]
        axes.hlines(place, inside.min(), inside.max(), color=INK, linewidth=0.9, zorder=1)
        axes.barh(place, high - low, 0.55, left=low, color=PALE, edgecolor=INK, linewidth=0.9, zorder=2)
        axes.vlines(middle, place - 0.275, place + 0.275, color=ORANGE, linewidth=1.8, zorder=3)
        apart = 0.16 * np.sin(2.4 * np.arange(len(values)))  # so that equal scores do not hide one another
        axes.scatter(values, place + apart, s=11, color=BLUE, alpha=0.75, linewidths=0, zorder=4)
    axes.set_yticks(range(len(scores)), list(scores), fontsize=9)
    axes.set_ylim(len(scores) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel(label, fontsize=9)
    axes.set_title(title, fontsize=10)
    return axes.figure


def plot_evidence(
    traces: Mapping[str, Any], *, label: str = "log joint density", title: str = "", axes: Any = None
) -> Any:
    """The best log joint density, or another number, against seconds: a line for each run, a colour for each method.

    Args:
        traces: for each method (seconds, values), or a list of such pairs for several runs.
        label: of the values.
        title: of the picture.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The matplotlib Figure.
    """
    axes = clean(new_figure(6.4, 4.0).add_subplot() if axes is None else axes)
    low, values = [], []
    legend = {name: colour(i) for i, name in enumerate(traces)}
    for name, runs in traces.items():
        runs = [runs] if np.ndim(runs[0][0]) == 0 else list(runs)
        for seconds, value in runs:
            seconds, value = np.asarray(seconds, dtype=np.float64), np.asarray(value, dtype=np.float64)
            if seconds.shape != value.shape or seconds.ndim != 1 or not len(seconds):
                raise DataError(f"A run of {name!r} has {seconds.shape} seconds and {value.shape} values.")
            axes.plot(
                seconds, value, drawstyle="steps-post", color=legend[name], linewidth=1.2,
                alpha=1.0 if len(runs) == 1 else 0.6,
            )  # fmt: skip
            low.append(seconds[seconds > 0.0].min(initial=np.inf))
            values.append(value[np.isfinite(value)])
    axes.set(xscale="log", xlabel="seconds", ylabel=label)
    shown = np.concatenate(values)
    if np.ptp(shown) > 0.0:  # a poor start would flatten all the rest
        bottom = max(shown.min(), np.quantile(shown, 0.02) - 0.5 * (shown.max() - np.median(shown)))
        axes.set_ylim(bottom - 0.03 * (shown.max() - bottom), shown.max() + 0.05 * (shown.max() - bottom))
    draw_legend(axes.figure, legend)
    axes.set_title(title, fontsize=10)
    return axes.figure


def _trace(chains: list[np.ndarray], warmup: int, truth: float | None, label: str, title: str) -> tuple[Any, Any, Any]:
    """A figure with the values of chains over sweeps, and an empty panel beside them of the same heights."""
    figure = new_figure(8.0, 3.2)
    trace, share = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    for i, chain in enumerate(chains):
        trace.plot(
            np.arange(1, len(chain) + 1), chain, drawstyle="steps-mid", color=colour(i), linewidth=0.9, alpha=0.85
        )
    if warmup:
        trace.axvspan(0.5, warmup + 0.5, color=PALE, alpha=0.6, linewidth=0, zorder=0)
    for axes in (clean(trace), clean(share)):
        if truth is not None:
            axes.axhline(truth, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
    share.tick_params(axis="y", labelleft=False)
    trace.set_xlim(0.5, max(map(len, chains)) + 0.5)
    trace.set_xlabel("sweep", fontsize=9)
    trace.set_ylabel(label, fontsize=9)
    draw_legend(figure, {f"chain {i + 1}": colour(i) for i in range(len(chains))} if len(chains) <= 8 else {})
    trace.set_title(title, fontsize=10)
    figure.set_layout_engine("constrained", wspace=0.04)
    return figure, trace, share


def _chains(values: Any, warmup: int, what: str) -> list[np.ndarray]:
    values = list(values)
    values = [values] if values and np.ndim(values[0]) == 0 else values
    chains = [np.asarray(chain, dtype=np.float64) for chain in values]
    if not chains or warmup < 0 or any(chain.ndim != 1 or len(chain) <= warmup for chain in chains):
        raise DataError(
            f"{what} are (chains, sweeps) with more sweeps than the warm-up of {warmup}; found shapes "
            f"{[chain.shape for chain in chains]}."
        )
    return chains
