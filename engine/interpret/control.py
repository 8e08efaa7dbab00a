"""Loops and choices, and the equations that are no more than a call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from .equation import Equation, Function, type_of


def while_loop(equation: Equation) -> Function:
    """Turns while a condition holds."""
    params = equation.params
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    carried = [aval.shape for aval in equation.ins[second:]]
    condition = equation.program(params["cond_jaxpr"], [*equation.shapes[:first], *carried], first)
    body = equation.program(params["body_jaxpr"], [*equation.shapes[first:second], *carried], second - first)
    if params["cond_jaxpr"].out_avals[0].shape:
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


def scan(equation: Equation) -> Function:
    """Turns over the elements of arrays."""
    params = equation.params
    constants, carries = params["num_consts"], params["num_carry"]
    length = params["length"]
    start = constants + carries
    shapes = [aval.shape for aval in equation.ins]
    parts = [shape[1:] for shape in shapes[start:]]
    body = equation.program(
        params["jaxpr"], [*equation.shapes[:constants], *shapes[constants:start], *parts], constants
    )
    order = range(length - 1, -1, -1) if params["reverse"] else range(length)
    forms = [(aval.shape, type_of(aval)) for aval in equation.outs[carries:]]

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


def choice(equation: Equation) -> Function:
    """One of several branches."""
    shapes = equation.shapes[1:]
    branches = [equation.program(closed, shapes).bind(()) for closed in equation.params["branches"]]
    last = len(branches) - 1
    return lambda which, *values: branches[min(max(int(which), 0), last)](values)


def branch(params: Any, which: Any) -> ClosedJaxpr:
    """The branch that is taken where that is known."""
    branches = params["branches"]
    return branches[min(max(int(which), 0), len(branches) - 1)]


def platform(equation: Equation) -> Function:
    """The place of this processor's platform among several: that of the CPU."""
    platforms = equation.params["platforms"]
    named = [i for i, names in enumerate(platforms) if names is not None and "cpu" in names]
    place = np.int32(named[0] if named else platforms.index(None))
    return lambda: place


def called(name: str) -> Any:
    """The jaxpr of a call, which the parameter `name` holds, and the places of the inputs that it reads."""

    def of(equation: Any) -> tuple[ClosedJaxpr, Sequence[int]]:
        jaxpr = equation.params[name]
        closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, ())
        return closed, range(len(equation.invars))

    return of


def linear_solve(equation: Any) -> tuple[ClosedJaxpr, Sequence[int]]:
    """The jaxpr that solves; its constants come behind those of the products, the right side at the end."""
    lengths, solve = equation.params["const_lengths"], equation.params["jaxprs"].solve
    start, size = lengths.matvec + lengths.vecmat, len(equation.invars)
    right = len(solve.in_avals) - lengths.solve
    return solve, [*range(start, start + lengths.solve), *range(size - right, size)]


def drawn_from_gamma(equation: Any) -> tuple[ClosedJaxpr, Sequence[int]]:
    """The jaxpr of what JAX makes of draws of Gamma variables."""
    key, shape = (variable.aval for variable in equation.invars)
    draw = partial(equation.primitive.impl, **equation.params, use_vmap=True)
    return jax.make_jaxpr(draw)(key, shape), (0, 1)
