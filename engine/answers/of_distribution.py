"""What a distribution is asked beyond its moments: the probability of a statement, the narrowest interval, the mode.

All three look along the quantiles, so that they are the same for every family; where a mode has a closed form, that is
taken.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ...factors.conditionals.beliefs import below
from ...factors.errors import DataError, UnsupportedError
from ...factors.families import DiscreteFamily, Family, Point
from ...factors.switches import double_precision
from ..distributions.cases import Projected
from ..distributions.partly_observed import Completed
from ..distributions.weighted_draws import WeightedDraws
from ..support import asked_families as asked
from ..support.compiled import compiled

Statement = Callable[[Any], Any]  # of values, as an array, element by element: whether it holds

EVENT_AXES = {"vector": 1, "simplex": 1, "matrix": 2, "posdef": 2}  # of a value, by the kind of its domain
LEVELS = 2001
HALVINGS = 60
DRAWS = 20_000  # of what has no order
# Of evenly spread values of a standard normal number.
_AT = np.array([0.5 * math.erfc(-score / math.sqrt(2.0)) for score in np.linspace(-8.0, 8.0, LEVELS)])
_below = compiled("distribution function", (), below)


# The probability of a statement ---------------------------------------------------------------------------------------


@functools.singledispatch
def chance(distribution: Any, statement: Statement) -> Float[np.ndarray, "*plates"]:
    """P(statement(X)), element by element: the mass between the values where the statement turns true or false."""
    try:
        values = np.asarray(distribution.quantile(_AT))
    except UnsupportedError:  # values without an order
        return _by_draws(distribution, statement)
    if _about_wholes(statement, values, EVENT_AXES.get(getattr(distribution, "kind", ""), 0)):
        return _by_draws(distribution, statement)
    holds = held(statement, values)
    first, last = values[:-1], values[1:]
    turns = holds[1:] != holds[:-1]
    some = turns.reshape(len(turns), -1).any(axis=1)
    low, high, before = first[some].astype(float), last[some].astype(float), holds[:-1][some]
    whole = getattr(distribution, "kind", "") == "count"
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        middle = np.floor(middle) if whole else middle
        same = held(statement, middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    with double_precision():
        up_to = np.asarray(_below(distribution, low)) if len(low) else np.zeros(low.shape)
    signs = np.where(turns[some], np.where(before, 1.0, -1.0), 0.0)
    return np.clip(holds[-1] + np.sum(signs * up_to, axis=0), 0.0, 1.0)


@chance.register
def _(distribution: Point, statement: Statement) -> np.ndarray:
    return held(statement, np.asarray(distribution.value)[None])[0].astype(float)


@chance.register
def _(distribution: DiscreteFamily, statement: Statement) -> np.ndarray:
    table = np.moveaxis(np.asarray(asked.states(distribution)), -1, 0)
    numbers = np.arange(len(table)).reshape(-1, *(1,) * (table.ndim - 1))
    values = numbers > 0 if distribution.kind == "boolean" else numbers
    return np.sum(np.where(held(statement, np.broadcast_to(values, table.shape)), table, 0.0), axis=0)


@chance.register
def _(distribution: WeightedDraws, statement: Statement) -> np.ndarray:
    event = EVENT_AXES.get(distribution.kind, 0)
    return _share(np.asarray(distribution.values), statement, event, np.asarray(distribution.weights))


@chance.register
def _(distribution: Completed, statement: Statement) -> np.ndarray:
    known = held(statement, np.asarray(distribution.value)[None])[0].astype(float)
    return np.where(np.asarray(distribution.missing), chance(distribution.predicted, statement), known)


@chance.register
def _(distribution: Projected, statement: Statement) -> np.ndarray:
    return chance(distribution.own, statement)


def _about_wholes(statement: Statement, values: np.ndarray, event: int) -> bool:
    """Whether what is said is said of vectors, not of their coordinates."""
    found = np.asarray(statement(values)) if callable(statement) and event else np.zeros(())
    return event > 0 and found.shape == values.shape[: values.ndim - event]


def _by_draws(distribution: Family, statement: Statement) -> np.ndarray:
    draws = asked.sample((DRAWS,))(distribution, np.array([0, 0], np.uint32))
    return _share(np.asarray(draws), statement, EVENT_AXES.get(getattr(distribution, "kind", ""), 0))


def _share(draws: np.ndarray, statement: Statement, event: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Of draws, (draws, plates, event): of vectors the statement may be about each as a whole."""
    if not callable(statement):
        return held(statement, draws)
    holds = np.asarray(_asked(statement, draws))
    if holds.dtype != bool or holds.shape not in (draws.shape, draws.shape[: draws.ndim - event]):
        raise DataError(_no_statement(holds, draws.shape))
    return np.average(holds, axis=0, weights=weights)


def _asked(statement: Statement, values: np.ndarray) -> Any:
    """What a statement says of values; DataError where it takes no array."""
    try:
        return statement(values)
    except (TypeError, ValueError) as problem:
        raise DataError(
            f"prob(): the function was given an array of shape {values.shape}, and takes none ({problem}). Write it "
            "for arrays, such as lambda v: (v > 0) & (v < 1)."
        ) from problem


def held(statement: Statement, values: np.ndarray) -> Bool[np.ndarray, "*shape"]:
    """Whether the statement holds, for each value; DataError where it is none about single values."""
    if not callable(statement):
        raise DataError(f"prob() takes a function of values, such as lambda v: v > 0; found {statement!r}.")
    found = np.asarray(_asked(statement, values))
    if found.dtype != bool or found.shape != values.shape:
        raise DataError(_no_statement(found, values.shape))
    return found


def _no_statement(found: np.ndarray, shape: tuple[int, ...]) -> str:
    return (
        "prob() takes a function that says of each value of an array whether something holds, such as lambda v: "
        f"(v > 0) & (v < 1); for values of shape {shape} this one gives {found.dtype} of shape {found.shape}."
    )


# The narrowest interval -----------------------------------------------------------------------------------------------


def narrowest(distribution: Any, probability: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the narrowest interval between two quantiles that has this probability, element by element.

    Among a thousand lower tails, and where there is one element among a thousand more around the best.
    """
    outside = 1.0 - probability
    low, high = np.zeros(()), np.asarray(outside)
    for _ in range(2):
        tails = np.linspace(low, high, LEVELS // 2)
        # Not the ends of the support where these are infinite: these intervals have no width to compare.
        tails = np.clip(tails, 1e-12, max(outside - 1e-12, 1e-12))
        ends = np.asarray(distribution.quantile(np.stack([tails, tails + probability])))
        if ends.dtype == bool:
            raise UnsupportedError("True and false have no interval between them. Their probability is `mean`.")
        best = np.argmin(ends[1] - ends[0], axis=0)
        if best.size > 1:
            break
        place = int(best.reshape(()))
        low, high = tails[max(place - 1, 0)], tails[min(place + 1, len(tails) - 1)]
    found = np.take_along_axis(ends, best[None, None], axis=1)[:, 0]
    return found[0], found[1]


# The mode -------------------------------------------------------------------------------------------------------------


@functools.singledispatch
def mode(distribution: Any) -> np.ndarray:
    """The value of the highest density, element by element: as the family knows it, or found along the quantiles."""
    if hasattr(distribution, "mode"):
        return np.asarray(asked.mode(distribution))
    values = np.asarray(distribution.quantile(_AT[:: (LEVELS - 1) // 400]))
    heights = _heights(distribution, values)
    best = np.argmax(heights, axis=0)[None]
    low, high = (
        np.take_along_axis(values, np.clip(best + step, 0, len(values) - 1), axis=0)[0].astype(float)
        for step in (-1, 1)
    )
    if getattr(distribution, "kind", "") == "count":
        return np.take_along_axis(values, best, axis=0)[0]
    for _ in range(HALVINGS):
        third = (high - low) / 3.0
        left, right = low + third, high - third
        heights = _heights(distribution, np.stack([left, right]))
        low, high = np.where(heights[0] < heights[1], left, low), np.where(heights[0] < heights[1], high, right)
    return 0.5 * (low + high)


def _heights(distribution: Family, values: np.ndarray) -> np.ndarray:
    with double_precision():
        found = np.asarray(asked.log_density(distribution, values))
    return np.where(np.isnan(found), -np.inf, found)


@mode.register
def _(distribution: Point) -> np.ndarray:
    return np.asarray(distribution.value)


@mode.register
def _(distribution: Projected) -> np.ndarray:
    return mode(distribution.own)


@mode.register
def _(distribution: Completed) -> np.ndarray:
    predicted = mode(distribution.predicted)
    missing = np.asarray(distribution.missing)
    return np.where(
        missing.reshape(missing.shape + (1,) * (predicted.ndim - missing.ndim)), predicted, distribution.value
    )
