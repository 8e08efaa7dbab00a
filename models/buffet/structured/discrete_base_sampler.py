"""The posterior of features that are known beforehand, each with its own share of the rows, for every likelihood."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from ....factors.arrays import Array, Key
from ....factors.errors import ModelError
from ..samplers.law import OfRow
from ..samplers.state import State
from ..samplers.sweeps import Sweep
from ..samplers.uncollapsed import uncollapsed
from .discrete_base import BetaProcess


@dataclasses.dataclass(frozen=True)
class BetaProcessLaw:
    """`BetaProcess` of atoms alone, as the sweep `uncollapsed` uses it: place k is the feature of atom k.

    A row has feature k with the odds `(c q_k + m_k) / (c (1 - q_k) + n - 1 - m_k)`, m_k of the n - 1 others having it.

    Args:
        prior: its atoms and its concentration; both given.

    Raises:
        ModelError: a prior with a continuous part, or of another kind.

    Source: thibaux2007hierarchical.
    """

    prior: BetaProcess

    def __post_init__(self) -> None:
        if not isinstance(self.prior, BetaProcess):
            raise ModelError(f"BetaProcessLaw(prior=) is a BetaProcess of atoms; found {self.prior!r}.")
        if self.prior.mass:
            raise ModelError(
                f"BetaProcessLaw is of atoms alone; found a continuous part of mass {self.prior.mass:g}. Give "
                "BetaProcess without mass=, or Law() for features that are not known."
            )

    @property
    def features(self) -> int:
        """As many as atoms."""
        return len(self.prior.atoms)

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """`uncollapsed` alone."""
        return (uncollapsed,)

    def draw(self, key: Key) -> tuple[Array, Array]:
        """The mass of all atoms and the concentration, both given."""
        return self.first()

    def first(self) -> tuple[Array, Array]:
        """The same."""
        return jnp.asarray(float(np.sum(self.prior.atoms))), jnp.asarray(self.prior.concentration)

    def update(self, key: Key, state: State) -> State:
        """Nothing is learned."""
        return state

    def of_row(self, row: Array, active: Array, state: State) -> OfRow:
        """Odds of the entries of a row given all others; no feature is of a row alone."""
        others = jnp.sum(active, axis=0) - active[row]
        one, zero = (jnp.asarray(shape) for shape in self.prior.shapes)
        odds = jnp.log(one + others) - jnp.log(zero + active.shape[0] - 1.0 - others)
        return OfRow(odds, jnp.zeros(()), self.features)

    def log_of_draw(self, matrix: np.ndarray, weights: np.ndarray, mass: float) -> float:
        """Log probability of a matrix, its columns in the order of the atoms."""
        return self.prior.log_probability(matrix)
