"""Long tables: a row for each observation, which a plate of rows and one of columns make a matrix of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiler.data.labels import Labelled, flat_labels, is_frame, labelled
from ...compiler.element_names import in_order
from ...factors.calls import call_checked
from ...factors.errors import DataError


@call_checked
def long(frame: Any, *, rows: str, columns: str, value: str) -> Labelled:
    """A long table as a matrix over two plates: `cv.infer(m, {"rating": cv.long(frame, rows="user", ...)})`.

    Args:
        frame: of pandas or polars, or a dictionary of columns, with a row for each value that was observed.
        rows: the column that names the element of the first plate of the variable.
        columns: the column that names that of the second.
        value: the column of numbers. Pairs that no row has are missing.

    Returns:
        Data of a variable over two plates, with the names of both, sorted; categories in their own order.

    Raises:
        DataError: no such columns, or two rows of the same pair.
    """
    if not is_frame(frame) and not isinstance(frame, dict):
        raise DataError(f"long() takes a data frame or a dictionary of columns; found {type(frame).__name__}.")
    there = list(frame if isinstance(frame, dict) else frame.columns)
    for name in (rows, columns, value):
        if not isinstance(name, str) or name not in there:
            raise DataError(f"long(): the table has no column {name!r}. It has {', '.join(map(str, there))}.")
    (first, own_rows), (second, own_columns) = (_positions(name, frame[name]) for name in (rows, columns))
    try:
        values = np.asarray(labelled(frame[value]).values, dtype=float)
    except (TypeError, ValueError) as problem:
        raise DataError(f"long(): column {value!r} is to hold numbers ({problem}).") from None
    if not len(first) == len(second) == len(values):
        raise DataError(f"long(): the columns have {len(first)}, {len(second)} and {len(values)} rows.")
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    if counts.max(initial=0) > 1:
        i, j = pairs[:, np.argmax(counts)]
        raise DataError(
            f"long(): {counts.max()} rows are of {rows} {own_rows[i]!r} and {columns} {own_columns[j]!r}. A matrix has "
            "one value for each pair: take their mean, or model the rows with two inputs of domain cv.index(plate)."
        )
    matrix = np.full((len(own_rows), len(own_columns)), np.nan)
    matrix[first, second] = values
    return Labelled(matrix, (None, None), (own_rows, own_columns))


def _positions(name: str, column: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The positions of labels among all of them, and these in their order."""
    given = labelled(column)
    found = flat_labels(given.values)
    if None in found:
        raise DataError(f"long(): column {name!r} names no element in row {found.index(None)}. Drop the row.")
    flat = [label for label in found if label is not None]
    there = set(flat)
    known = in_order(there) if given.categories is None else tuple(c for c in given.categories if c in there)
    place = {label: i for i, label in enumerate(known)}
    return np.array([place[label] for label in flat], dtype=np.int64), known
