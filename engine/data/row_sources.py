"""Rows from files, or of one process: what `cv.rows` gives in the place of an array.

A file is read by stretches of rows, so each process reads those of its own devices. Files with more numbers than fit
are streamed: blocks of rows are read when their turn comes, in every sweep anew, and are nowhere else.
"""

from __future__ import annotations

import glob
import importlib
import os
import threading
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh

from ...compiler.data.sparse_matrices import is_sparse
from ...factors.calls import call_checked
from ...factors.errors import DataError
from ..support.cache import Recent

Columns: TypeAlias = str | Sequence[str] | None
STREAMED = 2**27  # numbers, a gigabyte: files with more are streamed where nothing else is asked for
KEPT = 3  # pieces of a file that were read last


class Rows:
    """Rows that are read when they are needed: see `rows`. `shape` and `dtype` are those of all of them."""

    rows_of_cavity = True

    def __init__(self, pieces: Sequence[_Piece], name: str, stream: bool | None) -> None:
        self.pieces, self.name = pieces, name
        self.ends = np.cumsum([piece.rows for piece in pieces])
        events = {piece.event for piece in pieces}
        if len(events) > 1:
            raise DataError(f"{name}: the files have rows of different shapes, {', '.join(map(str, sorted(events)))}.")
        self.shape = (int(self.ends[-1]), *events.pop())
        self.dtype = np.result_type(*(piece.dtype for piece in pieces))
        large = len(self.shape) > 1 and np.prod(self.shape, dtype=float) > STREAMED
        self.streamed = large if stream is None else stream
        self._read: Recent[Future[np.ndarray]] = Recent(KEPT)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rows")
        self._lock = threading.Lock()
        self._whole: tuple[tuple[int, int], np.ndarray] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to before `stop`; pieces of a file are kept while their neighbours are asked for."""
        parts, place = [], start
        while place < stop:
            number = bisect_right(self.ends, place)
            first = int(self.ends[number]) - self.pieces[number].rows
            until = min(stop, int(self.ends[number]))
            if (direct := self.pieces[number].mapped) is not None:
                parts.append(direct[place - first : until - first])
            else:
                parts.append(self._piece(number)[place - first : until - first])
            place = until
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _piece(self, number: int) -> np.ndarray:
        """A whole piece, of which the next is read meanwhile."""
        with self._lock:
            found = self._read.get(number, lambda: self._pool.submit(self.pieces[number].read))
            if number + 1 < len(self.pieces):
                self._read.get(number + 1, lambda: self._pool.submit(self.pieces[number + 1].read))
        return found.result()

    def part(self, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to before `stop`, in memory; they are kept for who asks again."""
        if self._whole is None or self._whole[0] != (start, stop):
            self._whole = (start, stop), np.ascontiguousarray(self.read_rows(start, stop))
        return self._whole[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.part(0, len(self)), dtype=dtype)

    def __repr__(self) -> str:
        return f"rows of {self.name}, shape {self.shape}{', streamed' if self.streamed else ''}"


class Own:
    """Rows that this process has in memory, and no other process knows: an array, or a matrix of scipy.sparse."""

    rows_of_cavity = True

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.array, dtype=dtype)

    def __repr__(self) -> str:
        return f"rows of this process, shape {self.array.shape}"


class _Piece:
    """A stretch of rows that is read at once: how many rows, the shape and type of each, and how it is read.

    `mapped` is an array that needs no reading, where there is one.
    """

    rows: int
    event: tuple[int, ...]
    dtype: np.dtype
    mapped: Any = None

    @abstractmethod
    def read(self) -> np.ndarray:
        """The rows."""


class _Mapped(_Piece):
    """An array on disk of which any stretch is read by itself: of NumPy, mapped into memory, or of zarr."""

    def __init__(self, array: Any) -> None:
        self.mapped, self.rows, self.event, self.dtype = array, array.shape[0], tuple(array.shape[1:]), array.dtype

    def read(self) -> np.ndarray:
        return np.asarray(self.mapped)


class _Table(_Piece):
    """A stretch of rows of a table: a group of rows of Parquet, or a batch of Arrow."""

    def __init__(self, table: Any, columns: Columns, schema: Any, rows: int, place: str) -> None:
        self.table, self.rows = table, rows
        single = isinstance(columns, str)
        names = [columns] if single else list(schema.names if columns is None else columns)
        if unknown := [name for name in names if name not in schema.names]:
            raise DataError(
                f"{place} has no column {unknown[0]!r}. It has: {', '.join(schema.names[:20])}"
                f"{', ...' if len(schema.names) > 20 else ''}. Correct columns=."
            )
        types = [schema.field(name).type for name in names]
        lists = [getattr(kind, "list_size", None) for kind in types]
        self.names, self.single = names, single and lists[0] is None
        values = [kind.value_type if size is not None else kind for kind, size in zip(types, lists, strict=True)]
        kinds = [_numpy_type(kind, name, place) for kind, name in zip(values, names, strict=True)]
        self.dtype = np.result_type(*kinds)
        self.event = () if self.single else (sum(size or 1 for size in lists),)

    def read(self) -> np.ndarray:
        table = self.table(self.names)
        if self.single:
            return _column(table, 0)
        if len(self.names) == 1:
            return _column(table, 0).reshape(self.rows, -1)
        found, place = np.empty((self.rows, *self.event), self.dtype), 0
        for number in range(len(self.names)):
            own = _column(table, number).reshape(self.rows, -1)
            found[:, place : place + own.shape[1]] = own
            place += own.shape[1]
        return found


def _column(table: Any, number: int) -> np.ndarray:
    """The numbers of a column, those of lists behind each other; missing ones are NaN."""
    chunks = table.column(number).chunks if hasattr(table.column(number), "chunks") else [table.column(number)]
    parts = [chunk.flatten() if hasattr(chunk.type, "list_size") else chunk for chunk in chunks]
    arrays = [part.to_numpy(zero_copy_only=False) for part in parts]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _numpy_type(kind: Any, name: str, place: str) -> np.dtype:
    try:
        found = np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        found = np.dtype(object)
    if found.kind not in "biuf":
        raise DataError(f"{place}: column {name!r} has values of type {kind}, which are not numbers. Leave it out.")
    return found


@call_checked
def rows(source: Any, columns: Columns = None, *, stream: bool | None = None) -> Rows | Own:
    """Rows of data by files, or of this process, in the place of an array: `cv.infer(model, {"x": cv.rows("x.npy")})`.

    `source` is a path, a pattern with * in it, or a list of paths, whose rows follow each other: .npy, .parquet,
    .arrow (.feather, .ipc; these by the extra `data`), .zarr. `columns` names the columns of a table that are meant:
    one by its name, of numbers or of lists of one length, or several, which are then a vector for each row; all by
    default. Where a mesh has several processes each reads the rows of its own devices. `stream=True` reads blocks of
    rows when their turn comes, in every sweep anew, so that they need no memory: by default where there are more than
    2^27 numbers. An array (or a matrix of scipy.sparse) for `source` is rows that only this process has.

    Returns what `cv.infer` and programs take for an array. Raises DataError for files that are not there, hold no
    numbers or do not fit each other, and ImportError without the package that reads them.
    """
    if not isinstance(source, (str, os.PathLike, list, tuple)) or is_sparse(source):
        return Own(source if is_sparse(source) else _own_array(source))
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if strange := [one for one in given if not isinstance(one, (str, os.PathLike))]:
        raise DataError(f"cv.rows takes a path, or a list of paths; found {strange[0]!r} among them.")
    paths = [path for one in given for path in _matching(os.fspath(one))]
    if not paths:
        raise DataError(f"cv.rows found no file for {source!r}. Correct the path, or the pattern.")
    pieces = [piece for path in paths for piece in _pieces(path, columns)]
    pieces = [piece for piece in pieces if piece.rows]
    if not pieces:
        raise DataError(f"cv.rows found no row in {', '.join(paths)}.")
    return Rows(pieces, paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more", stream)


def _own_array(source: Any) -> np.ndarray:
    """Rows that this process has; DataError for what is no array of them."""
    array = np.asarray(source)
    if not array.ndim or array.dtype.kind not in "biuf":
        raise DataError(
            f"cv.rows takes paths of files, or an array of numbers with a row for each element; found {source!r:.60}."
        )
    return array


def _matching(path: str) -> list[str]:
    if os.path.exists(path):
        return [path]
    return sorted(glob.glob(path))


def _pieces(path: str, columns: Columns) -> list[_Piece]:
    """What a file is read by."""
    ending = os.path.splitext(path.rstrip("/"))[1].lower()
    try:
        if ending == ".npy":
            return [_Mapped(np.load(path, mmap_mode="r"))]
        if ending == ".zarr":
            return [_Mapped(_module("zarr").open_array(path, mode="r"))]
        if ending == ".parquet":
            return _of_parquet(path, columns)
        if ending in (".arrow", ".feather", ".ipc"):
            return _of_arrow(path, columns)
    except (OSError, ValueError, EOFError) as problem:
        raise DataError(f"cv.rows cannot read {path}: {problem}") from problem
    raise DataError(f"cv.rows reads .npy, .parquet, .arrow, .feather, .ipc and .zarr; found {path}.")


def _of_parquet(path: str, columns: Columns) -> list[_Piece]:
    parquet = _module("pyarrow.parquet")
    file = parquet.ParquetFile(path)

    def group(number: int) -> Any:
        return lambda names: file.read_row_group(number, columns=names, use_threads=False).select(names)

    counts = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    return [_Table(group(i), columns, file.schema_arrow, count, path) for i, count in enumerate(counts)]


def _of_arrow(path: str, columns: Columns) -> list[_Piece]:
    arrow = _module("pyarrow")
    file = importlib.import_module("pyarrow.ipc").open_file(arrow.memory_map(path))

    def batch(number: int) -> Any:
        return lambda names: file.get_batch(number).select(names)

    counts = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
    return [_Table(batch(i), columns, file.schema, count, path) for i, count in enumerate(counts)]


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.split(".")[0]
        raise ImportError(
            f"cv.rows reads this file by {package}, which is not installed: pip install 'cavity[data]'."
        ) from None


# in the place of arrays


class Stretch:
    """The rows of a streamed source that one process goes through: an array in all but that it is nowhere."""

    def __init__(self, source: Rows, start: int, stop: int) -> None:
        self.source, self.start = source, start
        self.shape, self.dtype = (stop - start, *source.shape[1:]), source.dtype
        self.problem: str | None = None

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """Rows by their number in the whole source."""
        return self.source.read_rows(start, stop)

    def numbers(self, start: int, stop: int) -> np.ndarray:
        """The same as float64, at least one row; what is no finite number is noted in `problem`."""
        last = len(self.source)
        found = np.asarray(self.source.read_rows(min(start, last - 1), min(stop, last)), np.float64)
        if self.problem is None and not np.isfinite(np.sum(found)) and not (finite := np.isfinite(found)).all():
            row, *place = (int(i) for i in np.argwhere(~finite)[0])
            self.problem = f"found {found[(row, *place)]:g} in row {start + row}, at {place}"
        return found

    def __repr__(self) -> str:
        return repr(self.source)


def loaded(data: Mapping[str, Any], mesh: Mesh | None) -> dict[str, Any]:
    """Data with arrays for what `rows` gave: what the devices of this process are dealt, of files."""
    return {name: _loaded(value, mesh) for name, value in data.items()} if isinstance(data, Mapping) else data


def _loaded(value: Any, mesh: Mesh | None) -> Any:
    if isinstance(value, Own):
        return value.array
    if not isinstance(value, Rows):
        return value
    start, stop = (0, len(value)) if mesh is None else rows_of_process(len(value), mesh)
    return Stretch(value, start, stop) if value.streamed else value.part(start, stop)


def rows_of_process(total: int, mesh: Mesh) -> tuple[int, int]:
    """The first row that the devices of this process are dealt, and that behind their last."""
    each = -(-total // mesh.size)
    mine = [i for i, device in enumerate(mesh.devices.flat) if device.process_index == jax.process_index()]
    return min(mine[0] * each, total), min((mine[-1] + 1) * each, total)


def check_streams(inputs: Mapping[str, Any]) -> None:
    """DataError for what a run has read from files and is no finite number."""
    for name, value in inputs.items():
        if isinstance(value, Stretch) and value.problem is not None:
            raise DataError(
                f"Input '{name}': must be finite; {value.problem}, of {value.source.name}. Leave such rows out, or "
                "put a number there."
            )
