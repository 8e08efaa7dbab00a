"""Blocks of VMP and NCVMP: the message to a variable is the gradient of an expected log density in its moments."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from ..language.nodes import Expr
from .base import Block, Gate


class Composition(NamedTuple):
    """Independent random numbers, and data, of which some expressions are functions, element by element."""

    numbers: tuple[Expr, ...]
    data: tuple[Expr, ...]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EnergyBlock(Block):
    """A term whose log density is averaged over the beliefs, in force where its `gates` are open.

    Where the arguments have no moments by rule, `composed` has the independent numbers and the data that the outcome
    and the arguments are functions of: the average is over these.
    """

    factor: Any
    gates: tuple[Gate, ...] = ()
    constant: bool = False
    composed: Composition | None = None
