"""The beta process with atoms: features that are known beforehand, each with its own share of the base measure.

Where the base measure has an atom q_k, the feature there has the weight Beta(c q_k, c (1 - q_k)), c the concentration;
where it is continuous, features are those of an Indian buffet process. Both parts are independent.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
from scipy.special import betaln

from ....engine.mcmc.keys import generator
from ....engine.support.user_numbers import number
from ....factors.errors import DataError, ModelError
from ..checks import binary, positive, whole
from ..prior import IndianBuffet
from ..sample import Draw, sample_beta_process


@dataclasses.dataclass(frozen=True)
class BetaProcess:
    """The beta-Bernoulli process of a base measure that has atoms, and perhaps a continuous part.

    A matrix has the atoms in its first columns, in their order and also where they are empty, and the features of the
    continuous part, in any order, in those after. The next row has feature k with probability `(c q_k + m_k) / (c +
    n)`, m_k of n rows having it, and Poisson(`c mass / (c + n)`) new features.

    Args:
        atoms: probabilities strictly between 0 and 1: how often a row has each known feature.
        concentration: c, positive; small where a known feature is in nearly all rows or nearly none.
        mass: of the continuous part, at least 0; how many more features a row has on average.

    Raises:
        ModelError: parameters out of range.

    Source: thibaux2007hierarchical.
    """

    atoms: tuple[float, ...]
    concentration: float = 1.0
    mass: float = 0.0

    def __post_init__(self) -> None:
        if np.ndim(self.atoms) != 1:
            raise ModelError(f"Atoms are several probabilities, such as (0.2, 0.5); found {self.atoms!r}.")
        atoms, mass = tuple(number(atom) for atom in self.atoms), number(self.mass)
        wrong = [atom for atom in atoms if not 0.0 < atom < 1.0]
        if wrong:
            raise ModelError(f"An atom of the base measure lies strictly between 0 and 1; found {wrong[0]:g}.")
        if not 0.0 <= mass < np.inf:
            raise ModelError(f"The mass of the continuous part is a finite number >= 0; found {self.mass!r}.")
        object.__setattr__(self, "atoms", atoms)
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "concentration", positive("concentration", self.concentration))

    @property
    def shapes(self) -> tuple[np.ndarray, np.ndarray]:
        """(atoms,) both parameters of the beta distributions of the atoms' weights."""
        own = np.array(self.atoms)
        return self.concentration * own, self.concentration * (1.0 - own)

    def expected_features(self, rows: int) -> float:
        """Expected number of columns that are not empty in `rows` rows."""
        one, zero = self.shapes
        known = -np.expm1(betaln(one, zero + whole("rows", rows)) - betaln(one, zero)).sum()
        rest = self._continuous().expected_features(rows) if self.mass else 0.0
        return float(known + rest)

    def expected_ones(self, rows: int) -> float:
        """Expected number of ones in `rows` rows, `rows` times the mass of the whole base measure."""
        return whole("rows", rows) * (float(np.sum(self.atoms)) + self.mass)

    def predictive(self, matrix: Any) -> tuple[np.ndarray, float]:
        """Of one more row: the probability of each feature, and the rate of new ones.

        Args:
            matrix: (rows, features) of zeros and ones, the atoms first.

        Returns:
            (features,) probabilities, `(c q_k + m_k) / (c + n)`, and the Poisson rate `c mass / (c + n)`.

        Raises:
            DataError: as `log_probability`.
        """
        values = self._checked(matrix)
        share = np.append(self.atoms, np.zeros(values.shape[1] - len(self.atoms)))
        total = self.concentration + len(values)
        return (self.concentration * share + values.sum(axis=0)) / total, self.concentration * self.mass / total

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the matrix: of its atoms as they stand, of the columns after up to their order.

        `prod_k B(c q_k + m_k, c (1 - q_k) + n - m_k) / B(c q_k, c (1 - q_k))` over the atoms, times what
        `IndianBuffet(mass, c)` gives the other columns.

        Args:
            matrix: (rows, features) of zeros and ones, the atoms first; of other features, empty ones count for
                nothing.

        Raises:
            DataError: other entries than 0 and 1, no rows, fewer columns than atoms, or columns that are not empty
                after the atoms where there is no continuous part.

        Source: thibaux2007hierarchical.
        """
        values, (one, zero) = self._checked(matrix), self.shapes
        known, rest = np.split(values, [len(self.atoms)], axis=1)
        m = known.sum(axis=0)
        found = float((betaln(one + m, zero + len(values) - m) - betaln(one, zero)).sum())
        return found + self._continuous().log_probability(rest) if self.mass else found

    def sample(self, rows: int, key: Any) -> Draw:
        """Weights and rows given them: the atoms first, then those features of the continuous part that a row has.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.
        """
        keys, rows = jax.random.split(key), whole("rows", rows)
        random = generator(keys[0])
        weights = random.beta(*self.shapes)
        matrix = random.random((rows, len(weights))) < weights
        if not self.mass:
            return Draw(matrix, weights, 0.0)
        rest = sample_beta_process(self._continuous(), rows, keys[1])
        return Draw(np.concatenate([matrix, rest.matrix], axis=1), np.append(weights, rest.weights), 0.0)

    def _continuous(self) -> IndianBuffet:
        return IndianBuffet(self.mass, self.concentration)

    def _checked(self, matrix: Any) -> np.ndarray:
        values, known = binary(matrix), len(self.atoms)
        if values.shape[1] < known:
            raise DataError(
                f"The base measure has {known} atoms, each with its own column; found {values.shape[1]} columns. Add "
                "the empty ones."
            )
        if not self.mass and values[:, known:].any():
            raise DataError("Columns after the atoms are not empty, but the base measure has no continuous part.")
        return values
