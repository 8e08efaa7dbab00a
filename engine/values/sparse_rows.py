"""Sparse data in the program: pages of entries, each of which becomes one dense block of rows when it is seen.

All pages have room for the same number of entries, rounded up to a geometric grid, so that other data of about as many
need no other program.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...factors.arrays import Array
from ...factors.errors import DataError
from ...factors.records import Record, fixed
from .few_sizes import padded_size
from .plated import Placed, Plates
from .row_blocks import Rows, Window, joined

LARGEST = 1 << 28  # numbers of the dense matrix that stands for a sparse one where it cannot be cut


class Pages(Record):
    """`values[p, i]` stands at `places[p, i]`, row * columns + column, of block p; padding stands behind its end."""

    values: Array
    places: Array
    rows: Rows = fixed()
    columns: int = fixed()

    @property
    def size(self) -> int:
        """Number of entries, padding included."""
        return int(np.size(self.values))

    def seen(self, window: Window | None, plates: Plates) -> Placed:
        """The dense rows inside the window, or all of them."""
        if window is not None and window.rows == self.rows:
            page = -(-window.first // self.rows.size)
            return Placed(self._dense(self.values[page], self.places[page]), plates)
        whole = Placed(joined(jax.vmap(self._dense)(self.values, self.places), 0, self.rows), plates)
        return whole if window is None else window.seen(whole)

    def _dense(self, values: Array, places: Array) -> Array:
        size = self.rows.size * self.columns
        flat = jnp.zeros(size, values.dtype).at[places].set(values, mode="drop", indices_are_sorted=True)
        return flat.reshape(self.rows.size, self.columns)


def paged(name: str, matrix: Any, rows: Rows) -> Pages:
    """A matrix in compressed rows, laid out for the blocks of `rows`; DataError where one block would be too large."""
    columns = matrix.shape[1]
    if rows.size * columns > LARGEST:
        raise DataError(
            f"Input '{name}': found a sparse matrix of shape {matrix.shape}, of which some factor needs all rows at "
            f"once: {rows.size * columns:g} dense numbers, more than {LARGEST:g}. Let '{name}' enter by cv.dot with "
            "weights that live on other plates only, or give fewer columns."
        )
    first = np.minimum(np.arange(rows.number) * rows.size, rows.total - rows.size)
    start, stop = matrix.indptr[first].astype(np.int64), matrix.indptr[first + rows.size].astype(np.int64)
    room = padded_size(int((stop - start).max()))
    inside = np.arange(room) < (stop - start)[:, None]
    entry = np.where(inside, start[:, None] + np.arange(room), 0)
    row = np.repeat(np.arange(rows.total), np.diff(matrix.indptr))
    values = np.zeros(inside.shape)
    places = np.full(inside.shape, rows.size * columns, np.int32)
    taken = entry[inside]
    values[inside] = matrix.data[taken]
    within = row[taken] - np.repeat(first, stop - start)
    places[inside] = within * columns + matrix.indices[taken]
    return Pages(values, places, rows, columns)
