"""Marginals as pictures and tables: densities of few numbers, intervals of many, bars of discrete variables."""

from __future__ import annotations

import numpy as np

from ...factors.errors import UnsupportedError
from ...factors.families import DiscreteFamily, Point
from ..answers.marginal import Marginal
from ..distributions.cases import title
from ..plots.shapes import CURVES, SHOWN, class_probabilities, density_curves, has_quantiles, intervals, labels
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
    names, size = _elements(marginal), marginal.mean.size
    if isinstance(marginal.family, DiscreteFamily):
        mean = np.asarray(marginal.mean)
        probability, values = class_probabilities(mean, marginal.family.kind == "boolean")
        shown = probability[:SHOWN]
        told = f"Probabilities of the values of {name}: {_some(names, shown.max(axis=1))}"
        chart = charts.shares(shown, values, names[: len(shown)], told)
        return figure(chart, _cut_to(len(shown), len(probability)))
    low, high = (end[:SHOWN] for end in intervals(marginal, INTERVAL))
    middle = np.ravel(marginal.mean)[:SHOWN]
    if size <= CURVES and has_quantiles(marginal):
        told = f"Densities of {name}, with means {_some(names, middle)}"
        return figure(charts.curves(*density_curves(marginal), low, high, names, told), f"Shaded: {INTERVAL:.0%}.")
    told = f"Means and {INTERVAL:.0%} intervals of {name}: {_some(names, middle)}"
    label = f"mean and {INTERVAL:.0%} interval"
    return figure(charts.forest(middle, low, high, names, told, label), _cut_to(len(middle), size))


def numbers(marginal: Marginal, name: str) -> Markup:
    """Its numbers as a table: mean, sd and interval, or the probability of each value."""
    names = _elements(marginal)
    if isinstance(marginal.family, DiscreteFamily):
        probability, values = class_probabilities(np.asarray(marginal.mean), marginal.family.kind == "boolean")
        rows = [[label, *map(float, row[:12])] for label, row in zip(names, probability, strict=False)]
        more = "" if len(values) <= 12 else f", the first 12 of {len(values)} values"
        heads = ["element", *(f"P({value})" for value in values[:12])]
        return table(f"Probabilities of {name}{more}", heads, rows, len(probability))
    mean, sd = np.ravel(np.asarray(marginal.mean, float)), np.ravel(marginal.sd)
    columns = [mean[:SHOWN], sd[:SHOWN], *(end[:SHOWN] for end in intervals(marginal, INTERVAL))]
    rows = [[label, *map(float, row)] for label, row in zip(names, zip(*columns, strict=True), strict=False)]
    return table(f"Numbers of {name}", ["element", "mean", "sd", "5 %", "95 %"], rows, mean.size)


def section(name: str, marginal: Marginal) -> Markup:
    """A marginal as a part of a report; what has no picture tells why."""
    try:
        picture, rows = drawn(marginal, name), numbers(marginal, name)
    except UnsupportedError as reason:
        return tag("p", str(reason))
    return joined(tag("p", in_words(marginal)), tag("div", picture, rows, class_="row"))


def _elements(marginal: Marginal) -> list[str]:
    """The places of elements; of a discrete variable those of its plates."""
    discrete = isinstance(marginal.family, DiscreteFamily) and marginal.family.kind != "boolean"
    shape = marginal.shape[:-1] if discrete else marginal.shape
    return [f"[{place}]" if place else "value" for place in labels(shape)]


def _some(names: list[str], values: np.ndarray) -> str:
    told = ", ".join(f"{name} {value:.3g}" for name, value in zip(names[:6], values, strict=False))
    return told + (", ..." if len(values) > 6 else "")


def _cut_to(shown: int, total: int) -> str:
    return "" if shown == total else f"The first {shown} of {total:,} elements."
