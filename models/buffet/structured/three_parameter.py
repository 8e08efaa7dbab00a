"""The Indian buffet process of three parameters: with a discount, features grow in number as a power of the rows.

A discount is taken off the count of every feature, and what it takes is given to new ones. So weights are those of a
stable-beta process: many features of few rows, as many as words of a text that occur but once.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

from ....engine.mcmc.keys import generator
from ....engine.support.user_numbers import number
from ....factors.errors import ModelError
from ..checks import binary, counts_of, positive, whole
from ..sample import Draw
from .columns import log_of_class, used_columns


@dataclasses.dataclass(frozen=True)
class StableBeta:
    """The Indian buffet process with a discount; at discount 0 the process of two parameters.

    Row i has each earlier feature with probability `(m - discount) / (concentration + i - 1)`, where m of the rows
    before it have it, and Poisson(rate_i) new ones, `rate_1 = mass` and `rate_(i+1) = rate_i (concentration + discount
    + i - 1) / (concentration + i)`. Rows are exchangeable, each has Poisson(mass) features.

    Args:
        mass: positive; the expected number of features of a row.
        concentration: above minus the discount.
        discount: at least 0, below 1; n rows have of the order of `n^discount` features, where it is not 0.

    Raises:
        ModelError: parameters out of range.

    Source: teh2009indian.
    """

    mass: float
    concentration: float = 1.0
    discount: float = 0.0

    def __post_init__(self) -> None:
        discount, concentration = number(self.discount), number(self.concentration)
        if not 0.0 <= discount < 1.0:
            raise ModelError(f"The discount is a number of at least 0 and below 1; found {self.discount!r}.")
        if not -discount < concentration < np.inf:
            raise ModelError(
                f"The concentration is a finite number > -discount, here {-discount:g}; found {self.concentration!r}."
            )
        object.__setattr__(self, "mass", positive("mass", self.mass))
        object.__setattr__(self, "concentration", concentration)
        object.__setattr__(self, "discount", discount)

    def new_feature_rates(self, rows: int) -> np.ndarray:
        """(rows,) how many features each row is expected to be the first to have; these numbers are Poisson."""
        i = np.arange(1, whole("rows", rows))
        steps = (self.concentration + self.discount + i - 1.0) / (self.concentration + i)
        return self.mass * np.cumprod(np.append(1.0, steps))

    def expected_features(self, rows: int) -> float:
        """Expected number of features that any of `rows` rows has; it is Poisson."""
        return float(self.new_feature_rates(rows).sum())

    def expected_ones(self, rows: int) -> float:
        """Expected number of ones in `rows` rows, `mass rows`."""
        return self.mass * whole("rows", rows)

    def conditional(self, others: Any, rows: int) -> np.ndarray:
        """P(z = 1 | all other entries) of one row, `(m - discount) / (concentration + rows - 1)`, for m > 0.

        Args:
            others: numbers of the other rows that have each feature, 0 to `rows - 1`; at 0 the answer is 0.
            rows: how many rows there are, this one among them.
        """
        m = counts_of(others, whole("rows", rows) - 1)
        return np.where(m > 0.0, m - self.discount, 0.0) / (self.concentration + rows - 1.0)

    def new_feature_rate(self, rows: int) -> float:
        """A row of `rows` has Poisson(this) features for itself alone."""
        return float(self.new_feature_rates(rows)[-1])

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the matrix up to the order of its columns.

        `exp(-E) prod_k [mass Gamma(1 + c) / (Gamma(1 - d) Gamma(c + d)) B(m_k - d, n - m_k + c + d)] / prod_h K_h!`, E
        the expected number of features, c the concentration, d the discount, m_k ones in column k, K_h columns alike.

        Args:
            matrix: (rows, features) of zeros and ones; empty columns count for nothing.

        Raises:
            DataError: other entries than 0 and 1, or no rows.

        Source: teh2009indian.
        """
        values = used_columns(binary(matrix))
        rows = len(values)
        return log_of_class(self.log_rates(values.sum(axis=0), rows), values, self.expected_features(rows))

    def log_rates(self, counts: Any, rows: int) -> np.ndarray:
        """Log expected numbers of columns with their ones in given rows, by how many ones (1 to `rows`) that are."""
        m, c, d = counts_of(counts, whole("rows", rows), least=1), self.concentration, self.discount
        first = np.log(self.mass) + gammaln(1.0 + c) - gammaln(1.0 - d) - gammaln(c + d)
        return first + betaln(m - d, rows - m + c + d)

    def sample(self, rows: int, key: Any) -> np.ndarray:
        """(rows, features) booleans: each row takes features of rows before it, and new ones; none is empty.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.

        Source: teh2009indian.
        """
        random = generator(key)
        ends = np.cumsum(random.poisson(self.new_feature_rates(rows)))
        matrix = np.zeros((rows, ends[-1]), dtype=bool)
        counts, had = np.zeros(ends[-1]), 0
        for before, (row, end) in enumerate(zip(matrix, ends, strict=True)):
            row[:had] = random.random(had) * (self.concentration + before) < counts[:had] - self.discount
            row[had:end] = True
            counts += row
            had = end
        return matrix

    def sample_weights(self, rows: int, key: Any) -> Draw:
        """The weights that some row has, by the first row that has each, and the rows given the weights.

        Weights are a Poisson process of intensity `mass Gamma(1 + c) / (Gamma(1 - d) Gamma(c + d)) x^(-1 - d)
        (1 - x)^(c + d - 1)`; one that row i is the first to have is Beta(1 - d, c + d + i - 1).

        Args:
            rows: how many rows.
            key: a key of `jax.random`.

        Source: teh2009indian.
        """
        random = generator(key)
        first = np.repeat(np.arange(rows), random.poisson(self.new_feature_rates(rows)))
        weights = random.beta(1.0 - self.discount, self.concentration + self.discount + first)
        row = np.arange(rows)[:, None]
        matrix = random.random((rows, len(weights))) < weights
        return Draw((matrix & (row > first)) | (row == first), weights, 0.0)
