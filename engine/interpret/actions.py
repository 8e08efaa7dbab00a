"""What was written of a jaxpr as closures over a list of slots, made once and run as often as one likes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from . import rules
from .equation import Function
from .listing import Listing, Part
from .work import Meter

Action = Callable[[list[Any]], None]


class Body:
    """A jaxpr that is run many times, its first inputs staying as they are."""

    def __init__(self, meter: Meter, listing: Listing) -> None:
        self.once, self.turn = Steps(meter, listing.once), Steps(meter, listing.turn)

    def bind(self, constants: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """The function of the other inputs."""
        shared: list[Any] | None = None

        def turn(moving: Sequence[Any]) -> list[Any]:
            nonlocal shared
            if shared is None:  # not before the first turn: a loop may have none
                shared = self.once(constants)
            return self.turn([*shared, *moving])

        return turn


class Steps:
    """The outputs of some steps as a function of their inputs."""

    def __init__(self, meter: Meter, part: Part) -> None:
        self._meter = meter
        self._work, equations, steps, self._rest, self._give = part
        made = [(rules.function_of(equation, partial(Body, meter)), equation.single) for equation in equations]
        self.actions = [_action(*made[place], ins, outs) for place, ins, outs in steps]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs."""
        self._meter.spend(self._work)
        slots = [*inputs, *self._rest]
        for action in self.actions:
            action(slots)
        return [slots[place] for place in self._give]


def _action(function: Function, single: bool, ins: Sequence[int], outs: Sequence[int]) -> Action:
    """A step on slots."""
    if not single:
        return _many(function, ins, outs)
    (out,) = outs
    if len(ins) == 1:
        return _unary(function, ins[0], out)
    if len(ins) == 2:
        return _binary(function, ins[0], ins[1], out)
    if len(ins) == 3:
        return _ternary(function, ins[0], ins[1], ins[2], out)

    def action(slots: list[Any]) -> None:
        slots[out] = function(*[slots[place] for place in ins])

    return action


def _unary(function: Function, a: int, out: int) -> Action:
    def action(slots: list[Any]) -> None:
        slots[out] = function(slots[a])

    return action


def _binary(function: Function, a: int, b: int, out: int) -> Action:
    def action(slots: list[Any]) -> None:
        slots[out] = function(slots[a], slots[b])

    return action


def _ternary(function: Function, a: int, b: int, c: int, out: int) -> Action:
    def action(slots: list[Any]) -> None:
        slots[out] = function(slots[a], slots[b], slots[c])

    return action


def _many(function: Function, ins: Sequence[int], outs: Sequence[int]) -> Action:
    def action(slots: list[Any]) -> None:
        for place, value in zip(outs, function(*[slots[place] for place in ins]), strict=True):
            slots[place] = value

    return action
