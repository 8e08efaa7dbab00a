"""Numbers from what users give as data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..factors.errors import DataError


def numbers(values: Any, what: str) -> np.ndarray:
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
