"""What a sweep is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ....factors.arrays import Key
from ..likelihoods.contract import Likelihood, Rows
from .law import Law
from .state import Outcome, State

Sweep: TypeAlias = Callable[[Key, Rows, State, Likelihood, Law], Outcome]


def name_of(sweep: Sweep) -> str:
    """Of a function, or of a sweep that is made of others."""
    return getattr(sweep, "__qualname__", "") or repr(sweep)
