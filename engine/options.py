"""Options of a run, and its random key."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import numpy as np

from ..factors.errors import ModelError


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a run: see `infer`."""

    tolerance: float = 1e-6
    max_iterations: int = 1000
    restarts: int = 1
    acceleration: int = 10
    trace_evidence: bool = True
    progress: bool | None = None
    accuracy: str = "default"

    def __post_init__(self) -> None:
        if self.accuracy not in ("default", "best"):
            raise ModelError(
                f"accuracy= is 'default' or 'best'; found {self.accuracy!r}. 'best' treats jointly and exactly what is "
                "affordable, also where a method was asked for."
            )
        for name, low in (("max_iterations", 1), ("restarts", 1), ("acceleration", 0)):
            number = getattr(self, name)
            if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < low:
                raise ModelError(f"{name}= must be a whole number of at least {low}; found {number!r}.")
        if not isinstance(self.tolerance, (int, float, np.number)) or not self.tolerance > 0:
            raise ModelError(
                f"tolerance= is in posterior standard deviations and must be positive; found {self.tolerance!r}. "
                "Try 1e-6."
            )


def key_of(seed: Any) -> np.ndarray:
    """The data of a random key; ModelError for anything but a whole number from 0 to 2^64 - 1."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number < 2**64:
        raise ModelError(
            f"seed= must be a whole number of at least 0; found {seed!r}. The same seed gives the same result."
        )
    return np.asarray([number >> 32, number & 0xFFFFFFFF], np.uint32)
