"""Blocks of VMP and NCVMP: the message to a variable is the gradient of an expected log density in its moments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..language.nodes import Expr
from .base import Block, Gate


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EnergyBlock(Block):
    """A term whose log density is averaged over the beliefs, in force where its `gates` are open."""

    factor: Any
    args: Mapping[str, Expr]
    gates: tuple[Gate, ...] = ()
    constant: bool = False

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return tuple(self.args.values())
