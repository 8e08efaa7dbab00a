"""The rows of a data set in shards of nearly equal sizes, of which a process has its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ....engine.data.row_sources import rows
from ....engine.support.user_numbers import table
from ....factors.errors import DataError
from ....factors.switches import double_precision


class Shards(NamedTuple):
    """The shards of this process, padded to one number of rows.

    Attributes:
        values: (shards, rows, dimensions), zeros where not seen.
        seen: (shards, rows, dimensions) booleans, false in rows that are none.
        counts: (shards,) how many rows there are.
        total: rows of all shards of all processes.
        every: shards of all processes.
        square: the sum of the squares of all entries that are seen, of all processes.
        entries: how many these are.
    """

    values: np.ndarray
    seen: np.ndarray
    counts: np.ndarray
    total: int
    every: int
    square: float
    entries: int


def shards_of(parts: Sequence[Any]) -> Shards:
    """The shards that are given, of which each process of `jax.distributed` reads its own alone.

    Args:
        parts: for each shard (rows, dimensions) numbers, NaN where missing, or the path of a file that holds them, of
            those that `cv.rows` reads: .npy, .parquet, .arrow or .zarr. With p processes the i-th has the shards
            `i len(parts) / p` and so on; the others are not opened.

    Returns:
        The shards of this process.

    Raises:
        DataError: no shards; not as many for each process; parts that differ in their dimensions, or hold infinities.
        ImportError: a file that needs the extra `data`, which is not installed.
    """
    processes, rank = jax.process_count(), jax.process_index()
    if not len(parts) or len(parts) % processes:
        raise DataError(
            f"Shards are dealt evenly: {len(parts)} of them cannot be to {processes} processes. Give a multiple of it."
        )
    own = len(parts) // processes
    tables = [_table(part, rank * own + at) for at, part in enumerate(parts[rank * own : (rank + 1) * own])]
    seen = [~np.isnan(values) for values in tables]
    squares = [np.sum(np.where(there, values, 0.0) ** 2) for values, there in zip(tables, seen, strict=True)]
    local = np.array(
        [[len(values), values.shape[1], s.sum(), q] for values, s, q in zip(tables, seen, squares, strict=True)]
    )
    told = gathered(local)
    if len(dimensions := np.unique(told[:, 1])) > 1:
        raise DataError(f"All shards have the same dimensions; found {', '.join(str(int(d)) for d in dimensions)}.")
    most = int(told[:, 0].max())
    counts = np.array([len(values) for values in tables])
    blank = np.zeros((own, most, tables[0].shape[1]))
    shards = Shards(
        blank,
        blank.astype(bool),
        counts,
        int(told[:, 0].sum()),
        len(parts),
        float(told[:, 3].sum()),
        int(told[:, 2].sum()),
    )
    for at, (values, there) in enumerate(zip(tables, seen, strict=True)):
        shards.values[at, : len(values)] = np.where(there, values, 0.0)
        shards.seen[at, : len(values)] = there
    return shards


def _table(part: Any, number: int) -> np.ndarray:
    if isinstance(part, str | os.PathLike):
        if not os.path.exists(part):
            raise DataError(f"Shard {number} is the file '{os.fspath(part)}', which is not there.")
        part = np.asarray(rows(part, stream=False))
    try:
        return table(part, "row", "dimension")
    except DataError as problem:
        raise DataError(f"Shard {number}: {problem}") from None


def gathered(local: np.ndarray) -> np.ndarray:
    """Rows of small tables of all processes."""
    if jax.process_count() == 1:
        return local
    from jax.experimental import multihost_utils

    with double_precision():
        return np.asarray(multihost_utils.process_allgather(local)).reshape((-1, local.shape[1]))
