"""Posteriors as tables: pandas data frames of marginals or draws, and xarray data sets of draws."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ...factors.errors import UnsupportedError
from ...factors.families import Point
from ..distributions.partly_observed import Completed
from .inferred import Inferred, axes_of
from .marginal import Axis, Marginal

LEVELS = (0.05, 0.5, 0.95)
Table = Any  # a pandas DataFrame, or a data set of xarray


def frame_of_marginals(posterior: Mapping[str, Marginal]) -> Table:
    """A row for each number that was inferred: mean, sd and quantiles, NaN where values have no order."""
    pandas = _loaded("pandas", "to_frame()")
    names, rows = [], []
    for name, marginal in posterior.items():
        if not isinstance(marginal.family, (Point, Completed)):
            names += [f"{name}[{element}]" if marginal.shape else name for element in marginal.elements]
            columns = [np.asarray(marginal.mean, float), marginal.sd, *_quantiles(marginal)]
            rows.append(np.stack([np.ravel(column) for column in columns], axis=1))
    columns = ["mean", "sd", *(f"q{level:.0%}".rstrip("%") for level in LEVELS)]
    table = np.concatenate(rows) if rows else np.zeros((0, len(columns)))
    return pandas.DataFrame(table, index=pandas.Index(names, name="name"), columns=columns)


def frame_of_draws(posterior: Inferred, draws: Mapping[str, np.ndarray]) -> Table:
    """A row for each draw, a column for each number."""
    pandas = _loaded("pandas", "to_frame()")
    columns: dict[str, np.ndarray] = {}
    for name, array in draws.items():
        flat = array.reshape(len(array), -1)
        columns |= dict(zip(_places(posterior, name, array.shape[1:]), flat.T, strict=True))
    return pandas.DataFrame(columns, index=pandas.RangeIndex(_length(draws), name="draw"))


def dataset_of_draws(posterior: Inferred, draws: Mapping[str, np.ndarray]) -> Table:
    """Variables over "draw", their plates and the axes of a value."""
    xarray = _loaded("xarray", "to_xarray()")
    variables = {}
    for name, array in draws.items():
        plates = [plate.name for plate in _node(posterior, name).plates]
        axes = [f"{name}_axis_{i}" for i in range(array.ndim - 1 - len(plates))]
        variables[name] = (["draw", *plates, *axes], array)
    used = {axis for axes, _ in variables.values() for axis in axes}
    names = {plate: list(own) for plate, own in posterior.binding.names.items() if plate in used}
    return xarray.Dataset(variables, coords={"draw": np.arange(_length(draws)), **names})


def _places(posterior: Inferred, name: str, shape: tuple[int, ...]) -> list[str]:
    """What each number of a draw is called: "skill[York]", or its name alone where there is one."""
    axes = [*axes_of(posterior.model, name, posterior.binding.names), *[Axis("")] * len(shape)]
    return [
        f"{name}[{', '.join(str(axis.label(i)) for axis, i in zip(axes, index, strict=False))}]" if index else name
        for index in np.ndindex(*shape)
    ]


def _quantiles(marginal: Marginal) -> list[np.ndarray]:
    try:
        return [np.asarray(found, float) for found in marginal.quantile(LEVELS)]
    except UnsupportedError:
        return [np.full(marginal.shape, np.nan) for _ in LEVELS]


def _node(posterior: Inferred, name: str) -> Any:
    return {**posterior.model.randoms, **posterior.model.lets}[name]


def _length(draws: Mapping[str, np.ndarray]) -> int:
    return len(next(iter(draws.values()))) if draws else 0


def _loaded(package: str, call: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError as problem:
        raise UnsupportedError(
            f"{call} needs {package}, which is not installed here ({problem}). Install it: pip install {package}."
        ) from problem
