"""Small charts of arrays: curves, intervals, bars, bands and lines over sweeps; each tells in words what it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .escape import Markup
from .styles import SERIES
from .svg import LETTER, Scale, axis_below, axis_beside, number, picture, polyline, segment, shape, words

WIDTH = 340.0
LONGEST = 22  # letters of a label


def curves(x: np.ndarray, density: np.ndarray, low: np.ndarray, high: np.ndarray, names: Sequence[str],
           told: str) -> Markup:  # fmt: skip
    """Densities, (points, curves), with the intervals from `low` to `high` shaded and a legend where there are several.

    Where one is so narrow that the others would not be seen, it is cut at the top.
    """
    top = _height_of(density)
    across, up = Scale.of(x, 10.0, WIDTH - 10.0), Scale(0.0, top, 140.0, 14.0)
    shapes: list[Markup] = []
    for k in range(x.shape[1]):
        inside = (x[:, k] >= low[k]) & (x[:, k] <= high[k])
        if inside.any():
            at = across(x[inside, k])
            base = [f"{number(at[0])},140", *_points(at, up(density[inside, k])), f"{number(at[-1])},140"]
            shapes.append(shape("polygon", f"f{k % SERIES}", points=" ".join(base), opacity="0.2"))
        shapes.append(polyline(across(x[:, k]), up(density[:, k]), f"l{k % SERIES}", stroke_dasharray=_dashes(k)))
    shapes += axis_below(across, 140.0, "value")
    rows = [names[k] for k in range(x.shape[1])] if x.shape[1] > 1 else []
    return picture(WIDTH, 178.0 + 17.0 * -(-len(rows) // 3), told, *shapes, *_legend(rows, 186.0))


def forest(
    middle: np.ndarray, low: np.ndarray, high: np.ndarray, names: Sequence[str], told: str, label: str
) -> Markup:
    """A dot with an interval for each element, the first at the top."""
    left = _room(names)
    bottom = 8.0 + 16.0 * len(middle)
    across = Scale.of(np.concatenate([low, high]), left, left + WIDTH - 40.0)
    shapes = []
    if across.low < 0.0 < across.high:
        shapes.append(segment(across.at(0.0), 2.0, across.at(0.0), bottom, "frame", stroke_dasharray="3 3"))
    for i, name in enumerate(names):
        y = 10.0 + 16.0 * i
        if np.isfinite([middle[i], low[i], high[i]]).all():
            shapes.append(segment(across.at(low[i]), y, across.at(high[i]), y, "l0", 2.0))
            shapes.append(shape("circle", "f1", cx=across.at(middle[i]), cy=y, r=3.2))
        shapes.append(words(left - 10.0, y, _cut(name), "small", "end"))
    return picture(left + WIDTH - 10.0, bottom + 36.0, told, *shapes, *axis_below(across, bottom, label))


def ribbon(places: np.ndarray, middle: np.ndarray, low: np.ndarray, high: np.ndarray, told: str, label: str) -> Markup:
    """A line over the places of elements, in the band between `low` and `high`."""
    ends = np.concatenate([low, high])
    up, across = Scale.of(ends, 150.0, 24.0), Scale.of(places.astype(float), 52.0, 2.0 * WIDTH - 20.0)
    keep = np.isfinite(middle) & np.isfinite(low) & np.isfinite(high)
    x = across(places[keep])
    around = [*_points(x, up(low[keep])), *_points(x, up(high[keep]))[::-1]]
    shapes = [*axis_below(across, 150.0, "element"), *axis_beside(up, 52.0, label)]
    shapes.append(shape("polygon", "f0", points=" ".join(around), opacity="0.3"))
    return picture(2.0 * WIDTH - 10.0, 188.0, told, *shapes, polyline(x, up(middle[keep]), "l1", 1.2))


def shares(table: np.ndarray, values: Sequence[str], names: Sequence[str], told: str) -> Markup:
    """A bar for each element, divided by the probabilities of the values, the first value at the left."""
    left = _room(names)
    across = Scale(0.0, 1.0, left, left + WIDTH - 60.0)
    shapes = []
    for i, (row, name) in enumerate(zip(table, names, strict=True)):
        y = 4.0 + 18.0 * i
        ends = np.concatenate([[0.0], np.cumsum(row)])
        for k in range(len(values)):
            x0, x1 = across.at(ends[k]), across.at(ends[k + 1])
            if x1 - x0 > 0.05:
                shapes.append(_bar(x0, y, x1 - x0, 13.0, k))
        shapes.append(words(left - 8.0, y + 6.5, _cut(name), "small", "end"))
    bottom = 6.0 + 18.0 * len(table)
    shapes += axis_below(across, bottom, "probability of each value")
    width = left + WIDTH - 40.0
    rows = list(values[:SERIES]) + (["..."] if len(values) > SERIES else [])
    return picture(width, bottom + 38.0 + 17.0 * -(-len(rows) // 3), told, *shapes, *_legend(rows, bottom + 46.0))


def bars(values: np.ndarray, names: Sequence[str], told: str, label: str) -> Markup:
    """A horizontal bar for each number, with the number beside it; those that are not finite are words alone."""
    left = _room(names)
    finite = np.where(np.isfinite(values), values, 0.0)
    across = Scale.of(np.append(finite, 0.0), left, left + WIDTH - 110.0)
    shapes = []
    for i, (value, name) in enumerate(zip(values, names, strict=True)):
        y = 4.0 + 18.0 * i
        x0, x1 = sorted((across.at(0.0), across.at(finite[i])))
        shapes += [_bar(x0, y, x1 - x0, 13.0, 0), words(left - 8.0, y + 6.5, _cut(name), "small", "end")]
        shapes.append(words(across.end + 8.0, y + 6.5, f"{value:.5g}", "small"))
    bottom = 6.0 + 18.0 * len(values)
    return picture(left + WIDTH - 30.0, bottom + 36.0, told, *shapes, *axis_below(across, bottom, label))


def band(edges: np.ndarray, observed: np.ndarray, low: np.ndarray, high: np.ndarray, told: str) -> Markup:
    """A histogram as steps, before the band of heights that other data sets have."""
    across = Scale.of(edges, 34.0, WIDTH - 10.0)
    up = Scale(0.0, max(float(observed.max(initial=0.0)), float(high.max(initial=0.0)), 1e-9), 150.0, 14.0)
    shapes = []
    for i in range(len(observed)):
        x0, x1 = across.at(edges[i]), across.at(edges[i + 1])
        y0, y1 = up.at(high[i]), up.at(low[i])
        size = {"width": float(x1 - x0), "height": float(max(y1 - y0, 0.8))}
        shapes.append(shape("rect", "f0", x=float(x0), y=float(y0), opacity="0.3", **size))
    x = np.repeat(across(edges), 2)[1:-1]
    shapes.append(polyline(x, np.repeat(up(observed), 2), "l1", 2.0))
    shapes += [*axis_below(across, 150.0, "value"), *axis_beside(up, 34.0)]
    return picture(WIDTH, 188.0, told, *shapes)


def counts(observed: np.ndarray, low: np.ndarray, high: np.ndarray, names: Sequence[str], told: str) -> Markup:
    """The share of each value as a dot, before the interval that other data sets have."""
    left = _room(names)
    across = Scale(0.0, max(float(observed.max()), float(high.max()), 1e-9), left, left + WIDTH - 60.0)
    shapes = []
    for i, name in enumerate(names):
        y = 10.0 + 16.0 * i
        shapes.append(segment(across.at(low[i]), y, across.at(high[i]), y, "l0", 7.0, opacity="0.45"))
        shapes.append(shape("circle", "f1", cx=across.at(observed[i]), cy=y, r=3.4))
        shapes.append(words(left - 10.0, y, _cut(name), "small", "end"))
    bottom = 8.0 + 16.0 * len(names)
    return picture(left + WIDTH - 40.0, bottom + 36.0, told, *shapes, *axis_below(across, bottom, "share"))


def over_sweeps(lines: Sequence[np.ndarray], told: str, label: str, *, power: bool = False, mark: float | None = None,
                step: str = "sweep") -> Markup:  # fmt: skip
    """Numbers over sweeps or draws, a line for each run; `power` draws logarithms, `mark` is a dashed line."""
    shown = [
        _thinned(np.log10(np.where(line > 0, line, np.nan)) if power else np.asarray(line, float)) for line in lines
    ]
    level = [np.log10(mark) if power else mark] if mark is not None else []
    up = Scale.of(np.concatenate([*(line for _, line in shown), np.array(level, float)]), 150.0, 24.0)
    across = Scale(1.0, max(2.0, *(float(len(line)) for line in lines)), 52.0, WIDTH - 10.0)
    shapes = [*axis_below(across, 150.0, step), *axis_beside(up, 52.0, label, power)]
    if level:
        shapes.append(segment(52.0, up.at(level[0]), WIDTH - 10.0, up.at(level[0]), "frame", stroke_dasharray="5 3"))
    for k, (place, line) in enumerate(shown):
        keep = np.isfinite(line)
        width = 1.5 if len(line) <= 60 else 1.0
        shapes.append(polyline(across(place[keep]), up(line[keep]), f"l{k % SERIES}", width))
        if keep.sum() == 1:
            x, y = float(across(place[keep])[0]), float(up(line[keep])[0])
            shapes.append(shape("circle", f"f{k % SERIES}", cx=x, cy=y, r=3.0))
    return picture(WIDTH, 188.0, told, *shapes)


def _thinned(line: np.ndarray, most: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """The places and values of a line of at most so many points."""
    keep = np.unique(np.linspace(0, len(line) - 1, min(most, len(line))).astype(int)) if len(line) else np.zeros(0, int)
    return keep + 1.0, line[keep]


def _height_of(density: np.ndarray) -> float:
    """The highest of all peaks, but no more than six times the median one."""
    peaks = np.max(np.where(np.isfinite(density), density, 0.0), axis=0)
    return float(max(min(peaks.max(), 6.0 * np.median(peaks)), 1e-300))


def _bar(x: float, y: float, width: float, height: float, k: int) -> Markup:
    """A bar in the k-th colour; from the seventh on paler, so that neighbours differ."""
    fade = {"opacity": "0.55"} if (k // SERIES) % 2 else {}
    return shape(
        "rect", f"f{k % SERIES}", x=float(x), y=y, width=float(width), height=height, stroke="var(--paper)", **fade
    )


def _legend(names: Sequence[str], y: float) -> list[Markup]:
    """A mark and a name for each series, three in a row."""
    shapes = []
    for k, name in enumerate(names):
        x, line = 10.0 + 110.0 * (k % 3), y + 17.0 * (k // 3)
        mark = (
            [segment(x, line, x + 18.0, line, f"l{k % SERIES}", 3.0, stroke_dasharray=_dashes(k))] if k < SERIES else []
        )
        shapes += [*mark, words(x + 23.0, line, _cut(name, 12), "small")]
    return shapes


def _dashes(k: int) -> str | None:
    """Lines differ in more than their colour."""
    return (None, "6 3", "2 3", "9 3 2 3", "12 4", "4 2")[k % SERIES]


def _points(x: np.ndarray, y: np.ndarray) -> list[str]:
    return [f"{number(a)},{number(b)}" for a, b in zip(x, y, strict=True)]


def _cut(name: str, longest: int = LONGEST) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _room(names: Sequence[str]) -> float:
    """Pixels that labels at the left need."""
    return 20.0 + LETTER * max((len(_cut(name)) for name in names), default=1)
