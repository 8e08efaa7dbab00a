"""How many categories and features so many rows have: counts alone, drawn without their matrices.

Given L categories the number of features is Poisson(`mass H_L`). With N rows there are some `log N` categories, so some
`log log N` features: as `H_L <= 1 + log(1 + L)`, which is concave, on average at most `mass (1 + log(1 + E[L]))`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....engine.mcmc.keys import generator
from ....factors.arrays import Key
from ....factors.errors import ModelError
from ..checks import whole
from ..prior import harmonic
from .dp_ibp import DpIbp
from .ibp_ibp import IbpIbp

CHUNK = 4096  # rows that are drawn at once


class Growth(NamedTuple):
    """A table with a line for each number of rows.

    Attributes:
        rows: (lines,) numbers of rows.
        categories: (lines,) their expected number, exactly.
        features: (lines,) the mean number of features over draws.
        error: (lines,) its standard error.
        bound: (lines,) `mass (1 + log(1 + categories))`, which the expected number of features is below.
    """

    rows: np.ndarray
    categories: np.ndarray
    features: np.ndarray
    error: np.ndarray
    bound: np.ndarray


def growth(law: DpIbp | IbpIbp, rows: Sequence[int], draws: int, key: Key) -> Growth:
    """The numbers of categories and of features on their menus, for more and more rows.

    Args:
        law: the prior, all of its numbers given.
        rows: numbers of rows, increasing.
        draws: how many independent sequences of rows.
        key: a key of `jax.random`.

    Returns:
        The table.

    Raises:
        ModelError: numbers of the prior that are learned, or numbers of rows that do not increase.

    Source: doshivelez2009correlated.
    """
    lines = [whole("rows", each) for each in rows]
    if not lines or any(later <= earlier for earlier, later in itertools.pairwise(lines)):
        raise ModelError(f"growth(rows=): give numbers of rows that increase; found {list(rows)}.")
    learned = [field.name for field in dataclasses.fields(law) if isinstance(getattr(law, field.name), tuple)]
    if learned:
        raise ModelError(f"growth is of a prior whose numbers are given; {' and '.join(learned)} of {law} are learned.")
    random, draws = generator(key), whole("draws", draws)
    categories, features = np.zeros(draws, int), np.zeros(draws, int)
    means, squares, before = [], [], 0
    for line in lines:
        now = categories + _new_categories(law, before, line, draws, random)
        features = features + random.poisson(law.mass * (_harmonics(now) - _harmonics(categories)))
        means.append(features.mean())
        squares.append(features.var())
        categories, before = now, line
    expected = np.array([expected_categories(law, line) for line in lines])
    bound = law.mass * (1.0 + np.log1p(expected))
    return Growth(np.array(lines), expected, np.array(means), np.sqrt(np.array(squares) / draws), bound)


def expected_categories(law: DpIbp | IbpIbp, rows: int) -> float:
    """Of so many rows: `sum of c / (c + i)` over i = 0 .. rows - 1 of concentration c, or `category_mass H_rows`."""
    if isinstance(law, IbpIbp):
        return float(law.category_mass) * harmonic(rows)  # pyright: ignore[reportArgumentType]
    return harmonic(rows, float(law.concentration))  # pyright: ignore[reportArgumentType]


def _new_categories(law: DpIbp | IbpIbp, before: int, rows: int, draws: int, random: np.random.Generator) -> np.ndarray:
    """(draws,) how many categories appear first in the rows from `before` on."""
    if isinstance(law, IbpIbp):
        return random.poisson(expected_categories(law, rows) - expected_categories(law, before), draws)
    found = np.zeros(draws, int)
    for begin in range(before, rows, CHUNK):
        i = np.arange(begin, min(begin + CHUNK, rows))
        found += np.sum(random.random((draws, len(i))) * (law.concentration + i) < law.concentration, axis=1)
    return found


def _harmonics(numbers: np.ndarray) -> np.ndarray:
    """`1 + 1 / 2 + ... + 1 / n` of each."""
    return np.append(0.0, np.cumsum(1.0 / np.arange(1, numbers.max() + 1)))[numbers]
