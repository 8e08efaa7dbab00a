"""Pictures of sparse factor models: loadings, factors, the number of factors and zeros over a chain, held-out scores.

All take plain arrays, so that any model of the family, or another program, can be drawn with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...engine.plots.figure import BLUE, GREY, INK, ORANGE, PALE, clean, colour, coloured, draw_legend, new_figure
from ...factors.errors import DataError
from .align import block_order

_NAMED = 100  # rows or samples beyond which names are left out: they could not be read
_FACTORS = 24  # panels of factors that are drawn


def plot_loadings(
    loading: Any,
    activity: Any = None,
    *,
    rows: Sequence[Any] | None = None,
    factors: Sequence[Any] | None = None,
    ordered: bool = True,
    title: str = "",
) -> Any:
    """Loadings as a heat map, and beside it the probability that each is active.

    Args:
        loading: (rows, factors), such as the posterior mean of `summarise_loadings`.
        activity: (rows, factors) in [0, 1]; without it there is one panel only.
        rows: names of the rows, such as genes; written where there are at most 100.
        factors: names of the factors, by default 1, 2, ...
        ordered: whether rows stand by their strongest factor (see `block_order`), with a line between the blocks.
        title: of the picture.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: shapes or lengths that do not fit, or an activity outside [0, 1]. UnsupportedError: no matplotlib.
    """
    loading = _table(loading, "Loadings", "(rows, factors)")
    n, k = loading.shape
    names, labels = _labels(rows, n, "rows"), _labels(factors, k, "factors")
    panels = _loading_panels(loading, activity)
    activity = panels[-1].values if len(panels) > 1 else None
    order = block_order(loading, activity) if ordered else np.arange(n)
    named = rows is not None and n <= _NAMED
    height = float(np.clip(0.13 * n + 1.3, 2.6, 14.0)) if named else 5.0
    width = float(np.clip(0.24 * k + 1.0, 1.9, 6.0))
    figure = new_figure(1.4 + len(panels) * width, height)
    strength = np.abs(loading if activity is None else loading * activity)[order]
    cuts = np.flatnonzero(np.diff(np.where(strength.any(axis=1), strength.argmax(axis=1), k))) + 0.5
    for axes, panel in zip(np.ravel(figure.subplots(1, len(panels), sharey=True)), panels, strict=True):
        _heat_map(figure, axes, panel, order, labels, width)
        if ordered:
            axes.hlines(cuts, -0.5, k - 0.5, color=GREY, linewidth=0.4)
    first = figure.axes[0]
    if named:
        pitch = 72.0 * (height - 1.3) / n
        first.set_yticks(np.arange(n), [names[i] for i in order], fontsize=float(np.clip(0.8 * pitch, 3.5, 8.0)))
        first.tick_params(axis="y", labelleft=True)
    else:
        first.set_ylabel(f"{n:,} rows" + (", by their strongest factor" if ordered else ""), fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


class _Panel(NamedTuple):
    """Values (rows, factors), their name, colours, limits of the colours, and which ends of them are cut."""

    values: np.ndarray
    label: str
    colours: Any
    low: float
    high: float
    extend: str


def _loading_panels(loading: np.ndarray, activity: Any) -> list[_Panel]:
    """Loadings and, where it is given, activity, which is checked."""
    size = float(np.quantile(np.abs(loading[loading != 0.0]), 0.99)) if loading.any() else 1.0
    clipped = "both" if np.abs(loading).max() > size else "neither"
    panels = [_Panel(loading, "loading", _diverging(), -size, size, clipped)]
    if activity is not None:
        activity = np.asarray(activity, dtype=np.float64)
        if activity.shape != loading.shape or not ((activity >= 0.0) & (activity <= 1.0)).all():
            raise DataError(
                f"Activity is a probability for each of the {loading.shape} loadings; found shape {activity.shape}, "
                f"values in [{activity.min():.3g}, {activity.max():.3g}]."
            )
        panels.append(_Panel(activity, "probability of activity", _sequential(), 0.0, 1.0, "neither"))
    return panels


def _heat_map(figure: Any, axes: Any, panel: _Panel, order: np.ndarray, labels: Sequence[str], width: float) -> None:
    """One panel with its colour bar and the names of the factors."""
    k = len(labels)
    image = axes.imshow(
        panel.values[order], aspect="auto", interpolation="nearest", cmap=panel.colours, vmin=panel.low, vmax=panel.high
    )
    bar = figure.colorbar(
        image, ax=axes, location="top", aspect=8.0 * width, shrink=0.9, pad=0.02, extend=panel.extend, extendfrac=0.04
    )
    bar.set_label(panel.label, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    axes.spines[:].set_color(GREY)
    axes.tick_params(labelsize=7, length=0)
    every = 1 if k <= 25 else 5
    long = max(map(len, labels)) > 3
    axes.set_xticks(np.arange(0, k, every), labels[::every], rotation=90 if long else 0, fontsize=8 if k <= 16 else 6.5)
    axes.set_xlabel("factor", fontsize=9)
    axes.set_yticks([])
    axes.tick_params(axis="y", left=False, labelleft=False)


def plot_factors(
    factor: Any,
    along: Any = None,
    *,
    deviation: Any = None,
    factors: Sequence[Any] | None = None,
    samples: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    label: str = "",
    title: str = "",
) -> Any:
    """Factors over the samples, a panel for each: lines along time, or bars where samples have no order.

    Args:
        factor: (factors, samples), such as posterior means; the first 24 are drawn.
        along: (samples,) numbers, such as times, in any order: factors are lines over them.
        deviation: (factors, samples) standard deviations: bands, or whiskers of bars, of two either way.
        factors: names of the factors, by default 1, 2, ...
        samples: names of the samples, written where there are at most 100 and nothing to draw them along.
        groups: (samples,) a label for each sample, which gives it its colour.
        label: of the horizontal axis.
        title: of the picture.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: shapes or lengths that do not fit. UnsupportedError: matplotlib is absent.
    """
    factor = _table(factor, "Factors", "(factors, samples)")
    k, n = factor.shape
    band, place = _bands(factor, deviation, along)
    names, ticks = _labels(factors, k, "factors", "factor "), _labels(samples, n, "samples")
    colours, legend = coloured(groups, n, "samples' groups", BLUE)
    shown = min(k, _FACTORS)
    named = samples is not None and along is None and n <= _NAMED
    height = 0.85 * shown + 0.9 + (0.7 if named else 0.0)
    figure = new_figure(float(np.clip(0.09 * n + 3.0, 5.0, 11.0)), height)
    panels = figure.subplots(shown, 1, sharex=True, squeeze=False).ravel()
    for axes, values, spread, name in zip(panels, factor, band, names, strict=False):
        clean(axes).axhline(0.0, color=GREY, linewidth=0.5, zorder=0)
        if along is None:
            _bars(axes, place, values, None if deviation is None else spread, colours)
        else:
            _lines(axes, place, values, spread, colours, BLUE if groups is None else GREY)
        axes.set_ylabel(name, fontsize=8, rotation=0, ha="right", va="center")
        axes.tick_params(labelsize=7)
        axes.tick_params(axis="x", length=0 if named and axes is not panels[-1] else 3)
    last = panels[-1]
    last.set_xlim((-0.6, n - 0.4) if along is None else None)
    if named:
        last.set_xticks(place, ticks, rotation=90, fontsize=float(np.clip(500.0 / n, 4.0, 8.0)))
    last.set_xlabel(label or ("sample" if along is None and not named else ""), fontsize=9)
    draw_legend(figure, legend)
    panels[0].set_title(title if shown == k else f"{title} (first {shown} of {k})".strip(), fontsize=10)
    figure.align_ylabels(panels)
    return figure


def _bands(factor: np.ndarray, deviation: Any, along: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two standard deviations (factors, samples), and the place of every sample; DataError for other shapes."""
    n = factor.shape[1]
    band = np.zeros(factor.shape) if deviation is None else 2.0 * np.asarray(deviation, dtype=np.float64)
    place = np.arange(n) if along is None else np.asarray(along, dtype=np.float64)
    if band.shape != factor.shape or place.shape != (n,):
        raise DataError(
            f"Factors {factor.shape} have deviations of that shape and are drawn along ({n},) numbers; found "
            f"{band.shape} and {place.shape}."
        )
    return band, place


def _bars(axes: Any, place: np.ndarray, values: np.ndarray, spread: np.ndarray | None, colours: Any) -> None:
    """A bar for each sample, with whiskers of so much either way."""
    axes.bar(place, values, width=0.8, color=colours, linewidth=0)
    if spread is not None:
        axes.vlines(place, values - spread, values + spread, color=INK, linewidth=0.6)


def _lines(axes: Any, place: np.ndarray, values: np.ndarray, spread: np.ndarray, colours: Any, line: str) -> None:
    """A line along the samples' places through their points, in a band of so much either way."""
    order = np.argsort(place, kind="stable")
    axes.fill_between(place[order], (values - spread)[order], (values + spread)[order], color=PALE, linewidth=0)
    axes.plot(place[order], values[order], color=line, linewidth=1.0)
    axes.scatter(place, values, c=colours, s=float(np.clip(900.0 / len(place), 4.0, 16.0)), linewidths=0, zorder=3)


def plot_count(counts: Any, *, warmup: int = 0, truth: float | None = None, title: str = "") -> Any:
    """The number of factors over the sweeps of each chain, and its posterior.

    Args:
        counts: (chains, sweeps) or (sweeps,) whole numbers, or a list of chains of different lengths.
        warmup: sweeps at the start that are shaded, and not counted in the posterior.
        truth: a number to mark, where it is known.
        title: of the picture.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: no sweeps, or none after the warm-up. UnsupportedError: matplotlib is absent.
    """
    chains = _chains(counts, warmup, "Numbers of factors")
    figure, trace, share = _trace(chains, warmup, truth, "number of factors", title)
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


def _table(values: Any, what: str, shape: str) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise DataError(f"{what} are {shape} finite numbers, one at least; found shape {values.shape}.")
    return values


def _labels(names: Sequence[Any] | None, n: int, what: str, prefix: str = "") -> list[str]:
    if names is None:
        return [f"{prefix}{i + 1}" for i in range(n)]
    if len(names) != n:
        raise DataError(f"There is a name for each of the {n} {what}; found {len(names)}.")
    return [str(name) for name in names]


def _diverging() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    colours = ["#8f3518", ORANGE, "#ffffff", BLUE, "#173a54"]
    return LinearSegmentedColormap.from_list("loading", colours, N=257)  # odd, so that zero is white


def _sequential() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("activity", ["#ffffff", PALE, INK, "#1c1f24"])
