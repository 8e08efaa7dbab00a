"""What all blocks have: a factor's instances, the variables that they touch, and how their messages are computed."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from ..language.nodes import Expr, Plate
from ..methods import Method

B = TypeVar("B", bound="Block")


@dataclasses.dataclass(frozen=True)
class Choice:
    """How the messages of a block are computed, and why: what `explain` prints."""

    method: Method
    operator: str
    accuracy: str
    reason: str


@dataclasses.dataclass(frozen=True, eq=False)
class Gate:
    """A block is in force only where `selector` has a value: its case number, or its position on the plate `axis`."""

    selector: Expr
    axis: Plate | None = None
    case: int | None = None


@dataclasses.dataclass(frozen=True)
class SwitchCase:
    """One case of the switch that generates a variable, by its number in the order in which it was written."""

    variable: str
    number: int

    def __str__(self) -> str:
        return f"{self.variable} (case {self.number})"


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Block(abc.ABC):
    """All instances of one factor over `plates`.

    `latent` names the random variables that it touches, `out` is the expression that the factor generates, None where
    it generates several, `args` are the arguments of its term, where it comes from one. `where` are data that say which
    instances are in the block: those where all are true. `case` is the case of a switch that it is, if any.
    """

    name: str
    plates: tuple[Plate, ...]
    latent: tuple[str, ...]
    choice: Choice
    out: Any = None
    args: Mapping[str, Expr] = dataclasses.field(default_factory=dict)
    where: tuple[Expr, ...] = ()
    case: SwitchCase | None = None

    # What most blocks have not.
    gates: ClassVar[tuple[Gate, ...]] = ()
    atoms: ClassVar[tuple[Expr, ...]] = ()  # discrete elements that it sends messages to
    absorbed: ClassVar[tuple[Any, ...]] = ()  # Gaussian variables that are integrated out inside it
    parameters: ClassVar[tuple[str, ...]] = ()  # those of `latent` that it meets through their moments, as VMP does
    constant: ClassVar[bool] = False  # its message does not change during inference
    over: ClassVar[Plate | None] = None  # the last of `plates`, where a site couples all of its elements

    @property
    def source(self) -> str:
        """The name in the model of what the factor belongs to: for a case that of the variable."""
        return self.name if self.case is None else self.case.variable

    @property
    def method(self) -> Method:
        """The method by which the messages are computed."""
        return self.choice.method

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """The expressions of the factor's arguments."""
        return tuple(self.args.values())

    @property
    def elements(self) -> tuple[Expr, ...]:
        """What an instance sends messages to."""
        return self.atoms

    @property
    def independent(self) -> tuple[Plate, ...]:
        """The plates of independent instances: a block that is solved as a whole is one over all of its elements."""
        return self.plates

    @property
    def projects(self) -> bool:
        """Whether EP keeps only moments of the factor times the cavities."""
        return False

    def remade(self, kind: type[B], **fields: Any) -> B:
        """A block of another kind: what all blocks have as here or in `fields`, which has the rest."""
        common = {field.name: getattr(self, field.name) for field in dataclasses.fields(Block)}
        return kind(**{**common, **fields})

    def chosen(self, **changes: Method | str) -> Self:
        """The same block with other parts of its choice."""
        return dataclasses.replace(self, choice=dataclasses.replace(self.choice, **changes))
