"""Rows of files in a program: a block of them is read when it is seen, and held no longer."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.records import Record, fixed
from .plated import Placed, Plates
from .row_blocks import Window


class Slot:
    """What a compiled program reads from: the source of the run that is under way."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.source = shape, None

    def numbers(self, start: int, stop: int) -> np.ndarray:
        """Rows by number, as float64."""
        assert self.source is not None
        return self.source.numbers(start, stop)

    def __repr__(self) -> str:
        return repr(self.source)


class StreamedRows(Record):
    """Rows of `source` from number `first` on, where `source.numbers(start, stop)` reads some."""

    first: Array
    source: Any = fixed()

    def seen(self, window: Window | None, plates: Plates) -> Placed:
        """The rows inside the window."""
        if window is None:
            raise UnsupportedError(
                f"Some factor needs all rows at once of what is streamed from files, {self.source!r}: EP on several "
                "devices, or an expression that reads across rows. Ask for method='ncvmp' or 'vmp', let it enter by "
                "cv.dot with weights that live on other plates only, or have the rows in memory: cv.rows(..., "
                "stream=False)."
            )
        size, event = window.rows.size, self.source.shape[1:]
        # As halves of 32 bits: the threads that call back may not know of numbers of 64.
        form = jax.ShapeDtypeStruct((size, *event, 2), np.uint32)

        def read(first: Any) -> np.ndarray:
            rows = _whole(self.source.numbers(int(first), int(first) + size), size)
            return np.ascontiguousarray(rows).view(np.uint32).reshape(form.shape)

        first = (self.first + window.first).astype(np.int32)
        halves = jax.pure_callback(read, form, first, vmap_method="sequential")
        return Placed(jax.lax.bitcast_convert_type(halves, np.float64), plates)


def _whole(rows: np.ndarray, size: int) -> np.ndarray:
    """As many rows as asked for: at the end the last stands in for those that are not there."""
    if len(rows) == size:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)])
