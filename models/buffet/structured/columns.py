"""What unbounded priors share: their columns are a Poisson process over what a column can be.

How many columns of each kind a matrix has are independent Poisson numbers. So a prior is known by the rate of each
kind of column and the sum of all rates, and classes of matrices that differ in the order of their columns have the
probability `exp(-sum of rates) prod_k rate(column k) / prod_h K_h!`, K_h columns being of kind h.
"""

from __future__ import annotations

import collections

import numpy as np
from scipy.special import gammaln


def log_of_class(log_rates: np.ndarray, columns: np.ndarray, expected: float) -> float:
    """Log probability of a matrix up to the order of its columns.

    Args:
        log_rates: (features,) log rates of its columns, none of them empty.
        columns: (rows, features) the columns.
        expected: the sum of the rates of all columns that are not empty, the expected number of them.
    """
    kinds = collections.Counter(np.ascontiguousarray(column).tobytes() for column in columns.T)
    repeats = np.array(list(kinds.values()), dtype=np.float64)
    return float(np.sum(log_rates) - expected - gammaln(repeats + 1.0).sum())


def used_columns(values: np.ndarray) -> np.ndarray:
    """Without the columns that are empty."""
    return values[:, values.any(axis=0)]
