"""Annotated matrices (AnnData, MuData): what a model declares is found in them by name, with the names of rows.

A declared name is looked for among the layers, the columns of `obs` and of `var`, and `obsm`; "X" is the main matrix.
In several matrices of the same rows (MuData) a name is that of one of them, whose main matrix it is, or "matrix:layer".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...factors.errors import DataError


def columns_of_annotated(data: Any, declared: Iterable[str]) -> dict[str, Any]:
    """Of annotated data what is declared, by name; DataError for a name that stands in several places."""
    found = {}
    for name in declared:
        places = _places(data, name)
        if len(places) > 1:
            raise DataError(
                f"{name!r} is there more than once: in {' and in '.join(places)}. Give data by name, such as "
                f"{{{name!r}: adata.{next(iter(places))}[...]}}, or rename one of them."
            )
        if places:
            (found[name],) = places.values()
    return found


def _places(data: Any, name: str) -> dict[str, Any]:
    """Where there is something of this name."""
    if hasattr(data, "mod"):
        return _of_several(data, name)
    found: dict[str, Any] = {}
    if name == "X" and data.X is not None:
        found["X"] = _matrix(data, data.X)
    if name in data.layers:
        found["layers"] = _matrix(data, data.layers[name])
    found |= _annotations(data, name)
    if name in data.var:
        found["var"] = _column(data.var[name], data.var_names)
    return found


def _of_several(data: Any, name: str) -> dict[str, Any]:
    found = _annotations(data, name)
    whole, _, layer = name.partition(":")
    if whole in data.mod:
        one = data.mod[whole]
        if not np.array_equal(one.obs_names, data.obs_names):
            raise DataError(
                f"{whole!r} has other rows than all matrices together ({one.n_obs} and {data.n_obs}), and a plate has "
                "one set of rows. Take those that all have: mudata.pp.intersect_obs(data)."
            )
        if not layer:
            found.pop("obsm", None)  # where it is kept which rows this matrix has
            found["mod"] = _matrix(one, one.X)
        elif layer in one.layers:
            found["mod"] = _matrix(one, one.layers[layer])
    return found


def _annotations(data: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if name in data.obs:
        found["obs"] = _column(data.obs[name], data.obs_names)
    if name in data.obsm:
        array = data.obsm[name]
        dense = array.toarray() if hasattr(array, "toarray") else array
        found["obsm"] = dense if hasattr(dense, "columns") else _framed(dense, data.obs_names, None)
    return found


def _matrix(data: Any, values: Any) -> Any:
    """A matrix as a frame with the names of its rows and columns."""
    dense = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    return _framed(dense, data.obs_names, data.var_names)


def _framed(values: Any, rows: Any, columns: Any) -> Any:
    import pandas as pd  # which annotated data are made of

    rows = None if _only_count(rows) else rows
    columns = None if columns is None or _only_count(columns) else columns
    return pd.DataFrame(values, index=rows, columns=columns)


def _column(series: Any, names: Any) -> Any:
    return series.reset_index(drop=True) if _only_count(names) else series


def _only_count(names: Any) -> bool:
    """Whether names are "0", "1", ..., which rows have where nobody named them."""
    return list(names) == [str(i) for i in range(len(names))]
