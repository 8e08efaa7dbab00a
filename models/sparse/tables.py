"""Tables of samples by their interface: pandas, AnnData, polars, Arrow, scipy.sparse, masked and plain arrays.

None of those libraries is imported: what an object offers decides how it is read.
"""

from __future__ import annotations

import ctypes
import numbers
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...factors.errors import DataError

_COLUMNS = "names of its own for every column"  # what to do about columns of one name
_SHOWN = 5  # names or places that an error lists
_MISSING = {"NAType", "NaTType", "MaskedConstant"}  # types of the marks of a missing value, beside None and nan


class Table(NamedTuple):
    """Numbers of samples with the names of both sides.

    Attributes:
        values: (samples, features), nan where missing.
        samples: a name for each sample, or None where they have none but their numbers.
        features: a name for each feature, or None.
    """

    values: np.ndarray
    samples: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None


def read_table(data: Any) -> Table:
    """Any table of numbers, samples in rows, as float64 with nan for what is missing, and its names.

    Args:
        data: one of
            * an object with `X`, `obs_names` and `var_names`, as AnnData: samples by features, dense or sparse;
            * an object with `columns` (or `column_names`), as pandas, polars or Arrow have, and perhaps an `index`;
            * an object with `__dataframe__` alone, the interchange of tables between libraries;
            * a scipy.sparse matrix or array, whose absent entries are zeros, not missing;
            * a NumPy masked array, whose masked entries are missing;
            * anything with `to_numpy()` or that NumPy makes a two-dimensional array of, such as lists of lists.
            None, nan and the missing values of pandas are missing. True is 1. Names that only count (0, 1, 2, ...) are
            no names.

    Returns:
        The values, copied, and the names as strings.

    Raises:
        DataError: not two-dimensional, no samples or features, nothing observed, columns that are not numbers (named),
            infinite values (named by place), the same name twice.
    """
    if isinstance(data, Table):
        return _checked(np.array(data.values, dtype=np.float64), data.samples, data.features)
    if all(hasattr(data, name) for name in ("X", "obs_names", "var_names")):
        features = _names(data.var_names, "var_names_make_unique()")
        return _checked(_matrix(data.X, features), _names(data.obs_names, "obs_names_make_unique()"), features)
    columns = getattr(data, "columns", None)
    if not hasattr(data, "index"):  # Arrow's `columns` are the columns themselves
        columns = getattr(data, "column_names", columns)
    if isinstance(columns, Iterable):
        return _of_columns(data, list(columns))
    if hasattr(data, "__dataframe__") and not hasattr(data, "to_numpy"):
        frame = data.__dataframe__()
        names = list(frame.column_names())
        return _joined(names, [_of_buffers(frame.get_column_by_name(name)) for name in names], None)
    return _checked(_matrix(data, None), None, None)


def _of_columns(data: Any, columns: list[Any]) -> Table:
    """A table that knows its columns, read at once where they have one kind of numbers and one by one otherwise."""
    features = _names(columns, _COLUMNS)
    index = getattr(data, "index", None)
    samples = _names(index, "reset_index(drop=True)") if isinstance(index, Iterable) else None
    if hasattr(data, "to_numpy"):
        whole = np.asarray(data.to_numpy())
        if whole.dtype.kind in "biuf":
            return _checked(whole.astype(np.float64), samples, features)
    return _joined(columns, [_numbers(data[name]) for name in columns], samples)


def _joined(columns: list[Any], read: list[np.ndarray | None], samples: tuple[str, ...] | None) -> Table:
    """A table of columns, of which those that are None held something else than numbers."""
    _refuse_words([str(name) for name, column in zip(columns, read, strict=True) if column is None])
    values = np.stack([column for column in read if column is not None], axis=1) if read else np.empty((0, 0))
    return _checked(values, samples, _names(columns, _COLUMNS))


def _matrix(values: Any, features: Sequence[str] | None) -> np.ndarray:
    """Dense float64 of a matrix without names, with nan where it is masked."""
    for dense in ("to_memory", "toarray", "to_numpy"):
        if hasattr(values, dense):
            values = getattr(values, dense)()
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    try:
        values = np.asarray(values)
    except ValueError as error:
        raise DataError(
            f"The rows of the data have different lengths: NumPy makes no array of them ({error})."
        ) from None
    if values.ndim != 2:
        raise DataError(
            f"The data are a table (samples, features); found {values.ndim} dimensions, shape {values.shape}. "
            "For one feature give data.reshape(-1, 1), for one sample data.reshape(1, -1)."
        )
    if values.dtype.kind in "biuf":
        values = values.astype(np.float64)
    else:
        read = [_numbers(column) for column in values.T]
        names = features or range(values.shape[1])
        _refuse_words([str(name) for name, column in zip(names, read, strict=True) if column is None])
        values = np.array(read, dtype=np.float64).reshape(values.shape[::-1]).T.copy()
    if mask is not None:
        values[mask] = np.nan
    return values


def _numbers(column: Any) -> np.ndarray | None:
    """A column as float64, nan where missing; None when it holds anything but numbers."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    if kind in tuple("biuf") and hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))  # pandas, with marks of missing values
    column = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind != "O" or not all(_absent(one) or isinstance(one, numbers.Real | np.bool_) for one in column):
        return None
    return np.array([np.nan if _absent(one) else float(one) for one in column])


def _of_buffers(column: Any) -> np.ndarray | None:
    """A column of the interchange protocol as float64, nan where missing; None when it does not hold numbers."""
    code = {0: "i", 1: "u", 2: "f", 20: "u"}.get(int(column.dtype[0]))  # signed, unsigned, real and true or false
    if code is None:
        return None
    parts = []
    for chunk in column.get_chunks():
        buffers, stop = chunk.get_buffers(), chunk.offset + chunk.size()
        part = _read(buffers["data"][0], code, column.dtype[1], stop).astype(np.float64)
        how, mark = chunk.describe_null
        if how == 2:  # a value of the column itself
            part[part == mark] = np.nan
        elif how in (3, 4):  # a mask of bits or of bytes
            part[_read(buffers["validity"][0], "u", 1 if how == 3 else 8, stop) == mark] = np.nan
        parts.append(part[chunk.offset :])
    return np.concatenate(parts)


def _read(buffer: Any, code: str, bits: int, stop: int) -> np.ndarray:
    """The first numbers of a buffer, of so many bits each; the buffer's owner must live until they are copied."""
    raw = np.frombuffer((ctypes.c_ubyte * buffer.bufsize).from_address(buffer.ptr), np.uint8)
    if bits == 1:
        return np.unpackbits(raw, bitorder="little")[:stop]
    return raw[: stop * bits // 8].view(f"{code}{bits // 8}")


def _absent(one: Any) -> bool:
    return one is None or type(one).__name__ in _MISSING


def _refuse_words(names: list[str]) -> None:
    if names:
        raise DataError(
            f"The features are numbers; {_listed(names)} hold something else (words, categories, dates or complex "
            "numbers). Leave such columns out, or encode them as numbers first."
        )


def _names(names: Iterable[Any], remedy: str) -> tuple[str, ...] | None:
    """Names as strings, those of several levels joined; None when they only count. DataError when one stands twice."""
    found = tuple(" / ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names)
    if found == tuple(map(str, range(len(found)))):
        return None
    if len(set(found)) < len(found):
        twice = [name for name, count in Counter(found).items() if count > 1]
        raise DataError(
            f"A name stands for one sample or feature, as results are looked up by it; {_listed(twice)} stand for "
            f"several. Make them unique first: {remedy}."
        )
    return found


def _checked(values: np.ndarray, samples: tuple[str, ...] | None, features: tuple[str, ...] | None) -> Table:
    for names, count, what in ((samples, values.shape[0], "samples"), (features, values.shape[1], "features")):
        if names is not None and len(names) != count:
            raise DataError(f"There is a name for each of the {count} {what}; found {len(names)} names.")
    if not values.size:
        raise DataError(f"A table has a sample and a feature at least; found (samples, features) = {values.shape}.")
    if (places := np.argwhere(np.isinf(values))).size:
        shown = [
            f"sample {samples[i] if samples else i}, feature {features[j] if features else j}"
            for i, j in places[:_SHOWN].tolist()
        ]
        raise DataError(
            f"{len(places)} values are infinite, which no noise explains: {'; '.join(shown)}"
            f"{'; ...' if len(places) > _SHOWN else ''}. Write nan where a value is missing, and look for log(0)."
        )
    if np.isnan(values).all():
        raise DataError(f"All {values.size} values of the table are missing, so that nothing can be learned from it.")
    return Table(values, samples, features)


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
