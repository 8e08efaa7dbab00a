"""Pictures of factor models: loadings with the probabilities that they are active, and factors over the samples.

All take plain arrays, so that any factor model, or another program, can be drawn with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...factors.errors import DataError
from ..answers.loadings import block_order
from .figure import BLUE, GREY, INK, ORANGE, PALE, clean, coloured, draw_legend, new_figure

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
