"""Loops and choices: how the jaxprs inside them are written down, and what is made of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .equation import Equation, Function, Shape

# Writes a jaxpr down for inputs of these shapes, the first so many of which stay as they are: see `writing`.
Write = Callable[[Any, Sequence[Shape], int], Any]
Program = Callable[[Any], Any]  # makes of what was written something to bind and run: see `actions`


class Control(NamedTuple):
    """A primitive with jaxprs inside."""

    fixed: Callable[[Mapping[str, Any]], int | None]  # inputs that may be held smaller than they are; None: all
    written: Callable[[Equation, Write], dict[str, Any]]  # its parameters, the jaxprs written down
    rule: Callable[[Equation, Program], Function]


def _while_written(equation: Equation, write: Write) -> dict[str, Any]:
    params = equation.params
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    carried = [form.shape for form in equation.ins[second:]]
    return {
        "condition": write(params["cond_jaxpr"], [*equation.shapes[:first], *carried], first),
        "body": write(params["body_jaxpr"], [*equation.shapes[first:second], *carried], second - first),
        "ends": (first, second),  # of the inputs that stay the same for the condition, and for the body
        "several": bool(params["cond_jaxpr"].out_avals[0].shape),  # loops side by side
    }


def _while_loop(equation: Equation, program: Program) -> Function:
    """Turns while a condition holds."""
    params = equation.params
    condition, body, (first, second) = program(params["condition"]), program(params["body"]), params["ends"]
    if params["several"]:
        return _loops(condition, body, first, second)

    def loop(*values: Any) -> Any:
        goes_on, turn, carry = condition.bind(values[:first]), body.bind(values[first:second]), values[second:]
        while goes_on(carry)[0]:
            carry = turn(carry)
        return carry

    return loop


def _loops(condition: Any, body: Any, first: int, second: int) -> Function:
    """Loops side by side, until the last one ends: those that have ended stay as they are."""

    def loop(*values: Any) -> Any:
        goes_on, turn, carry = condition.bind(values[:first]), body.bind(values[first:second]), values[second:]
        while np.any(going := goes_on(carry)[0]):
            carry = [_chosen(going, new, old) for new, old in zip(turn(carry), carry, strict=True)]
        return carry

    return loop


def _chosen(going: Any, new: Any, old: Any) -> Any:
    return np.where(going.reshape(going.shape + (1,) * (new.ndim - going.ndim)), new, old)


def _of_scan(params: Mapping[str, Any]) -> tuple[int, int]:
    """How many inputs of a scan stay the same, and how many it carries: by numbers, or by trees since JAX 0.11."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carried, _ = params["ft_in"].unpack()
    return len(constants), len(carried)


def _scan_written(equation: Equation, write: Write) -> dict[str, Any]:
    params = equation.params
    constants, carried = _of_scan(params)
    start = constants + carried
    shapes = [form.shape for form in equation.ins]
    parts = [shape[1:] for shape in shapes[start:]]
    given = [*equation.shapes[:constants], *shapes[constants:start], *parts]
    length = params["length"]
    return {
        "body": write(params["jaxpr"], given, constants),
        "ends": (constants, start),  # of the inputs that stay the same, and of those that are carried
        "order": range(length - 1, -1, -1) if params["reverse"] else range(length),
    }


def _scan(equation: Equation, program: Program) -> Function:
    """Turns over the elements of arrays."""
    params = equation.params
    body, (constants, start), order = program(params["body"]), params["ends"], params["order"]
    carries = start - constants
    forms = equation.outs[carries:]

    def loop(*values: Any) -> Any:
        turn, carry, arrays = body.bind(values[:constants]), values[constants:start], values[start:]
        found = [np.empty(shape, type) for shape, type in forms]
        for i in order:
            out = turn([*carry, *(array[i] for array in arrays)])
            carry = out[:carries]
            for place, part in zip(found, out[carries:], strict=True):
                place[i] = part
        return [*carry, *found]

    return loop


def _choice_written(equation: Equation, write: Write) -> dict[str, Any]:
    shapes = equation.shapes[1:]
    return {"branches": tuple(write(closed, shapes, 0) for closed in equation.params["branches"])}


def _choice(equation: Equation, program: Program) -> Function:
    """One of several branches."""
    branches = [program(branch).bind(()) for branch in equation.params["branches"]]
    last = len(branches) - 1
    return lambda which, *values: branches[min(max(int(which), 0), last)](values)


def platform(equation: Equation) -> Function:
    """The place of this processor's platform among several: that of the CPU."""
    platforms = equation.params["platforms"]
    named = [i for i, names in enumerate(platforms) if names is not None and "cpu" in names]
    place = np.int32(named[0] if named else platforms.index(None))
    return lambda: place


WHILE = Control(lambda params: params["cond_nconsts"] + params["body_nconsts"], _while_written, _while_loop)
SCAN = Control(lambda params: _of_scan(params)[0], _scan_written, _scan)
CHOICE = Control(lambda params: None, _choice_written, _choice)
