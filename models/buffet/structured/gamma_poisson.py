"""Features that a row can have several times: counts of infinitely many features, from a gamma process.

Each feature has a rate, and rows have it a Poisson number of times. As the beta process of binary features, so the
gamma process has infinitely many rates of which few are not tiny.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.special import gammaln

from ....engine.mcmc.keys import generator
from ....factors.errors import DataError
from ..checks import positive, whole
from .columns import log_of_class, used_columns


@dataclasses.dataclass(frozen=True)
class GammaPoisson:
    """The infinite gamma-Poisson process of counts.

    The limit, for many features, of `rate_k ~ Gamma(mass / features, precision)` and `count_nk ~ Poisson(rate_k)`. Row
    i has each earlier feature NegativeBinomial(m, (i - 1 + precision) / (i + precision)) times, m being how often the
    rows before it have it altogether, and Poisson(`mass log((i + precision) / (i - 1 + precision))`) new features, each
    a logarithmic number of times, of probability proportional to `(i + precision)^-count / count`.

    Args:
        mass: positive; the sum of all rates is Gamma(mass, precision).
        precision: positive, of the rates.

    Raises:
        ModelError: a parameter that is not a finite number above zero.

    Source: titsias2007infinite.
    """

    mass: float
    precision: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", positive("mass", self.mass))
        object.__setattr__(self, "precision", positive("precision", self.precision))

    def expected_features(self, rows: int) -> float:
        """Expected number of features that any of `rows` rows has, `mass log(1 + rows / precision)`; it is Poisson."""
        return self.mass * float(np.log1p(whole("rows", rows) / self.precision))

    def expected_total(self, rows: int) -> float:
        """Expected sum of all counts, `rows mass / precision`; it is negative binomial."""
        return whole("rows", rows) * self.mass / self.precision

    def log_conditional(self, count: Any, others: Any, rows: int) -> np.ndarray:
        """Log probability of a row's count of a feature given how often the other rows have it.

        `Gamma(m + z) / (Gamma(m) z!) p^m (1 - p)^z`, `p = (rows - 1 + precision) / (rows + precision)`.

        Args:
            count: z, whole numbers from 0.
            others: m, whole numbers from 1, that broadcast with them.
            rows: how many rows there are, this one among them.
        """
        z, m = counts(count), counts(others)
        if (m < 1.0).any():
            raise DataError("A feature that no other row has comes from new_feature_rate, not from this.")
        ahead = whole("rows", rows) + self.precision
        log_stay, log_more = np.log1p(-1.0 / ahead), -np.log(ahead)
        return gammaln(m + z) - gammaln(m) - gammaln(z + 1.0) + m * log_stay + z * log_more

    def new_feature_rate(self, rows: int) -> float:
        """A row of `rows` has Poisson(`mass log((rows + precision) / (rows - 1 + precision))`) features alone."""
        return -self.mass * float(np.log1p(-1.0 / (whole("rows", rows) + self.precision)))

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the counts up to the order of columns.

        `(precision / (n + precision))^mass prod_k mass (m_k - 1)! / ((n + precision)^m_k prod_n z_nk!) / prod_h K_h!`,
        with m_k the sum of column k, and K_h columns alike.

        Args:
            matrix: (rows, features) of whole numbers from 0; empty columns count for nothing.

        Raises:
            DataError: other entries, or no rows.

        Source: titsias2007infinite.
        """
        values = used_columns(_counts_matrix(matrix))
        rows, m = len(values), values.sum(axis=0)
        own = gammaln(m) - m * np.log(rows + self.precision) - gammaln(values + 1.0).sum(axis=0)
        return log_of_class(np.log(self.mass) + own, values, self.expected_features(rows))

    def sample(self, rows: int, key: Any) -> np.ndarray:
        """(rows, features) whole numbers: row by row, no column empty.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.

        Source: titsias2007infinite.
        """
        random, ahead = generator(key), np.arange(1, whole("rows", rows) + 1) + self.precision
        ends = np.cumsum(random.poisson(-self.mass * np.log1p(-1.0 / ahead)))
        matrix = np.zeros((rows, ends[-1]), dtype=np.int64)
        had = 0
        for n, end in enumerate(ends):
            matrix[n, :had] = random.negative_binomial(matrix[:n, :had].sum(axis=0), 1.0 - 1.0 / ahead[n])
            matrix[n, had:end] = random.logseries(1.0 / ahead[n], end - had)
            had = end
        return matrix


@dataclasses.dataclass(frozen=True)
class FiniteGammaPoisson:
    """`rate_k ~ Gamma(mass / features, precision)` and `count_nk ~ Poisson(rate_k)`: the finite parent.

    Args:
        mass: positive.
        features: the number of columns.
        precision: positive.

    Raises:
        ModelError: a parameter that is not a finite number above zero.
        DataError: a number of features that is not a whole number above zero.

    Source: titsias2007infinite.
    """

    mass: float
    features: int
    precision: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", positive("mass", self.mass))
        object.__setattr__(self, "precision", positive("precision", self.precision))
        object.__setattr__(self, "features", whole("features", self.features))

    def log_matrix_probability(self, matrix: Any) -> float:
        """Log probability of the matrix itself, its rates integrated out.

        `prod_k Gamma(a + m_k) precision^a / (Gamma(a) (n + precision)^(a + m_k) prod_n z_nk!)`, `a = mass / features`.

        Args:
            matrix: (rows, features) of whole numbers from 0, all columns.

        Raises:
            DataError: other entries, no rows, or another number of columns.
        """
        values = _counts_matrix(matrix)
        if values.shape[1] != self.features:
            raise DataError(f"A matrix of this prior has {self.features} columns; found {values.shape[1]}.")
        a, m = self.mass / self.features, values.sum(axis=0)
        own = gammaln(a + m) - gammaln(a) + a * np.log(self.precision) - (a + m) * np.log(len(values) + self.precision)
        return float(own.sum() - gammaln(values + 1.0).sum())

    def sample(self, rows: int, key: Any) -> np.ndarray:
        """(rows, features) whole numbers, all columns.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.
        """
        random = generator(key)
        rates = random.gamma(self.mass / self.features, 1.0 / self.precision, self.features)
        return random.poisson(rates, (whole("rows", rows), self.features))


def counts(values: Any) -> np.ndarray:
    """As float64; DataError unless they are whole numbers from 0."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"Counts are whole numbers from 0; found {values!r}.") from None
    wrong = found[~((found >= 0.0) & (found == np.floor(found)) & (found < np.inf))]
    if wrong.size:
        raise DataError(f"Counts are whole numbers from 0; found {wrong.flat[0]}.")
    return found


def _counts_matrix(matrix: Any) -> np.ndarray:
    values = counts(matrix)
    if values.ndim != 2 or len(values) < 1:
        raise DataError(f"A matrix of counts has two axes and at least one row; found the shape {values.shape}.")
    return values
