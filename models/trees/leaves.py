"""From a table of data to what kernels know of leaves: columns of numbers, columns of yes and no, and gaps."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ...engine.numeric import numbers
from ...factors.errors import DataError
from .arrays import Leaves
from .sites import first_sites


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
        values = _numbers(self.values)
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


def to_leaves(data: Data, variance: Any = 1.0, noise: Any = 0.0) -> tuple[Leaves, float]:
    """The leaves of a table in units where the diffusion variance is 1.

    A continuous entry is the Gaussian `N(y / sd, noise / sd^2)`, sd^2 being the column's diffusion variance; a missing
    one says nothing. A binary entry starts with the Gaussian that matches `Phi(+-sd x)` where the leaf is alone, and
    `sites.fit_sites` moves it to the tree.

    Args:
        data: the table.
        variance: () or (D,) positive: the diffusion variance over unit time, in units of the data squared; for a
            binary column in units of the probit's noise.
        noise: () or (D,) non-negative: variance of the noise of continuous columns; that of binary ones is 1.

    Returns:
        The leaves, with one variance for all columns where there are no binary columns and no gaps and the scaled noise
        is the same everywhere; and what is to be added to a sweep's log evidence for the change of units,
        `- sum log sd` over the known entries of continuous columns.

    Raises:
        DataError: variances out of range, or two rows that are equal in all columns without noise: the closer they are
            on the tree the denser, without bound.
    """
    rows, columns = data.shape
    variance = per_column("variance", variance, columns, positive=True)
    noise = per_column("noise", noise, columns, positive=False)
    exact = ~data.binary & (noise == 0.0)
    if exact.any() and rows > 1 and (pair := data.twins(exact)) is not None:
        raise DataError(
            f"Rows {pair[0]} and {pair[1]} are equal in all columns that have no noise. Their density grows without "
            "bound as they part later and later, and the tree would show nothing else. Give a noise variance, "
            "noise=..., or keep one of the rows."
        )
    sd = np.sqrt(variance)
    mean = np.where(data.seen & ~data.binary, data.values, 0.0) / sd
    spread = np.where(data.seen & ~data.binary, noise / variance, np.inf)
    if data.binary.any():
        started = first_sites(data.signs, sd[data.binary])
        mean[:, data.binary], spread[:, data.binary] = started.mean, started.variance
    elif data.seen.all() and np.ptp(noise / variance) == 0.0:
        spread = spread[:, :1].copy()
    known = data.seen[:, ~data.binary].sum(axis=0)
    return Leaves(mean, spread), -float(known @ np.log(sd[~data.binary]))


def _numbers(values: Any) -> np.ndarray:
    found = numbers(values, "The data are")
    if found.ndim != 2 or 0 in found.shape:
        raise DataError(
            f"The data are a table with at least one row and one column; found the shape {found.shape}."
            + (" Give one column as values[:, None]." if found.ndim == 1 else "")
        )
    return found


def _check(values: np.ndarray, binary: np.ndarray) -> None:
    if (bad := np.argwhere(np.isinf(values))).size:
        row, column = bad[0]
        raise DataError(f"Row {row}, column {column} is infinite. Give finite numbers, and NaN for missing entries.")
    if (bad := np.argwhere(binary & ~np.isin(values, (0.0, 1.0)) & ~np.isnan(values))).size:
        row, column = bad[0]
        raise DataError(
            f"Column {column} is binary, and row {row} has {values[row, column]:.6g} there. Binary columns hold 0, 1 "
            "and NaN."
        )
    seen = ~np.isnan(values)
    for axis, what in ((1, "Row"), (0, "Column")):
        if (empty := np.flatnonzero(~seen.any(axis=axis))).size:
            raise DataError(f"{what} {empty[0]} has no entry that is not missing: it says nothing. Leave it out.")
    low, high = np.min(values, axis=0, initial=np.inf, where=seen), np.max(values, axis=0, initial=-np.inf, where=seen)
    if len(values) > 1 and (flat := np.flatnonzero(~binary & (low == high) & (seen.sum(axis=0) > 1))).size:
        raise DataError(
            f"All entries of the continuous column {flat[0]} are {low[flat[0]]:.6g}: it tells no rows apart and has no "
            "scale. Leave it out."
        )


def per_column(name: str, value: Any, columns: int, positive: bool) -> np.ndarray:
    """(columns,) a variance that is given as one number or as one for each column."""
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    wrong = found <= 0.0 if positive else found < 0.0
    if found.shape not in ((), (columns,)) or not np.isfinite(found).all() or wrong.any():
        raise DataError(
            f"{name}= is one {'positive' if positive else 'non-negative'} number, or one for each of the {columns} "
            f"columns; found {value!r}."
        )
    return np.broadcast_to(found, (columns,))
