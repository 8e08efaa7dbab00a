"""The model of a formula, and its data out of a frame."""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from .formula import Effects, Formula, parsed

FAMILIES = ("gaussian", "bernoulli", "poisson")
WIDE = 2.5  # sds of the outcome by which a coefficient of a column of sd one may well differ from zero


@dataclasses.dataclass(frozen=True)
class Scales:
    """Where priors are: the location and sd of the outcome (on the scale of the link), and the sds of columns."""

    location: float
    outcome: float
    columns: dict[str, float]


def mixed(formula: str, frame: Any, family: str) -> tuple[cv.Model, dict[str, Any]]:
    """The model of a formula and its data: link(E y_i) = intercept + sum_j slope_j x_ij + effects of the group of i.

    `family` is "gaussian" (sd `noise`), "bernoulli" (logistic) or "poisson" (exp). Priors follow the data: slopes
    N(0, (2.5 s_y / s_x)^2), sds of effects half-normal of s_y / s_x, where s_y is one under a link; correlations
    lkj(2). Columns of text are a column for each of their values but the first. Returns model and data. Raises
    ModelError for what is no formula or family, DataError for columns that are not there or have missing entries.
    """
    if family not in FAMILIES:
        raise cv.ModelError(f"The family is one of {', '.join(FAMILIES)}; found {family!r}.")
    asked = parsed(formula)
    outcome = _outcome(_column(frame, asked.target), asked.target, family)
    columns = _all_numbers(frame, asked.columns, asked.intercept)
    slopes = [_all_numbers(frame, effect.slopes, effect.intercept) for effect in asked.effects]
    scales = _scales(outcome, functools.reduce(operator.or_, slopes, columns), family)
    names = _names_of_parts(asked)
    model = cv.Model("mixed regression")
    row = model.plate(names["row"])
    data: dict[str, Any] = {}
    score: Any = 0.0
    if asked.intercept:
        score = model.random(names["intercept"], cv.gaussian(scales.location, sd=WIDE * scales.outcome))
    for name, values in columns.items():
        coefficient = model.random(
            f"slope of {name}", cv.gaussian(0.0, sd=WIDE * scales.outcome / scales.columns[name])
        )
        score = score + coefficient * model.input(f"column {name}", cv.real, plates=row)
        data[f"column {name}"] = values
    for effect, own in zip(asked.effects, slopes, strict=True):
        score = score + _varying(model, row, effect, own, scales, data, names["intercept"])
        data[f"group {effect.group}"] = _labels(frame, effect.group)
    if isinstance(score, float):
        raise cv.ModelError(f"{formula!r} depends on nothing. Add a column, an intercept or effects of a group.")
    if family == "gaussian":
        term = cv.gaussian(score, sd=model.random(names["noise"], cv.half_normal(2.0 * scales.outcome)))
    elif family == "bernoulli":
        term = cv.bernoulli(cv.logistic(score))
    else:
        term = cv.poisson(cv.exp(score))
    model.random(asked.target, term, plates=row)
    return model, data | {asked.target: outcome}


def _names_of_parts(asked: Formula) -> dict[str, str]:
    """What the parts of the model that are no columns are called: in parentheses where a column has that name."""
    columns = {asked.target, *asked.columns}
    columns |= {name for effect in asked.effects for name in (effect.group, *effect.slopes)}
    return {part: f"({part})" if part in columns else part for part in ("row", "intercept", "noise")}


def _varying(
    model: cv.Model,
    row: Any,
    effect: Effects,
    slopes: dict[str, np.ndarray],
    scales: Scales,
    data: dict[str, Any],
    intercept: str,
) -> Any:
    """The sum of effects of the group of each row; that of its intercept is called `intercept`."""
    group = model.plate(effect.group)
    of = model.input(f"group {effect.group}", cv.index(group), plates=row)
    parts = {intercept: None} if effect.intercept else {}
    parts |= slopes
    sds = {
        name: model.random(
            f"sd of {name} by {effect.group}", cv.half_normal(scales.outcome / scales.columns.get(name, 1.0))
        )
        for name in parts
    }
    if effect.correlated and len(parts) > 2:
        raise cv.ModelError(
            f"The effects by {effect.group!r} are {len(parts)}, {', '.join(parts)}, and this command has correlations "
            "of two at most. Write || for independent ones, or declare the model in Python."
        )
    if effect.correlated and len(parts) == 2:
        correlation = model.random(f"correlation by {effect.group}", cv.lkj(2.0))
        term = cv.vector_gaussian(np.zeros(2), covariance=cv.covariance(list(sds.values()), correlation))
        effects = model.random(f"effects by {effect.group}", term, plates=group)
        rows = [np.ones(len(next(iter(slopes.values())))) if values is None else values for values in parts.values()]
        data[f"columns by {effect.group}"] = np.stack(rows, axis=1)
        return effects[of] @ model.input(f"columns by {effect.group}", cv.vector(2), plates=row)
    total: Any = 0.0
    for name, values in parts.items():
        own = model.random(f"{name} by {effect.group}", cv.gaussian(0.0, sd=sds[name]), plates=group)
        if values is None:
            total = total + own[of]
            continue
        data[f"column {name} by {effect.group}"] = values
        total = total + own[of] * model.input(f"column {name} by {effect.group}", cv.real, plates=row)
    return total


# Columns --------------------------------------------------------------------------------------------------------------


def _column(frame: Any, name: str) -> np.ndarray:
    there = [str(column) for column in frame.columns]
    if name not in there:
        raise cv.DataError(f"The table has no column {name!r}. It has {', '.join(there)}.")
    if len(frame) == 0:
        raise cv.DataError("The table has no rows.")
    values = np.asarray(frame[name])
    missing = np.array([value is None or bool(value != value) for value in values.tolist()])
    if missing.any():
        raise cv.DataError(f"Column {name!r} has nothing in row {int(np.argmax(missing))}. Leave such rows out.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise cv.DataError(f"Column {name!r} is infinite in row {row}. Leave such rows out.")
    return values


def _all_numbers(frame: Any, names: tuple[str, ...], intercept: bool) -> dict[str, np.ndarray]:
    """The columns of numbers of these; without an intercept the first that is text has one for each of its values."""
    found: dict[str, np.ndarray] = {}
    every = not intercept
    for name in names:
        own = _numbers(frame, name, every)
        every = every and [*own] == [name]
        found |= own
    return found


def _numbers(frame: Any, name: str, every: bool) -> dict[str, np.ndarray]:
    """A column of numbers, or of text one for each value, but for the first where not for `every` one."""
    values = _column(frame, name)
    if values.dtype.kind in "biuf":
        return {name: values.astype(float)}
    levels = sorted(set(values.tolist()), key=str)
    if len(levels) > 30:
        raise cv.DataError(
            f"Column {name!r} has {len(levels)} values that are no numbers; effects of so many are those of a group: "
            f"(1 | {name})."
        )
    return {f"{name} {level}": (values == level).astype(float) for level in levels[not every :]}


def _labels(frame: Any, name: str) -> list[str]:
    return [str(value) for value in _column(frame, name).tolist()]


def _outcome(values: np.ndarray, name: str, family: str) -> np.ndarray:
    if family == "bernoulli":
        levels = sorted(set(values.tolist()), key=None if values.dtype.kind in "biuf" else str)
        if len(levels) > 2:
            raise cv.DataError(f"Column {name!r} has {len(levels)} values; under bernoulli it has two.")
        return values.astype(bool) if values.dtype.kind in "biuf" and set(levels) <= {0, 1} else values == levels[-1]
    if values.dtype.kind not in "biuf":
        raise cv.DataError(f"Column {name!r} is no column of numbers, which family {family!r} needs.")
    if family == "poisson" and ((values < 0) | (values != np.floor(values))).any():
        raise cv.DataError(f"Column {name!r} is no column of counts, 0, 1, 2, ..., which family 'poisson' needs.")
    return values.astype(int if family == "poisson" else float)


def _scales(outcome: np.ndarray, columns: dict[str, np.ndarray], family: str) -> Scales:
    sds = {name: float(values.std()) or 1.0 for name, values in columns.items()}
    if family == "gaussian":
        return Scales(float(outcome.mean()), float(outcome.std()) or 1.0, sds)
    location = float(np.log(max(outcome.mean(), 0.1))) if family == "poisson" else 0.0
    return Scales(location, 1.0, sds)
