"""The Markov Indian buffet: rows are times, and a feature that is on tends to stay on.

Each feature is a Markov chain of two states, off before the first row. It is switched on with a probability of its own,
of which infinitely many are tiny, and stays on with another. As the prior of an infinite factorial hidden Markov model.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from ....engine.mcmc.keys import generator
from ....factors.errors import DataError
from ..checks import binary, positive, whole
from ..prior import harmonic
from .columns import log_of_class, used_columns


class Switches(NamedTuple):
    """How often columns go from one state to another, each (features,): the row before the first is off."""

    off_off: np.ndarray
    off_on: np.ndarray
    on_off: np.ndarray
    on_on: np.ndarray


def switches(values: np.ndarray) -> Switches:
    """Of a (rows, features) array of booleans."""
    before = np.concatenate([np.zeros((1, values.shape[1]), bool), values[:-1]])
    pairs = ((~before, ~values), (~before, values), (before, ~values), (before, values))
    return Switches(*(np.sum(one & two, axis=0) for one, two in pairs))


@dataclasses.dataclass(frozen=True)
class MarkovBuffet:
    """The Markov Indian buffet process.

    The limit, for many features, of chains with `P(on | off) ~ Beta(mass / features, 1)` and `P(on | on) ~ Beta(stay,
    leave)`, off before the first row. So row t has Poisson(`mass / t`) features that no row before it had; one that the
    row before had stays with probability `(stay + on_on) / (stay + leave + on_on + on_off)`, and one that was on before
    comes back with probability `off_on / (1 + off_on + off_off)`, each counted in the rows before. Columns are
    exchangeable, rows are not.

    Args:
        mass: positive.
        stay: positive.
        leave: positive.

    Raises:
        ModelError: a parameter that is not a finite number above zero.

    Source: vangael2008infinite.
    """

    mass: float
    stay: float = 1.0
    leave: float = 1.0

    def __post_init__(self) -> None:
        for name in ("mass", "stay", "leave"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def expected_features(self, rows: int) -> float:
        """Expected number of features that any of `rows` rows has, `mass H_rows`, as if rows were exchangeable; it is
        Poisson."""
        return self.mass * harmonic(whole("rows", rows))

    def expected_on(self, rows: int) -> np.ndarray:
        """(rows,) expected number of features that each row has; it is Poisson.

        `mass sum over s = 1 .. t of (E b^s - E (b - 1)^s) / s` for row t, b ~ Beta(stay, leave): `mass` for the first.
        """
        s = np.arange(1, whole("rows", rows) + 1)
        moment = np.exp(betaln(self.stay + s, self.leave) - betaln(self.stay, self.leave))
        other = np.exp(betaln(self.stay, self.leave + s) - betaln(self.stay, self.leave))
        return self.mass * np.cumsum((moment - (-1.0) ** s * other) / s)

    def expected_ones(self, rows: int) -> float:
        """Expected number of ones in `rows` rows."""
        return float(self.expected_on(rows).sum())

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the matrix up to the order of its columns.

        `mass^K exp(-mass H_n) prod_k B(off_on, off_off + 1) B(stay + on_on, leave + on_off) / B(stay, leave) / prod_h
        K_h!`, with how often column k goes from one state to another, and K_h columns alike.

        Args:
            matrix: (rows, features) of zeros and ones, in the order of time; empty columns count for nothing.

        Raises:
            DataError: other entries than 0 and 1, or no rows.

        Source: vangael2008infinite.
        """
        values = used_columns(binary(matrix))
        found = switches(values)
        rates = np.log(self.mass) + betaln(found.off_on, found.off_off + 1.0) + _log_staying(self, found)
        return log_of_class(rates, values, self.expected_features(len(values)))

    def sample(self, rows: int, key: Any) -> np.ndarray:
        """(rows, features) booleans, row by row, no column empty.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.

        Source: vangael2008infinite.
        """
        random = generator(key)
        ends = np.cumsum(random.poisson(self.mass / np.arange(1, whole("rows", rows) + 1)))
        matrix = np.zeros((rows, ends[-1]), dtype=bool)
        had = 0
        for n, end in enumerate(ends):
            if had:
                past = matrix[:n, :had]
                count = switches(past)
                staying = (self.stay + count.on_on) / (self.stay + self.leave + count.on_on + count.on_off)
                coming = count.off_on / (1.0 + count.off_on + count.off_off)
                matrix[n, :had] = random.random(had) < np.where(past[-1], staying, coming)
            matrix[n, had:end] = True
            had = end
        return matrix


@dataclasses.dataclass(frozen=True)
class FiniteMarkovBuffet:
    """So many chains with `P(on | off) ~ Beta(mass / features, 1)` and `P(on | on) ~ Beta(stay, leave)`: the parent.

    Args:
        mass: positive.
        features: the number of columns.
        stay: positive.
        leave: positive.

    Raises:
        ModelError: a parameter that is not a finite number above zero.
        DataError: a number of features that is not a whole number above zero.

    Source: vangael2008infinite.
    """

    mass: float
    features: int
    stay: float = 1.0
    leave: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", whole("features", self.features))
        for name in ("mass", "stay", "leave"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def log_matrix_probability(self, matrix: Any) -> float:
        """Log probability of the matrix itself, `prod_k a B(a + off_on, 1 + off_off) B(stay + on_on, leave + on_off) /
        B(stay, leave)` with `a = mass / features`.

        Args:
            matrix: (rows, features) of zeros and ones, all columns.

        Raises:
            DataError: other entries than 0 and 1, no rows, or another number of columns.
        """
        values = binary(matrix)
        if values.shape[1] != self.features:
            raise DataError(f"A matrix of this prior has {self.features} columns; found {values.shape[1]}.")
        found, a = switches(values), self.mass / self.features
        return float((np.log(a) + betaln(a + found.off_on, 1.0 + found.off_off) + _log_staying(self, found)).sum())

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the matrix up to the order of its columns, empty ones among them: that of the matrix times
        `features! / prod_h K_h!`.

        Args:
            matrix: (rows, columns) of at most `features` columns; those left out are empty.

        Raises:
            DataError: other entries than 0 and 1, no rows, or too many columns.
        """
        used = used_columns(binary(matrix))
        empty = self.features - used.shape[1]
        if empty < 0:
            raise DataError(f"The prior has {self.features} features; found {used.shape[1]} columns not empty.")
        orders = log_of_class(np.zeros(0), used, 0.0) + gammaln(self.features + 1.0) - gammaln(empty + 1.0)
        return self.log_matrix_probability(np.pad(used, [(0, 0), (0, empty)])) + float(orders)

    def sample(self, rows: int, key: Any) -> np.ndarray:
        """(rows, features) booleans, all columns.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.
        """
        random = generator(key)
        switch_on = random.beta(self.mass / self.features, 1.0, self.features)
        stay_on = random.beta(self.stay, self.leave, self.features)
        matrix, now = np.zeros((whole("rows", rows), self.features), dtype=bool), np.zeros(self.features, dtype=bool)
        for row in matrix:
            now = random.random(self.features) < np.where(now, stay_on, switch_on)
            row[:] = now
        return matrix


def _log_staying(prior: MarkovBuffet | FiniteMarkovBuffet, found: Switches) -> np.ndarray:
    """(features,) what columns have for leaving or staying on."""
    return betaln(prior.stay + found.on_on, prior.leave + found.on_off) - betaln(prior.stay, prior.leave)
