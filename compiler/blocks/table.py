"""Blocks of EP over discrete states: belief propagation by tables."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

from ..language.nodes import Expr
from .base import Block


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TableBlock(Block):
    """log f at all states of the discrete elements `atoms`, the outcome among them where it is random."""

    atoms: tuple[Expr, ...]

    @property
    @abc.abstractmethod
    def roots(self) -> list[Expr]:
        """The expressions that the table is made of."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TruthTableBlock(TableBlock):
    """The outcome is the value of a boolean or integer `expression`."""

    expression: Expr

    @property
    def roots(self) -> list[Expr]:
        return [self.expression, self.out]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ConditionalTableBlock(TableBlock):
    """The outcome has the probabilities `args` of a discrete term: data that random variables index.

    A `selector` chooses among several of them, in the order of its states.
    """

    factor: Any
    selector: Expr | None = None

    @property
    def roots(self) -> list[Expr]:
        return [*self.args.values(), *([] if self.selector is None else [self.selector]), self.out]
