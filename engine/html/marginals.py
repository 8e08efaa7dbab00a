"""Marginals as pictures and tables: densities of few numbers, intervals of many, bars of discrete variables."""

from __future__ import annotations

import numpy as np

from ...factors.errors import UnsupportedError
from ...factors.families import DiscreteFamily, Point
from ..answers.marginal import Marginal
from ..distributions.cases import title
from ..plots.shapes import (
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
from . import charts
from .escape import Markup, joined, tag
from .styles import part
from .svg import figure
from .tables import table

INTERVAL = 0.9


def html_of_marginal(marginal: Marginal) -> str:
    """A marginal in a notebook."""
    named = tag("p", marginal.name or "marginal", class_="name")
    return part(named, tag("p", in_words(marginal)), drawn(marginal, marginal.name), numbers(marginal, marginal.name))


def in_words(marginal: Marginal) -> str:
    """Its family and shape, and what stands between it and the exact marginal."""
    size = " x ".join(map(str, marginal.shape))
    note = f" {marginal.note}" if marginal.note else ""
    return f"{title(marginal.distribution)}, {f'of shape {size}' if size else 'one number'}.{note}"


def drawn(marginal: Marginal, name: str) -> Markup:
    """Its picture; "" of points and of what has no numbers to draw."""
    if isinstance(marginal.family, Point) or not marginal.mean.size:
        return Markup("")
    if isinstance(marginal.family, DiscreteFamily):
        return _probabilities(marginal, name)
    middle, (low, high) = np.ravel(marginal.mean), intervals(marginal, INTERVAL)
    names, label = _elements(marginal), f"mean and {INTERVAL:.0%} interval"
    if middle.size <= CURVES and has_quantiles(marginal):
        seen = f"Densities of {name}, with means {_some(names, middle)}"
        return figure(charts.curves(*density_curves(marginal), low, high, names, seen), f"Shaded: {INTERVAL:.0%}.")
    seen = f"Means and {INTERVAL:.0%} intervals of {name}: {_some(names, middle)}"
    if middle.size <= ROWS:
        return figure(charts.forest(middle, low, high, names, seen, label))
    places = chosen(middle.size)
    chart = charts.ribbon(places, middle[places], low[places], high[places], seen, label)
    return figure(chart, f"Elements in their order: {told(len(places), middle.size) or f'all {middle.size:,}'}.")


def _probabilities(marginal: Marginal, name: str) -> Markup:
    probability, values = class_probabilities(marginal, marginal.family.kind == "boolean")
    shown, names = probability[:ROWS], _elements(marginal)
    seen = f"Probabilities of the values of {name}: the largest are {_some(names, shown.max(axis=1))}"
    cut = "" if len(shown) == len(probability) else f"The first {ROWS} of {len(probability):,} elements."
    return figure(charts.shares(shown, values, names, seen), cut)


def numbers(marginal: Marginal, name: str) -> Markup:
    """Its numbers as a table: mean, sd and interval, or the probability of each value."""
    names = _elements(marginal)
    if isinstance(marginal.family, DiscreteFamily):
        probability, values = class_probabilities(marginal, marginal.family.kind == "boolean")
        rows = [[label, *map(float, row[:12])] for label, row in zip(names, probability, strict=False)]
        more = "" if len(values) <= 12 else f", the first 12 of {len(values)} values"
        heads = ["element", *(f"P({value})" for value in values[:12])]
        return table(f"Probabilities of {name}{more}", heads, rows, len(probability))
    mean, sd = np.ravel(np.asarray(marginal.mean, float)), np.ravel(marginal.sd)
    columns = zip(mean, sd, *intervals(marginal, INTERVAL), strict=True)
    rows = [[label, *map(float, row)] for label, row in zip(names, columns, strict=False)]
    return table(f"Numbers of {name}", ["element", "mean", "sd", "5 %", "95 %"], rows, mean.size)


def section(name: str, marginal: Marginal) -> Markup:
    """A marginal as a part of a report; what has no picture tells why."""
    try:
        picture, rows = drawn(marginal, name), numbers(marginal, name)
    except UnsupportedError as reason:
        return tag("p", str(reason))
    return joined(tag("p", in_words(marginal)), tag("div", picture, rows, class_="row"))


def _elements(marginal: Marginal) -> list[str]:
    """What the first elements are called; of a discrete variable those of its plates."""
    classes = isinstance(marginal.family, DiscreteFamily) and marginal.family.kind != "boolean"
    shape = marginal.shape[:-1] if classes else marginal.shape
    names = element_names(marginal, shape, range(min(ROWS, int(np.prod(shape)))))
    return [name or "value" for name in names] if marginal.has_names else [f"[{n}]" if n else "value" for n in names]


def _some(names: list[str], values: np.ndarray) -> str:
    some = ", ".join(f"{name} {value:.3g}" for name, value in zip(names[:6], values, strict=False))
    return some + (", ..." if len(values) > 6 else "")
