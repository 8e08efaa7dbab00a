"""What is integrated and over which design: the most accurate of what is expected to cost no more than it may."""

from __future__ import annotations

from typing import NamedTuple

from ...compiler.data.bind import Binding
from ..program import Program
from .cost import of_integration
from .design.designs import MOST, ON_GRID, Design, finest
from .design.designs import affordable as designs
from .hyperparameters import approximate_scalars


class Choice(NamedTuple):
    """The scalars called `names` integrated over `design`, which is expected to take so many `seconds`."""

    names: tuple[str, ...]
    design: Design
    seconds: float


def affordable(program: Program, binding: Binding, effort: float) -> tuple[Choice | None, Choice | None]:
    """What takes at most `effort` seconds, None where nothing does; and the cheapest of all, None where nothing helps.

    Messages of EP that keep moments count as exact. Where a design no coarser over more scalars, given which they are
    exact as well, costs no more than that, it is preferred; where all that matter are too many, the few that a grid
    holds.
    """
    sets = [approximate_scalars(program, binding, most, tolerated=True) for most in (MOST, ON_GRID)]
    tried = [_choices(program, binding, names) for names in dict.fromkeys(sets) if names]
    if not tried:
        return None, None
    cheapest = min((choice for choices in tried for choice in choices), key=lambda choice: choice.seconds)
    found = next((choice for choices in tried for choice in choices if choice.seconds <= effort), None)
    exact = approximate_scalars(program, binding, MOST, tolerated=False)
    if exact and exact not in sets:
        than = cheapest if found is None else found
        finer = [choice for choice in _choices(program, binding, exact) if choice.seconds <= than.seconds]
        better = next((choice for choice in finer if found is None or choice.design.rank <= found.design.rank), None)
        if better is not None:
            cheapest = min(cheapest, better, key=lambda choice: choice.seconds)
            found = better if better.seconds <= effort else found
    return found, cheapest


def at_any_price(program: Program, binding: Binding, names: tuple[str, ...]) -> Choice:
    """The scalars called `names` over the finest design that holds them."""
    return _choice(program, binding, names, finest(_continuous(program, names)))


def _choices(program: Program, binding: Binding, names: tuple[str, ...]) -> list[Choice]:
    return [_choice(program, binding, names, design) for design in designs(_continuous(program, names))]


def _choice(program: Program, binding: Binding, names: tuple[str, ...], design: Design) -> Choice:
    return Choice(names, design, of_integration(program, binding, names, design))


def _continuous(program: Program, names: tuple[str, ...]) -> int:
    return sum(not program.model.randoms[name].domain.is_discrete for name in names)
