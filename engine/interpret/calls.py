"""Equations that are no more than a call: the jaxpr that stands in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax

# Made of an equation: a jaxpr, closed or without constants, and the places of the inputs that it reads.
Call = Callable[[Any], tuple[Any, Sequence[int]]]


def called(name: str) -> Call:
    """The jaxpr of a call, which the parameter `name` holds, and the places of the inputs that it reads."""

    def of(equation: Any) -> tuple[Any, Sequence[int]]:
        return equation.params[name], range(len(equation.invars))

    return of


def linear_solve(equation: Any) -> tuple[Any, Sequence[int]]:
    """The jaxpr that solves; its constants come behind those of the products, the right side at the end."""
    lengths, solve = equation.params["const_lengths"], equation.params["jaxprs"].solve
    start, size = lengths.matvec + lengths.vecmat, len(equation.invars)
    right = len(solve.in_avals) - lengths.solve
    return solve, [*range(start, start + lengths.solve), *range(size - right, size)]


def drawn_from_gamma(equation: Any) -> tuple[Any, Sequence[int]]:
    """The jaxpr of what JAX makes of draws of Gamma variables."""
    key, shape = (variable.aval for variable in equation.invars)
    draw = partial(equation.primitive.impl, **equation.params, use_vmap=True)
    return jax.make_jaxpr(draw)(key, shape), (0, 1)


def branch(params: Any, which: Any) -> Any:
    """The branch that is taken where that is known."""
    branches = params["branches"]
    return branches[min(max(int(which), 0), len(branches) - 1)]


INLINED: dict[str, Call] = {
    "jit": called("jaxpr"),
    "pjit": called("jaxpr"),
    "closed_call": called("call_jaxpr"),
    "core_call": called("call_jaxpr"),
    "custom_jvp_call": called("call_jaxpr"),
    "custom_vjp_call": called("call_jaxpr"),
    "custom_vmap_call": called("call"),
    "remat2": called("jaxpr"),
    "checkpoint": called("jaxpr"),
    "custom_linear_solve": linear_solve,
    "random_gamma": drawn_from_gamma,
}
