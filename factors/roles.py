"""Roles: what the arguments of a factor are to each other, for operators that are exact for one form of density alone.

A linear form of Gaussians, a table of probabilities or a chain has an operator of its own where the factor is of one of
these forms. The factor says so in its own file, and says which of its arguments is which; nobody asks for its name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from jaxtyping import PyTree

from .arrays import Array


@dataclasses.dataclass(frozen=True)
class Role:
    """What a factor is. `states` is the kind of domain of the chains and trees whose transitions it may be, if any."""

    states: ClassVar[str | None] = None


@dataclasses.dataclass(frozen=True)
class LinearGaussian(Role):
    """out ~ N(mean, 1 / precision): the names of both arguments."""

    mean: str = "mean"
    precision: str = "precision"


@dataclasses.dataclass(frozen=True)
class ScalarGaussian(LinearGaussian):
    """A number about a real mean, with a positive precision."""

    states: ClassVar[str | None] = "real"


@dataclasses.dataclass(frozen=True)
class VectorGaussian(LinearGaussian):
    """A vector about a vector, with a precision matrix."""

    states: ClassVar[str | None] = "vector"


@dataclasses.dataclass(frozen=True)
class IsotropicGaussian(LinearGaussian):
    """A vector about a vector, with one positive precision for all coordinates."""


@dataclasses.dataclass(frozen=True)
class Table(Role):
    """A discrete outcome that has the probabilities of the argument of this name.

    `log_chance(probability, out)` is the log probability of one outcome, and `belief(mean)` the belief about an outcome
    of which the mean probabilities are known.
    """

    log_chance: Callable[[Array, Array], Array]
    belief: Callable[[Array], PyTree]
    probability: str = "probability"


@dataclasses.dataclass(frozen=True)
class TruthTable(Table):
    """Of true and false: one probability, that of true."""

    states: ClassVar[str | None] = "boolean"


@dataclasses.dataclass(frozen=True)
class ClassTable(Table):
    """Of classes: a probability vector."""

    states: ClassVar[str | None] = "category"


@dataclasses.dataclass(frozen=True)
class Spike(Role):
    """Exactly zero, but for this probability; else Gaussian about zero with this precision."""

    probability: str = "probability"
    precision: str = "precision"


@dataclasses.dataclass(frozen=True)
class Process(Role):
    """A function of `inputs` about `mean`, jointly Gaussian at all of them; further arguments are its kernel's."""

    inputs: str = "inputs"
    mean: str = "mean"


@runtime_checkable
class HasRole(Protocol):
    """A factor, as far as its role is concerned."""

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> Role | None: ...


@runtime_checkable
class Applied(Protocol):
    """A factor and its arguments: a term, or a block of the compiler."""

    @property
    def factor(self) -> HasRole: ...

    @property
    def args(self) -> Mapping[str, Any]: ...


def transition(factors: Iterable[HasRole], states: str) -> str:
    """The name of the factor that moves a chain of this kind of states."""
    return next(factor.name for factor in factors if factor.role is not None and factor.role.states == states)


def gaussian_arguments(block: Applied) -> tuple[Any, Any]:
    """Mean and precision of a linear Gaussian term or block: of all that has a factor and its arguments."""
    role, args = block.factor.role, block.args
    assert isinstance(role, LinearGaussian)
    return args[role.mean], args[role.precision]


def replaced(block: Applied, **arguments: Any) -> Mapping[str, Any]:
    """The arguments of a linear Gaussian with another `mean` or `precision`."""
    return {**block.args, **{getattr(block.factor.role, part): value for part, value in arguments.items()}}
