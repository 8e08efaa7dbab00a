"""Priors on binary matrices with exchangeable rows: the Indian buffet process and its finite parent."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

from ...factors.errors import DataError
from .checks import binary, counts_of, positive, whole
from .ordering import histories


def harmonic(rows: int, concentration: float = 1.0) -> float:
    """`H_n(c) = sum over j = 1 .. n of c / (c + j - 1)`, the harmonic number for c = 1.

    A sum of positive terms, which a difference of digamma functions would cancel for large c.
    """
    return float(np.sum(concentration / (concentration + np.arange(rows))))


@dataclasses.dataclass(frozen=True)
class IndianBuffet:
    """The Indian buffet process, of one parameter, or of two where `concentration` is not 1.

    Row i has each earlier feature with probability `m / (concentration + i - 1)`, where m of the rows before it have
    it, and Poisson(`mass concentration / (concentration + i - 1)`) new ones. Rows are exchangeable, each has
    Poisson(mass) features, and n rows have Poisson(`mass H_n(concentration)`) features in all. The number of columns is
    no part of a matrix: empty ones count for nothing.

    Args:
        mass: positive; the expected number of features of a row.
        concentration: positive; small where rows share their features, large where each has its own.

    Raises:
        ModelError: a parameter that is not a finite number above zero.

    Source: griffiths2011indian, ghahramani2007bayesian.
    """

    mass: float
    concentration: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", positive("mass", self.mass))
        object.__setattr__(self, "concentration", positive("concentration", self.concentration))

    def expected_features(self, rows: int) -> float:
        """Expected number of features that any of `rows` rows has, `mass H_n(concentration)`; it is Poisson."""
        return self.mass * harmonic(whole("rows", rows), self.concentration)

    def expected_ones(self, rows: int) -> float:
        """Expected number of ones in `rows` rows, `mass rows`."""
        return self.mass * whole("rows", rows)

    def conditional(self, others: Any, rows: int) -> np.ndarray:
        """P(z = 1 | all other entries) of one row, `m / (concentration + rows - 1)`, for features that others have.

        Args:
            others: numbers of the other rows that have each feature, 0 to `rows - 1`; at 0 the answer is 0, since a
                feature of one row alone is born and dies with it (`new_feature_rate`).
            rows: how many rows there are, this one among them.

        Returns:
            Probabilities, shaped as `others`.
        """
        rows = whole("rows", rows)
        return counts_of(others, rows - 1) / (self.concentration + rows - 1.0)

    def new_feature_rate(self, rows: int) -> float:
        """A row of `rows` has Poisson(`mass concentration / (concentration + rows - 1)`) features for itself alone."""
        return self.mass * self.concentration / (self.concentration + whole("rows", rows) - 1.0)

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the matrix up to the order of its columns, that is of its left-ordered form.

        `(mass c)^K exp(-mass H_n(c)) prod_k B(m_k, n - m_k + c) / prod_h K_h!` with c the concentration, K columns that
        are not empty, m_k ones in column k, and K_h columns of each history h.

        Args:
            matrix: (rows, features) of zeros and ones; empty columns count for nothing.

        Returns:
            The log probability; over all left-ordered matrices of so many rows these add up to one.

        Raises:
            DataError: other entries than 0 and 1, or no rows.

        Source: griffiths2011indian, ghahramani2007bayesian.
        """
        values = binary(matrix)
        rows, used = values.shape[0], values[:, values.any(axis=0)]
        return self.log_columns(used.sum(axis=0), rows) - _log_orders(used)

    def log_columns(self, counts: Any, rows: int) -> float:
        """`K log(mass c) - mass H_n(c) + sum_k log B(m_k, n - m_k + c)`: what depends on mass and concentration.

        Args:
            counts: (features,) ones in the columns that are not empty.
            rows: the number of rows.

        Returns:
            The log probability plus `sum_h log K_h!`.
        """
        rows = whole("rows", rows)
        m, c = counts_of(counts, rows, least=1), self.concentration
        return float(m.size * np.log(self.mass * c) - self.mass * harmonic(rows, c) + betaln(m, rows - m + c).sum())


@dataclasses.dataclass(frozen=True)
class BetaBernoulli:
    """The finite model, `weight_k ~ Beta(mass / features, 1)` and `z_nk ~ Bernoulli(weight_k)`.

    With more and more features, its classes of matrices have the probabilities of `IndianBuffet(mass)`.

    Args:
        mass: positive; a row has `mass / (1 + mass / features)` features on average.
        features: at least 1, the number of columns.

    Raises:
        ModelError: a mass that is not a finite number above zero.
        DataError: a number of features that is not a whole number above zero.

    Source: griffiths2011indian.
    """

    mass: float
    features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", positive("mass", self.mass))
        object.__setattr__(self, "features", whole("features", self.features))

    @property
    def shape(self) -> float:
        """`mass / features`, the first parameter of the weights' beta distribution; the second one is 1."""
        return self.mass / self.features

    def expected_features(self, rows: int) -> float:
        """Expected number of columns that are not empty in `rows` rows."""
        return -self.features * float(np.expm1(self._log_empty(whole("rows", rows))))

    def expected_ones(self, rows: int) -> float:
        """Expected number of ones in `rows` rows, `rows mass / (1 + mass / features)`."""
        return whole("rows", rows) * self.mass / (1.0 + self.shape)

    def conditional(self, others: Any, rows: int) -> np.ndarray:
        """P(z = 1 | all other entries) of one row, `(m + mass / features) / (rows + mass / features)`.

        Args:
            others: numbers of the other rows that have each feature, 0 to `rows - 1`.
            rows: how many rows there are, this one among them.

        Returns:
            Probabilities, shaped as `others`.
        """
        rows = whole("rows", rows)
        return (counts_of(others, rows - 1) + self.shape) / (rows + self.shape)

    def log_matrix_probability(self, matrix: Any) -> float:
        """Log probability of the matrix itself, `prod_k a B(m_k + a, n - m_k + 1)` with `a = mass / features`.

        Args:
            matrix: (rows, features) of zeros and ones, all columns, also the empty ones.

        Raises:
            DataError: other entries than 0 and 1, no rows, or another number of columns.
        """
        values = binary(matrix)
        if values.shape[1] != self.features:
            raise DataError(
                f"A matrix of this prior has {self.features} columns; found {values.shape[1]}. Add the empty ones, or "
                "ask for log_probability, of the class, for which these do not matter."
            )
        return self.log_columns(values.sum(axis=0), values.shape[0])

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the matrix up to the order of its columns, that is of its left-ordered form.

        `features! / prod_h K_h!` times the probability of the matrix, with K_h columns of each history h, the empty one
        among them.

        Args:
            matrix: (rows, columns) of zeros and ones with at most `features` columns; those left out are empty.

        Raises:
            DataError: other entries than 0 and 1, no rows, or more columns that are not empty than features.

        Source: griffiths2011indian.
        """
        values = binary(matrix)
        used = values[:, values.any(axis=0)]
        return self.log_columns(used.sum(axis=0), values.shape[0]) + self._log_labels(used.shape[1]) - _log_orders(used)

    def log_columns(self, counts: Any, rows: int) -> float:
        """`sum_k log[a B(m_k + a, n - m_k + 1)]` over all features with `a = mass / features`.

        Args:
            counts: (columns,) ones in at most `features` columns; those left out have none.
            rows: the number of rows.

        Returns:
            The log probability of a matrix with such columns.
        """
        rows = whole("rows", rows)
        counts = counts_of(counts, rows)
        m, a = counts[counts > 0.0], self.shape
        if m.size > self.features:
            raise DataError(f"The prior has {self.features} features; found {m.size} columns that are not empty.")
        return float(
            m.size * np.log(a) + betaln(m + a, rows - m + 1.0).sum() + (self.features - m.size) * self._log_empty(rows)
        )

    def _log_empty(self, rows: int) -> float:
        """Log probability of an empty column, `prod_j j / (j + a)`: exact also where it is nearly zero."""
        return -float(np.log1p(self.shape / np.arange(1, rows + 1)).sum())

    def _log_labels(self, used: int) -> float:
        """Log of features! / (features - used)!."""
        return float(np.log(self.features - np.arange(used)).sum())


def _log_orders(used: np.ndarray) -> float:
    """`sum_h log K_h!` over the histories of the columns."""
    repeats = np.array(list(collections.Counter(histories(used)).values()), dtype=np.float64)
    return float(gammaln(repeats + 1.0).sum())
