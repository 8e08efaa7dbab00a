"""Blocks of EP for a mixture: terms that a discrete variable gates, of which each is conjugate given its state."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from ..language.nodes import Expr, Plate, Random
from .base import Block
from .energy import EnergyBlock


class Summed(NamedTuple):
    """A discrete variable whose states are summed inside a block: it has one consumer, so nothing is lost."""

    variable: Random


@dataclasses.dataclass(frozen=True, eq=False)
class Parent:
    """A random element that rows are conjugate in, with the number of each term that reads it and as what.

    `opened` is the element at all states of the selector, and `chosen` tells whether each state has one of its own.
    """

    variable: Random
    element: Expr
    opened: Expr
    uses: tuple[tuple[int, str], ...]
    chosen: bool

    def with_uses_of(self, other: Parent) -> Parent:
        """The same element, read by the terms of another as well."""
        return dataclasses.replace(self, uses=(*other.uses, *self.uses))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MixtureBlock(Block):
    """The states of `selector` summed over, element by element.

    `terms` are its own term, first, and all those that it gates; `axes` has the plate that it chooses from in each,
    None where it is no index there; `alike` whether the model cannot tell its states apart. Where the selector is an
    element of a chain it is `kept`: its own term stands in another block, and it has a belief, which gets messages.
    """

    selector: Random
    terms: tuple[EnergyBlock, ...]
    axes: tuple[Plate | None, ...]
    parents: tuple[Parent, ...]
    alike: bool = False
    kept: bool = False

    @property
    def absorbed(self) -> tuple[Summed, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]  # most have none
        """The selector, unless it is kept."""
        return () if self.kept else (Summed(self.selector),)

    @property
    def elements(self) -> tuple[Expr, ...]:
        own = (self.selector,) if self.kept else ()
        return (*own, *(parent.element for parent in self.parents))

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return tuple(arg for term in self.terms for arg in term.args.values())

    @property
    def projects(self) -> bool:
        return True
