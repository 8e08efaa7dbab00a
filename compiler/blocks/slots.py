"""Blocks of EP for any factor, from its log density: a few random numbers are integrated, discrete states summed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...factors.domains import Domain
from ..language.nodes import Expr, Random
from .base import Block


@dataclasses.dataclass(frozen=True, eq=False)
class Edge:
    """One scalar random number of an instance; `direction` is data for a vector, `expr` how it is written."""

    variable: Random
    element: Expr
    direction: Expr | None
    expr: Expr


Members = tuple[tuple[int, Expr], ...]  # number of an edge, its coefficient


@dataclasses.dataclass(frozen=True, eq=False)
class Slot:
    """A random argument for quadrature: `expr` = sum of coefficient * edge + offset; one bare edge if not real."""

    domain: Domain
    expr: Expr
    members: Members
    offset: Expr | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Quantity:
    """sum of coefficient * edge over `members`, plus `shift`."""

    members: Members = ()
    shift: Expr | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Branch:
    """The factor given the discrete states.

    `link` is "density" where all random arguments are `slots`; else it names a function of one real quantity, sum of
    coefficient * edge over `members`, plus `shift`, integrated in closed form at every value of the slots. `side`, a
    quantity of the same kind, confines a branch to where it is positive. With a `half`, 1 or -1, the only slot is
    integrated above or below the point where the coefficient of the only edge vanishes, at which the function jumps.
    """

    factor: Any
    link: str
    out: Expr | None
    args: Mapping[str, Expr]
    slots: tuple[Slot, ...] = ()
    members: Members = ()
    shift: Expr | None = None
    side: Quantity | None = None
    half: int = 0


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SlotsBlock(Block):
    """All branches of a factor and the edges that they share.

    `discrete` are the elements whose states are summed over, `selector` the number of the one that chooses the case
    (its states in order), None where there is a single one. A case is the sum of its branches, which exclude each
    other: several where a maximum has been split into its sides.
    """

    edges: tuple[Edge, ...]
    discrete: tuple[Expr, ...]
    cases: tuple[tuple[Branch, ...], ...]
    selector: int | None = None
    atoms: tuple[Expr, ...] = ()

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches of all cases."""
        return tuple(branch for case in self.cases for branch in case)

    @property
    def elements(self) -> tuple[Expr, ...]:
        return (*(edge.element for edge in self.edges), *self.atoms)

    @property
    def projects(self) -> bool:
        return True
