"""What a sweep is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Rows
from .law import Law
from .state import Outcome, State

Sweep: TypeAlias = Callable[[Key, Rows, State, Likelihood, Law], Outcome]


@runtime_checkable
class OtherLaw(Protocol):
    """A prior of the matrix that is none of those of `Law`, and has sweeps of its own."""

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Those that are for it, the first by default."""
        ...

    @property
    def features(self) -> int | None:
        """How many there are, None where it has no end."""
        ...

    def draw(self, key: Key) -> tuple[Array, Array]:
        """Mass and concentration from their priors."""
        ...

    def first(self) -> tuple[Array, Array]:
        """Where chains begin."""
        ...

    def update(self, key: Key, state: State) -> State:
        """Its numbers drawn given the matrix."""
        ...

    def log_of_draw(self, matrix: np.ndarray, weights: np.ndarray, mass: float) -> float:
        """Log probability of a draw's (rows, features) matrix, whose columns no row may have, up to their order."""
        ...


def name_of(sweep: Sweep) -> str:
    """Of a function, or of a sweep that is made of others."""
    return getattr(sweep, "__qualname__", "") or repr(sweep)
