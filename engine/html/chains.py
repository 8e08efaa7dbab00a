"""Draws of Markov chains in a notebook: a table of their numbers, and the lines of the chains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from . import charts
from .escape import Markup, joined, tag
from .styles import part
from .svg import figure
from .tables import ROWS, folded, table, text_block

LINES = 4  # numbers whose chains are drawn
CHAINS = 6  # chains of each that are drawn


def html_of_chains(
    draws: Mapping[str, np.ndarray],
    weights: np.ndarray | None,
    rhat: Mapping[str, np.ndarray],
    explained: str,
    told: str,
) -> str:
    """Chains in a notebook: `draws` are (chains, draws, plates..., event...), `rhat` plates + event.

    `weights` are those of weighted draws, (chains, draws), which sum to one.
    """
    rows, total = list(_rows(draws, weights, rhat)), sum(int(np.prod(array.shape[2:])) for array in draws.values())
    heads = ["number", "mean", "sd", "5 %", "50 %", "95 %", "R-hat"]
    return part(
        tag("p", "Draws of Markov chains", class_="name"),
        tag("p", told),
        table("Draws of all chains together", heads, rows, total),
        folded("How the chains went", lines(draws)),
        folded("How each variable was drawn", text_block(explained, "Steps of a sweep")),
    )


def lines(draws: Mapping[str, np.ndarray]) -> Markup:
    """The first numbers over the draws of each chain."""
    shown = []
    for (name, chains), _ in zip(_numbers(draws), range(LINES), strict=False):
        told = f"{name} over {chains.shape[1]} draws of {chains.shape[0]} chains, mean {chains.mean():.4g}"
        shown.append(figure(charts.over_sweeps(list(chains[:CHAINS]), told, name, step="draw"), name))
    more = f" Of more than {CHAINS} chains the first {CHAINS}." if _most(draws) > CHAINS else ""
    note = tag("p", f"The first {LINES} numbers, a line for each chain.{more}", class_="quiet")
    return joined(note, tag("div", *shown, class_="row"))


def _most(draws: Mapping[str, np.ndarray]) -> int:
    return max((len(array) for array in draws.values()), default=0)


def _numbers(draws: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Each number by name and place, as (chains, draws)."""
    for name, array in draws.items():
        flat = np.asarray(array, float).reshape(*array.shape[:2], -1)
        for i, place in enumerate(islice(np.ndindex(*array.shape[2:]), ROWS + 1)):
            yield f"{name}[{', '.join(map(str, place))}]" if place else name, flat[:, :, i]


def _rows(
    draws: Mapping[str, np.ndarray], weights: np.ndarray | None, rhat: Mapping[str, np.ndarray]
) -> Iterator[list[object]]:
    """At most as many rows as a table shows, and one more."""
    factors = (value for name in draws for value in np.ravel(rhat[name])[: ROWS + 1])
    for (name, chains), factor, _ in zip(_numbers(draws), factors, range(ROWS + 1), strict=False):
        values, shares = chains.ravel(), None if weights is None else weights.ravel()
        mean = np.average(values, weights=shares)
        sd = np.sqrt(np.average((values - mean) ** 2, weights=shares))
        quantiles = np.quantile(values, [0.05, 0.5, 0.95], weights=shares, method="inverted_cdf")
        yield [name, *map(float, (mean, sd, *quantiles, factor))]
