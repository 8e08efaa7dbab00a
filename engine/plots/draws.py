"""Draws of data beside what was observed: prior and posterior predictive checks on matplotlib axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ...compiler.data.labels import labelled
from ...factors.calls import call_checked
from ...factors.errors import DataError, ModelError
from ..answers.inferred import Inferred
from ..support.asked_arguments import levels
from ..support.user_numbers import numbers
from .figure import BLUE, GREY, ORANGE, check_axes, clean, new_figure
from .shapes import ROWS, chosen, told

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draws = Mapping[str, Any]
Names = Sequence[Any] | Inferred


@overload
def plot_draws(
    draws: Draws, data: Any = None, *, interval: float = 0.9, names: Names = (), ax: None = None
) -> Figure: ...
@overload
def plot_draws(draws: Draws, data: Any = None, *, interval: float = 0.9, names: Names = (), ax: Axes) -> Axes: ...
@call_checked
def plot_draws(
    draws: Draws, data: Any = None, *, interval: float = 0.9, names: Names = (), ax: Axes | None = None
) -> Figure | Axes:
    """Draws of data with what was observed over them: a prior or posterior predictive check, to look at.

    `draws` are arrays (n, elements...) by name, of `posterior.predictive(n)`, `model.simulate(n, data)` or
    `posterior.sample(n)`. `data` are what was observed, as of `cv.infer`; a variable that it lacks is drawn alone, and
    where any of `draws` is in it only those are. One number a draw is a histogram with the observed value as a line; up
    to 40 elements are a line each, median and central `interval`, with a dot where something was observed; more are a
    band over their places, at most 1,000 of them. `names` are those of the elements, in the order of the draws, which
    is that of the plate; data with these names come into that order. They may be the posterior of the same rows, whose
    names are then taken. By default they are those of a Series' index, and draws and data are taken to be in one order,
    which they are unless the plate declared names of its own.
    Returns a matplotlib Figure with a panel for each variable, or `ax`, axes of your own, on which one is drawn. Raises
    ModelError for several variables on one `ax`, DataError for draws and data of other shapes or an `interval` outside
    (0, 1), UnsupportedError where matplotlib is not installed. Source: gelman1996posterior.
    """
    share = levels(interval, "plot_draws(interval=)")
    if share.ndim or not 0 < share < 1:
        raise DataError(f"plot_draws(interval=) is one number between 0 and 1; found {interval!r}.")
    if not isinstance(draws, Mapping) or not draws:
        raise DataError(
            "plot_draws() takes draws by name, as posterior.predictive(n) or model.simulate(n, data) returns; found "
            f"{type(draws).__name__}."
        )
    _check_names(names)
    panels = _panels(draws, {} if data is None else data, names)
    if ax is not None:
        check_axes(ax, "plot_draws()")
        if len(panels) != 1:
            raise ModelError(
                f"One variable fits on ax=; the draws are of {', '.join(panels)}. Choose one: "
                f"plot_draws({{{next(iter(panels))!r}: draws[{next(iter(panels))!r}]}}, data, ax=ax)."
            )
        _draw(ax, *next(iter(panels.items())), float(share))
        return ax
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(4.4 * columns, 3.4 * rows)
    for i, (name, panel) in enumerate(panels.items()):
        _draw(clean(figure.add_subplot(rows, columns, i + 1)), name, panel, float(share))
    return figure


Panel = tuple[np.ndarray, np.ndarray | None, tuple[str, ...]]  # draws by element, observed values, names


def _check_names(names: Names) -> None:
    if isinstance(names, Inferred):
        return
    if isinstance(names, (str, bytes)) or not isinstance(names, (Sequence, np.ndarray)) or np.ndim(names) > 1:
        raise DataError(
            f"plot_draws(names=) is a list of the names of elements, or a posterior that has them; found {names!r}."
        )


def _panels(draws: Draws, data: Any, names: Names) -> dict[str, Panel]:
    """What is drawn of each variable."""
    if not hasattr(data, "__getitem__") or not (hasattr(data, "keys") or hasattr(data, "columns")):
        raise DataError(f"plot_draws(data=) are arrays by name, or a frame; found {type(data).__name__}.")
    known = set(map(str, data.keys() if hasattr(data, "keys") else data.columns))
    chosen_names = [name for name in draws if name in known] or list(draws)
    return {name: _panel(name, draws[name], data[name] if name in known else None, names) for name in chosen_names}


def _names_of(names: Names, variable: str, number: int) -> tuple[Any, ...]:
    """What the elements of a variable are called; nothing where a posterior has no names for so many of them."""
    if not isinstance(names, Inferred):
        return tuple(names)
    marginal = names[variable]
    return tuple(marginal.elements) if marginal.has_names and marginal.mean.size == number else ()


def _panel(name: str, drawn: Any, observed: Any, asked: Names) -> Panel:
    array = numbers(np.asarray(drawn), f"The draws of {name!r} are")
    if array.ndim == 0 or not array.size:
        raise DataError(f"The draws of {name!r} are an array (n, elements...); found shape {array.shape}.")
    flat = array.reshape(len(array), -1)
    one = labelled(observed)
    values = None if observed is None else np.ravel(numbers(np.asarray(one.values), f"The data of {name!r} are"))
    if values is not None and values.size != flat.shape[1]:
        raise DataError(
            f"{name!r} has {flat.shape[1]} elements in each draw, and {values.size} were observed. Draw for the same "
            "inputs: posterior.predictive(n) without data draws what was observed anew."
        )
    labels = one.labels[0] if one.labels and one.labels[0] is not None else ()
    names = _names_of(asked, name, flat.shape[1])
    own = names or labels
    if names and len(names) != flat.shape[1]:
        raise DataError(f"names= are one for each of the {flat.shape[1]} elements of {name!r}; found {len(names)}.")
    if values is not None and len(labels) == values.size and {*map(str, names)} == {*map(str, labels)}:
        place = {str(label): n for n, label in enumerate(labels)}  # data come by name into the order of the draws
        values = values[[place[str(label)] for label in names]]
    return flat, values, tuple(map(str, own)) if len(own) == flat.shape[1] else ()


def _draw(axes: Axes, name: str, panel: Panel, interval: float) -> None:
    drawn, observed, _ = panel
    total = drawn.shape[1]
    if total == 1:
        _draw_histogram(axes, drawn[:, 0], observed)
    elif total <= ROWS:
        _draw_lines(axes, panel, interval)
    else:
        _draw_places(axes, panel, interval)
    cut = told(len(chosen(total)), total) if total > ROWS else ""
    axes.set_title(f"{name} ({cut})" if cut else name, fontsize=10)
    if observed is not None and np.isfinite(observed).any():
        axes.legend(fontsize=8, frameon=False)


def _ends(drawn: np.ndarray, interval: float) -> np.ndarray:
    """The central interval and the median of each element."""
    return np.quantile(drawn, [0.5 - 0.5 * interval, 0.5, 0.5 + 0.5 * interval], axis=0)


def _draw_histogram(axes: Axes, drawn: np.ndarray, observed: np.ndarray | None) -> None:
    axes.hist(drawn, bins=min(40, max(6, int(np.sqrt(drawn.size)))), density=True, color=BLUE, alpha=0.6)
    axes.set(xlabel="value", ylabel="density of draws")
    if observed is not None and np.isfinite(observed[0]):
        axes.axvline(observed[0], color=ORANGE, linewidth=1.6, label="observed")


def _draw_lines(axes: Axes, panel: Panel, interval: float) -> None:
    drawn, observed, names = panel
    low, middle, high = _ends(drawn, interval)
    places = np.arange(drawn.shape[1])
    axes.hlines(places, low, high, color=BLUE, linewidth=2.0, alpha=0.7)
    axes.plot(middle, places, "|", color=BLUE, markersize=7)
    if observed is not None:
        axes.plot(observed, places, "o", color=ORANGE, markersize=3.5, label="observed")
    axes.set_yticks(places, names or [str(place) for place in places], fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel=f"value: median and {interval:.0%} of draws")


def _draw_places(axes: Axes, panel: Panel, interval: float) -> None:
    drawn, observed, _ = panel
    places = chosen(drawn.shape[1])
    low, middle, high = _ends(drawn[:, places], interval)
    axes.fill_between(places, low, high, color=BLUE, alpha=0.3, linewidth=0)
    axes.plot(places, middle, color=BLUE, linewidth=1.0)
    if observed is not None:
        axes.plot(places, observed[places], ".", color=ORANGE, markersize=3, label="observed")
    axes.axhline(0.0, color=GREY, linewidth=0.4)
    axes.set(xlabel="element, in their order", ylabel=f"median and {interval:.0%} of draws")
