"""Blocks of VMP and NCVMP: the message to a variable is the gradient of an expected log density in its moments."""

from __future__ import annotations

import dataclasses
from typing import Any

from .base import Block, Gate


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EnergyBlock(Block):
    """A term whose log density is averaged over the beliefs, in force where its `gates` are open."""

    factor: Any
    gates: tuple[Gate, ...] = ()
    constant: bool = False
