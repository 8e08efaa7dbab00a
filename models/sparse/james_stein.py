"""Shrinkage: many means at once are better guessed by pulling all of them toward zero than each by its own value.

With `x ~ N(theta, I)` and `theta ~ N(0, I / precision)` the mean of theta given x is `(1 - p_x) x`, and x itself is
`N(0, I / p_x)`, `p_x = precision / (1 + precision)`. What is not known but p_x can be told from the data: its unbiased
estimate `(d - 2) / |x|^2` gives the estimator of James and Stein, which is better than x for every theta.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import poisson

from ...engine.support.user_numbers import number
from ...factors.errors import DataError

REACH = 12.0  # standard deviations, about the mean of a Poisson number, that sums go over


def shrunk(values: Any, times: float | None = None) -> np.ndarray:
    """`(1 - times / |x|^2) x`, of each vector.

    Args:
        values: (..., d) Gaussian with unknown means and variance one.
        times: None for `d - 2`, the estimator of James and Stein; `d` is that of the most likely variance.

    Returns:
        Shaped as the values. Of a vector of zeros, zeros.

    Raises:
        DataError: fewer than three numbers in a vector, where nothing is gained, or numbers that are not finite.

    Source: james1961estimation, efron1973stein.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim < 1 or x.shape[-1] < 3 or not np.isfinite(x).all():
        raise DataError(
            f"Shrinkage is of vectors of three or more finite numbers; found the shape {x.shape}. Of one or two, "
            "nothing is better than the numbers themselves for all means."
        )
    square = np.sum(x * x, axis=-1, keepdims=True)
    factor = 1.0 - (x.shape[-1] - 2.0 if times is None else number(times)) / np.where(square > 0.0, square, 1.0)
    return factor * x


def marginal_precision(values: Any, times: float | None = None) -> np.ndarray:
    """`times / |x|^2` of each vector: with `d - 2`, the default, the unbiased estimate of `p_x`, with d the likeliest.

    Args:
        values: (..., d) of three or more numbers each, not all zero.
        times: None for `d - 2`.

    Raises:
        DataError: fewer than three numbers in a vector.

    Source: efron1973stein.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim < 1 or x.shape[-1] < 3:
        raise DataError(f"The precision is of vectors of three or more numbers; found the shape {x.shape}.")
    return (x.shape[-1] - 2.0 if times is None else number(times)) / np.sum(x * x, axis=-1)


def risk(length: float, dimensions: int, times: float | None = None) -> float:
    """Expected squared error of `shrunk`, exactly; that of the values themselves is d.

    `d - (2 times (d - 2) - times^2) E 1 / |x|^2`, and `E 1 / |x|^2 = E 1 / (d - 2 + 2 J)` with J Poisson(`length^2 /
    2`).

    Args:
        length: of the vector of means.
        dimensions: d, at least 3.
        times: None for `d - 2`.

    Raises:
        DataError: fewer than three dimensions, or a length below zero.

    Source: james1961estimation.
    """
    if dimensions < 3 or not 0.0 <= number(length) < np.inf:
        raise DataError(
            f"The risk is of three or more dimensions and means of a length >= 0; found {dimensions}, {length!r}."
        )
    mean, c = 0.5 * length**2, dimensions - 2.0 if times is None else number(times)
    width = REACH * np.sqrt(mean) + 50.0
    j = np.arange(max(0, int(mean - width)), int(mean + width) + 1)
    inverse = float(np.sum(poisson.pmf(j, mean) / (dimensions - 2.0 + 2.0 * j)))
    return dimensions - (2.0 * c * (dimensions - 2.0) - c * c) * inverse
