"""A table with one row for each leaf: columns of numbers, columns of yes and no, and gaps."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ....engine.support.user_numbers import table
from ....factors.errors import DataError


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """A table with one row for each leaf of a tree, checked.

    A continuous column is the location itself plus Gaussian noise, `y ~ N(x, noise)`; a binary one is probit,
    `y ~ Bernoulli(Phi(x))`. Missing entries are NaN in both, or masked.

    Args:
        values: (N, D) numbers; in binary columns 0 and 1.
        binary: which columns are binary: True for all, or (D,) booleans.

    Raises:
        DataError: no table; infinite entries; another number than 0 and 1 in a binary column; a row or a column in
            which all is missing; a continuous column whose entries are all equal.
    """

    values: np.ndarray
    binary: Any = False

    def __post_init__(self) -> None:
        values = table(self.values)
        binary = np.asarray(self.binary)
        if binary.dtype != bool or binary.shape not in ((), values.shape[1:]):
            raise DataError(
                f"binary= is True, False, or one boolean for each of the {values.shape[1]} columns; found "
                f"{self.binary!r}."
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "binary", np.broadcast_to(binary, values.shape[1:]).copy())
        _check(values, self.binary)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    @functools.cached_property
    def seen(self) -> np.ndarray:
        """(N, D) which entries are there."""
        return ~np.isnan(self.values)

    @functools.cached_property
    def signs(self) -> np.ndarray:
        """(N, binary columns) 1 for yes, -1 for no, 0 for missing."""
        return np.where(self.seen, 2.0 * self.values - 1.0, 0.0)[:, self.binary]

    def twins(self, columns: np.ndarray) -> tuple[int, int] | None:
        """Two rows that are equal in these columns, gaps included, and not all gap there."""
        seen = self.seen[:, columns]
        rows = np.hstack([np.where(seen, self.values[:, columns], 0.0), seen])
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        twin = np.flatnonzero((first[place.ravel()] != np.arange(len(rows))) & seen.any(axis=1))
        return (int(first[place.ravel()[twin[0]]]), int(twin[0])) if len(twin) else None


def _check(values: np.ndarray, binary: np.ndarray) -> None:
    if (bad := np.argwhere(binary & ~np.isin(values, (0.0, 1.0)) & ~np.isnan(values))).size:
        row, column = bad[0]
        raise DataError(
            f"Column {column} is binary, and row {row} has {values[row, column]:.6g} there. Binary columns hold 0, 1 "
            "and NaN."
        )
    seen = ~np.isnan(values)
    low, high = np.min(values, axis=0, initial=np.inf, where=seen), np.max(values, axis=0, initial=-np.inf, where=seen)
    if len(values) > 1 and (flat := np.flatnonzero(~binary & (low == high) & (seen.sum(axis=0) > 1))).size:
        raise DataError(
            f"All entries of the continuous column {flat[0]} are {low[flat[0]]:.6g}: it tells no rows apart and has no "
            "scale. Leave it out."
        )
