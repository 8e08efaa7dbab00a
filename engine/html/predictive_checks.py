"""Predictive checks: what was observed beside data sets that the model draws given its posterior.

Where the observed line leaves the band, the model does not make data like these. Source: gelman1996posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...factors.errors import CavityError
from ..answers.inferred import Inferred
from . import charts
from .data import present
from .escape import Markup, joined, tag
from .svg import figure
from .tables import table

Draws = Mapping[str, np.ndarray]
SHOWN = 12  # observed variables
BAND = (0.05, 0.95)
VALUES = 24  # of a discrete variable
MOST, FEWEST = 20_000_000, 20  # numbers that are drawn, and data sets below which nothing is told
STATISTICS: Mapping[str, Callable[..., np.ndarray]] = {
    "mean": np.mean,
    "sd": np.std,
    "lowest": np.min,
    "highest": np.max,
}


def predictive_checks(posterior: Inferred, drawn: Callable[[int], Draws], count: int) -> Markup:
    """A picture and a table for each observed variable; a sentence where no data sets can be drawn.

    `drawn` draws so many data sets, `count` is how many are asked for: of large data there are fewer.
    """
    names = [name for name in posterior.observed if name in {**posterior.model.randoms, **posterior.model.lets}]
    if not names:
        return tag("p", "Nothing was observed that the model could draw anew.")
    room = MOST // max(1, sum(posterior.observed[name].size for name in names))
    if room < FEWEST:
        return tag("p", "The data are so many that no data sets like them are drawn here: see posterior.predictive().")
    try:
        draws = drawn(min(count, room))
    except CavityError as reason:
        return tag("p", f"No data sets could be drawn: {reason}")
    known = [name for name in names if name in draws]
    shown = [_check(posterior, name, draws[name]) for name in known[:SHOWN]]
    cut = tag("p", f"The first {SHOWN} of {len(known)} observed variables.") if len(known) > SHOWN else ""
    return joined(*shown, cut)


def _check(posterior: Inferred, name: str, draws: np.ndarray) -> Markup:
    missing = posterior.binding.missing.get(name)
    observed = present(posterior.observed[name], missing)
    if not observed.size:
        return tag("p", f"All of {name} is missing.")
    others = np.stack([present(one, missing) for one in np.asarray(draws)])
    node = {**posterior.model.randoms, **posterior.model.lets}[name]
    if node.domain.is_boolean or node.domain.is_category:
        drawn = _shares(name, observed, others, node.domain.is_boolean)
    else:
        drawn = _histogram(name, observed, others)
    return joined(tag("h3", name), tag("div", drawn, _statistics(name, observed, others), class_="row"))


def _histogram(name: str, observed: np.ndarray, others: np.ndarray) -> Markup:
    """Shares of values in bins that hold what was observed and most of what was drawn."""
    far = np.quantile(others, [0.005, 0.995])
    low, high = min(observed.min(), far[0]), max(observed.max(), far[1])
    count = int(np.clip(np.sqrt(observed.size), 6, 30))
    edges = np.linspace(low, high, count + 1) if high > low else np.array([low - 0.5, low + 0.5])
    share = np.histogram(observed, edges)[0] / observed.size
    drawn = np.stack([np.histogram(one, edges)[0] / one.size for one in others])
    ends = np.quantile(drawn, BAND, axis=0)
    told = f"Histogram of {name} as observed, over the band of {len(others)} drawn data sets: {_outside(share, ends)}"
    chart = charts.band(edges, share, ends[0], ends[1], told)
    return figure(chart, "Line: observed. Band: 90 % of the drawn data sets.")


def _shares(name: str, observed: np.ndarray, others: np.ndarray, boolean: bool) -> Markup:
    """The share of each value."""
    values = np.unique(np.concatenate([observed, np.unique(others)]))[:VALUES]
    share = np.array([np.mean(observed == value) for value in values])
    ends = np.quantile(np.stack([np.mean(others == value, axis=1) for value in values], axis=1), BAND, axis=0)
    told = f"Share of each value of {name}, over the interval of {len(others)} drawn data sets: {_outside(share, ends)}"
    names = [str(bool(value)).lower() if boolean else f"{value:g}" for value in values]
    chart = charts.counts(share, ends[0], ends[1], names, told)
    return figure(chart, "Dot: observed. Bar: 90 % of the drawn data sets.")


def _outside(share: np.ndarray, ends: np.ndarray) -> str:
    count = int(np.sum((share < ends[0]) | (share > ends[1])))
    return f"{count} of {len(share)} observed shares lie outside"


def _statistics(name: str, observed: np.ndarray, others: np.ndarray) -> Markup:
    rows = []
    for label, statistic in STATISTICS.items():
        value, drawn = float(statistic(observed)), statistic(others, axis=1)
        low, high = np.quantile(drawn, BAND)
        at_least = float(np.mean(drawn > value) + 0.5 * np.mean(drawn == value))
        rows.append([label, value, float(low), float(high), at_least])
    heads = ["statistic", "observed", "5 % drawn", "95 % drawn", "share above"]
    return table(f"{name} and {len(others)} drawn data sets", heads, rows)
