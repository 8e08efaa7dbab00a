"""Predictive distributions in closed form: an argument of a factor is integrated out under the belief about it.

A factor's `closed(arguments)` gets every argument as a `Formula` and returns the `Closed` distribution that is left, or
None where these beliefs leave none: a Poisson count of a Gamma rate is negative binomial, a Gaussian mean adds its
variance to a Gaussian's. What is then still random is integrated by quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

from jaxtyping import PyTree

from .arrays import Array, Exponent

Known: TypeAlias = Any  # a value, or a belief of the family that was asked for


@runtime_checkable
class Formula(Protocol):
    """An argument whose values are not at hand yet: known, a belief, or an expression of such."""

    @property
    def known(self) -> bool:
        """Whether it is a known value as a whole."""
        ...

    def belief(self, family: type) -> Self | None:
        """Itself, where it is a belief of this family as a whole."""
        ...

    def alone(self, *others: Self) -> bool:
        """Whether it is a belief that none of the others depends on."""
        ...

    def given(self, function: Callable[[Known], Array]) -> Self:
        """What the function gives of the known value or of the belief, for one instance: a known value."""
        ...

    def random(self, function: Callable[[Known], PyTree]) -> Self:
        """A new random number, whose belief the function gives of the known value or of the belief."""
        ...

    def number(self, value: float) -> Self:
        """A known number, the same for all instances."""
        ...

    def draw(self, belief: PyTree) -> Self:
        """A new random number of this belief, for each instance one."""
        ...

    def __add__(self, other: Self) -> Self: ...

    def __mul__(self, other: Self) -> Self: ...

    def __truediv__(self, other: Self) -> Self: ...

    def __pow__(self, exponent: Exponent) -> Self: ...


class Closed(NamedTuple):
    """A distribution by the name of its conditional (`conditionals/`), with its arguments."""

    conditional: str
    arguments: Mapping[str, Any]  # the formulas of whoever asked
