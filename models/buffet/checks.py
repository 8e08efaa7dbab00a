"""What the priors on binary matrices take, checked once for all of them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ...engine.support.user_numbers import number
from ...factors.errors import DataError, ModelError


def positive(name: str, value: Any) -> float:
    """The value as a float; ModelError unless it is a finite number above zero."""
    found = number(value)
    if not 0.0 < found < np.inf:
        raise ModelError(f"The {name} is a finite number > 0; found {value!r}.")
    return found


def whole(name: str, value: Any, least: int = 1) -> int:
    """The value as an int; DataError unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise DataError(f"The number of {name} is a whole number >= {least}; found {value!r}.")
    return int(value)


def binary(matrix: Any) -> np.ndarray:
    """(rows, features) booleans; DataError for other entries than 0 and 1, another number of axes, or no rows."""
    values = np.asarray(matrix)
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError("A binary matrix has entries 0 and 1; found entries that are not numbers.") from None
    if values.ndim != 2 or values.shape[0] < 1:
        raise DataError(
            f"A binary matrix has two axes, rows and features, and at least one row; found the shape {values.shape}."
        )
    other = values[(values != 0) & (values != 1)]
    if other.size:
        missing = " Missing entries have no prior probability: fill them, or draw them." if np.isnan(other[0]) else ""
        raise DataError(f"A binary matrix has entries 0 and 1; found {other[0]}.{missing}")
    return values.astype(bool)


def counts_of(counts: Any, rows: int, least: int = 0) -> np.ndarray:
    """Numbers of ones in columns as float64; DataError unless they are whole and from `least` to `rows`."""
    try:
        found = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"Counts of ones are whole numbers; found {counts!r}.") from None
    wrong = found[~((found >= least) & (found <= rows) & (found == np.floor(found)))]
    if wrong.size:
        raise DataError(f"A column of {rows} rows has from {least} to {rows} ones; found a count of {wrong.flat[0]}.")
    return found
