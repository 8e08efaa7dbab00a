"""Which features a new row may have, given a draw: each of some parts or not, or one of some sets.

Parts are features, or categories whose menus are features. What no row had before is left out: what is answered is
given that a new row has none of it.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeAlias

import numpy as np

from ...factors.errors import UnsupportedError
from .correlated import IbpIbp, NoisyOrIbp, Partition
from .samplers.law import Law

LEAST = 1e-300  # rows that have a feature of beliefs that none was drawn to have


@dataclasses.dataclass(frozen=True)
class EachOf:
    """A row has each part or not.

    Attributes:
        log_odds: (parts,) of having it.
        menu: (parts, K) booleans, features of parts; None where parts are features.
    """

    log_odds: np.ndarray
    menu: np.ndarray | None = None

    def draw(self, random: np.random.Generator, rows: int) -> np.ndarray:
        """(rows, K) booleans."""
        has = random.random((rows, len(self.log_odds))) < 1.0 / (1.0 + np.exp(-self.log_odds))
        return has if self.menu is None else has.astype(int) @ self.menu > 0


@dataclasses.dataclass(frozen=True)
class OneOf:
    """A row has one of these sets of features.

    Attributes:
        features: (sets, K) booleans.
        log_probability: (sets,).
    """

    features: np.ndarray
    log_probability: np.ndarray

    def draw(self, random: np.random.Generator, rows: int) -> np.ndarray:
        """(rows, K) booleans."""
        return self.features[random.choice(len(self.features), size=rows, p=np.exp(self.log_probability))]


Choices: TypeAlias = EachOf | OneOf


@functools.singledispatch
def choices_of(law: Any, draw: Any) -> Choices:
    """Of a new row under this law, given a draw of its chains.

    With m rows of N that have a part, a new row has it with probability `m / (N + c)` under the Indian buffet process,
    c its concentration, and `(m + mass / K) / (N + 1 + mass / K)` under the finite prior of K features; and has one
    category with probability `m / N` where each row has one.

    Raises:
        UnsupportedError: a law whose categories may keep features from a row.
    """
    raise UnsupportedError(f"Features of new rows are not drawn under {type(law).__name__}. Use DpIbp or IbpIbp.")


choices_of.register(NoisyOrIbp, choices_of.dispatch(object))


@choices_of.register
def _(law: Law, draw: Any) -> Choices:
    rows, owners = draw.active.shape[0], draw.active.sum(axis=0)
    if law.features is None:
        least = np.maximum(owners - law.discount, LEAST)
        return EachOf(np.log(least) - np.log(rows - owners + draw.concentration + law.discount))
    return EachOf(np.log(owners + draw.mass / law.features) - np.log(rows - owners + 1.0))


@choices_of.register
def _(law: Partition, draw: Any) -> Choices:
    owners = draw.choice.sum(axis=0)
    return OneOf(draw.menu, np.log(owners) - np.log(owners.sum()))


@choices_of.register
def _(law: IbpIbp, draw: Any) -> Choices:
    rows, owners = draw.choice.shape[0], draw.choice.sum(axis=0)
    return EachOf(np.log(owners) - np.log(rows - owners + 1.0), draw.menu)
