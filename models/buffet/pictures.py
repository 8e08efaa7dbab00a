"""Pictures of binary features: which rows have them, what they show, how chains went."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.plots.figure import BLUE, INK, PALE, clean, colour, new_figure
from ...factors.errors import DataError
from .checks import binary
from .ordering import left_ordered

TRACED = ("number_of_features", "log_joint")
MANY = 100  # names beyond which they are left out: they could not be read
MOST_TAGS = 20  # words of a feature that are written at most
LARGEST, SMALLEST = 16.0, 6.0  # sizes of words, in points


def plot_matrix(
    matrix: Any,
    *,
    rows: Sequence[Any] | None = None,
    features: Sequence[Any] | None = None,
    ordered: bool = True,
    title: str = "",
    axes: Any = None,
) -> Any:
    """Which rows have which features, dark where they have, in the left-ordered form.

    Args:
        matrix: (rows, features) of zeros and ones, such as `features_ > 0.5` of an estimator.
        rows, features: their names, written where there are at most 100; features are 1, 2, ... by default.
        ordered: whether columns are sorted: read as binary numbers, the first row the most significant bit, they
            decrease. Else they stand as they are.
        title: of the picture.
        axes: matplotlib axes to draw on; by default those of a new figure.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: other entries than 0 and 1, or another number of names. UnsupportedError: matplotlib is absent.

    Source: griffiths2011indian.
    """
    values = binary(matrix)
    order = left_ordered(values).order if ordered else np.arange(values.shape[1])
    labels = _names(features, values.shape[1], "features")
    if axes is None:
        width = 1.5 + 0.18 * values.shape[1]
        axes = new_figure(float(np.clip(width, 2.5, 12.0)), 5.0).add_subplot()
    axes.imshow(values[:, order], aspect="auto", interpolation="nearest", cmap=_shades(), vmin=0.0, vmax=1.0)
    _write(axes.xaxis, [labels[k] for k in order])
    _write(axes.yaxis, _names(rows, len(values), "rows") if rows is not None else [])
    axes.set_xlabel("feature", fontsize=9)
    axes.set_ylabel("row", fontsize=9)
    axes.set_title(title, fontsize=10)
    return axes.figure


def plot_features(
    components: Any,
    shape: tuple[int, int],
    *,
    features: Sequence[Any] | None = None,
    columns: int = 6,
    title: str = "",
) -> Any:
    """What features show, each an image; blue is below zero, orange above, on one scale.

    Args:
        components: (features, height x width), such as `components_` of an estimator; or means of rows.
        shape: height and width of an image, its pixels row by row.
        features: names, by default 1, 2, ...
        columns: images side by side.
        title: of the picture.

    Returns:
        The matplotlib Figure, with axes for each image.

    Raises:
        DataError: a shape that is not that of the images, no feature, or another number of names. UnsupportedError:
            matplotlib is absent.
    """
    values = _table(components, "Components")
    height, width = shape
    if values.shape[1] != height * width:
        raise DataError(f"Images of {height} x {width} have {height * width} pixels; found {values.shape[1]} columns.")
    names, columns = _names(features, len(values), "features"), min(columns, len(values))
    lines = -(-len(values) // columns)
    figure = new_figure(1.3 * columns, 1.3 * lines * height / width + 0.3 * lines + 0.3)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    size = float(np.abs(values).max()) or 1.0
    for axes, value, name in itertools.zip_longest(panels, values, names):
        axes.set_axis_off()
        if value is not None:
            axes.imshow(value.reshape(shape), cmap=_signed(), vmin=-size, vmax=size, interpolation="nearest")
            axes.set_title(name, fontsize=8)
    figure.suptitle(title, fontsize=10)
    return figure


def plot_traces(chains: Any, names: Sequence[str] = TRACED, *, title: str = "") -> Any:
    """Numbers along the draws of chains, a panel for each number and a line for each chain.

    Args:
        chains: what `sample_features` gave, or `chains_` of an estimator.
        names: of numbers that draws have, such as "mass"; "log_joint" is of data and matrix given all else.
        title: of the picture.

    Returns:
        The matplotlib Figure.

    Raises:
        DataError: a name of nothing that is one number in each draw. UnsupportedError: matplotlib is absent.
    """
    figure = new_figure(6.0, 1.6 * len(names) + 0.4)
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, names, strict=True):
        try:
            drawn: Any = np.asarray(chains[name], float)
        except KeyError:
            drawn = np.zeros(0)
        if drawn.ndim != 2:
            raise DataError(f"A trace is of one number in each draw; {name!r} is none. Ask for 'mass', for instance.")
        for i, line in enumerate(drawn):
            clean(axes).plot(
                np.arange(1, drawn.shape[1] + 1), line, color=colour(i), linewidth=1.0, label=f"chain {i + 1}"
            )
        axes.set_ylabel(name.replace("_", " "), fontsize=8)
    panels[-1].set_xlabel("draw", fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def plot_tags(
    components: Any,
    words: Sequence[Any],
    *,
    features: Sequence[Any] | None = None,
    most: int = MOST_TAGS,
    columns: int = 3,
    title: str = "",
) -> Any:
    """The words of each feature as a cloud: the larger a word, the larger its value.

    Args:
        components: (features, words), such as `components_` of an estimator; words of values that are not positive are
            left out.
        words: names of the columns, such as `feature_names_in_`.
        features: names, by default 1, 2, ...
        most: words of a feature at most, those of the largest values.
        columns: clouds side by side.
        title: of the picture.

    Returns:
        The matplotlib Figure, with axes for each cloud.

    Raises:
        DataError: no feature, or another number of names. UnsupportedError: matplotlib is absent.
    """
    values = _table(components, "Components")
    words, names = _names(words, values.shape[1], "words"), _names(features, len(values), "features")
    columns = min(columns, len(values))
    lines = -(-len(values) // columns)
    figure = new_figure(2.8 * columns, 1.9 * lines + 0.3, constrained=False)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.88, wspace=0.05, hspace=0.3)
    for axes, value, name in itertools.zip_longest(panels, values, names):
        axes.set_axis_off()
        if value is not None:
            axes.set_title(name, fontsize=9)
            _cloud(axes, value, words, most)
    figure.suptitle(title, fontsize=10)
    return figure


def _cloud(axes: Any, value: np.ndarray, words: Sequence[str], most: int) -> None:
    """Words in lines, the largest first; what does not fit is left out."""
    order = [k for k in np.argsort(-value, kind="stable")[:most] if value[k] > 0.0]
    wide, high = (
        72.0 * size for size in axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted()).size
    )
    x, y, line = 0.0, 0.0, 0.0
    for k in order:
        size = SMALLEST + (LARGEST - SMALLEST) * float(value[k] / value[order[0]])
        width = 0.62 * size * (len(words[k]) + 1)  # letters are about .6 of their size wide
        if x > 0.0 and x + width > wide:
            x, y, line = 0.0, y + line, 0.0
        line = max(line, 1.3 * size)
        if y + line > high:
            break
        axes.text(x / wide, 1.0 - y / high, words[k], fontsize=size, color=INK, va="top", transform=axes.transAxes)
        x += width


def _table(values: Any, what: str) -> np.ndarray:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 2 or 0 in found.shape:
        raise DataError(f"{what} are (features, columns), at least one of each; found the shape {found.shape}.")
    return found


def _names(names: Sequence[Any] | None, number: int, what: str) -> list[str]:
    """Words, by default 1, 2, ...; DataError for another number of them."""
    found = [str(i + 1) for i in range(number)] if names is None else [str(name) for name in names]
    if len(found) != number:
        raise DataError(f"There are {number} {what}, each with a name; found {len(found)} names.")
    return found


def _write(axis: Any, names: Sequence[str]) -> None:
    """Names at the ticks, where there are few enough."""
    few = 0 < len(names) <= MANY
    axis.set_ticks(np.arange(len(names)) if few else [], list(names) if few else [])
    size = float(np.clip(250.0 / max(len(names), 1), 4.0, 8.0))
    axis.set_tick_params(length=0, labelsize=size, rotation=90 if axis.axis_name == "x" and few else 0)


def _shades() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("has", [PALE, BLUE])


def _signed() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("signed", [BLUE, "white", colour(1)])
