"""Numbers from what users give as data and as settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...factors.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def numbers(values: ArrayLike, what: str) -> np.ndarray:
    """A float64 copy of an array of real numbers, NaN where it is masked.

    Args:
        values: an array, masked array or nested lists.
        what: the subject and verb of the error, such as "The data are".

    Raises:
        DataError: complex numbers, or what is no array of numbers.
    """
    if np.iscomplexobj(values):
        raise DataError(f"{what} a table of real numbers; found complex ones. Give their parts as rows.")
    masked = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else False
    try:
        found = np.array(np.ma.getdata(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} a table of numbers; these could not be read as such: {error}.") from None
    return np.where(masked, np.nan, found)


def table(values: ArrayLike, row: str = "row", column: str = "column") -> np.ndarray:
    """A float64 copy of a table of finite numbers, NaN where it is masked or missing; all rows and columns have some.

    Args:
        values: as of `numbers`.
        row, column: what errors call one of each.

    Raises:
        DataError: no table, infinite entries, or a row or column in which all is missing.
    """
    found = numbers(values, "The data are")
    if found.ndim != 2 or 0 in found.shape:
        raise DataError(
            f"The data are a table with at least one of each, one {row} and one {column}; found the shape "
            f"{found.shape}."
            + (f" Give one {row} as values[None], one {column} as values[:, None]." if found.ndim == 1 else "")
        )
    if (bad := np.argwhere(np.isinf(found))).size:
        at = f"{row.capitalize()} {bad[0][0]}, {column} {bad[0][1]}"
        raise DataError(f"{at} is infinite. Give finite numbers, and NaN for missing entries.")
    for axis, what in ((1, row), (0, column)):
        if (empty := np.flatnonzero(np.isnan(found).all(axis=axis))).size:
            raise DataError(
                f"{what.capitalize()} {empty[0]} has no entry that is not missing: it says nothing. Leave it out."
            )
    return found


def number(value: Any) -> float:
    """A number of any library as a float; NaN for what is none, words, truth values and arrays among them."""
    try:
        return float("nan") if isinstance(value, (str, bytes, bool, np.bool_)) or np.ndim(value) else float(value)
    except (TypeError, ValueError):
        return float("nan")


def two_positive(value: Any) -> bool:
    """Whether a value is two finite positive numbers, such as shape and rate of a gamma prior."""
    return np.shape(value) == (2,) and all(0.0 < number(each) < np.inf for each in value)
