"""Rules: what the values of several arguments of a factor, and of its outcome, must satisfy together.

A domain is about one argument alone (`domains.py`). That bounds must not be reversed, or that there are no more
successes than trials, is a rule of the factor, declared beside its density. Constants are checked against it when the
variable is declared, data when they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Shaped

from .domains import Domain

Given: TypeAlias = Shaped[np.ndarray, "..."]
Holds: TypeAlias = Bool[np.ndarray, "*instances"] | np.bool_  # of one instance a scalar


class Rule(NamedTuple):
    """One requirement.

    Attributes:
        edges: the arguments that it is about, and "out" for the outcome. It is checked where all of them are known.
        holds: `holds(domain, **values)` of the outcome's domain and NumPy arrays of many instances at once, event axes
            last, plate axes alike: a boolean array of the instances, true where the values are allowed.
        says: the requirement in words.
        fix: what to do where it is broken.
    """

    edges: tuple[str, ...]
    holds: Callable[..., Holds]
    says: str
    fix: str


def _finite_interval(domain: Domain, low: Given, high: Given) -> Holds:
    return (low < high) & np.isfinite(low) & np.isfinite(high)


def _within(domain: Domain, out: Given, low: Given, high: Given) -> Holds:
    return (out >= low) & (out <= high)


BOUNDS = Rule(("low", "high"), lambda domain, low, high: low < high, "`low` must be below `high`", "Swap them.")
FINITE_BOUNDS = Rule(
    ("low", "high"), _finite_interval, "`low` must be below `high`, both finite", "Swap or bound them."
)
WITHIN = Rule(
    ("out", "low", "high"),
    _within,
    "an observation must lie between `low` and `high`, beyond which its probability is zero",
    "Correct the data or the bounds.",
)
TRIALS = Rule(
    ("out", "n"),
    lambda domain, out, n: out <= n,
    "there cannot be more successes than trials `n`",
    "Correct the data.",
)


def _counts(domain: Domain, out: Given, n: Given) -> Holds:
    return (out >= 0).all(-1) & (out == np.rint(out)).all(-1) & (out.sum(-1) == n)


COUNTS_OF_CLASSES = Rule(
    ("out", "n"),
    _counts,
    "observed counts must be whole numbers >= 0 whose sum is the number of trials `n`",
    "Correct the data, or give each row its own `n`: an input over the plate of the rows.",
)
INCREASING = Rule(
    ("cutpoints",),
    lambda domain, cutpoints: (np.diff(cutpoints, axis=-1) > 0).all(-1),
    "cutpoints must increase",
    "Sort them, each once.",
)


def inner(edge: str, kind: str = "unit") -> Rule:
    """A probability, or each one of a probability vector, that must be neither 0 nor 1."""

    def holds(domain: Domain, **values: Given) -> Holds:
        (value,) = values.values()
        inside = (value > 0) & (value < 1)
        return inside.all(-1) if kind == "simplex" else inside

    return Rule((edge,), holds, f"`{edge}` must lie strictly between 0 and 1", "Shrink it a little towards the middle.")
