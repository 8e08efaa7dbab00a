"""From a table of data to what kernels know of leaves: a Gaussian for each entry, a uniform one for a gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....factors.errors import DataError
from ..shapes.arrays import Leaves
from .sites import first_sites
from .table import Data


def to_leaves(data: Data, variance: Any = 1.0, noise: Any = 0.0) -> tuple[Leaves, float]:
    """The leaves of a table in units where the diffusion variance is 1.

    A continuous entry is the Gaussian `N(y / sd, noise / sd^2)`, sd^2 being the column's diffusion variance; a missing
    one is uniform. A binary entry starts with the Gaussian that matches `Phi(+-sd x)` where the leaf is alone, and
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
