"""How XLA compiles a program: what pays for large arrays costs more than it saves where nearly all are small."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax

from ..interpret.equation import inside

Compiled = TypeVar("Compiled")
SMALL = 100  # numbers that an equation makes, on average
# No kernels by way of MLIR: they are faster where loops are long, and take twice as long to make.
OPTIONS: dict[str, str | bool] = {"xla_cpu_use_fusion_emitters": False}


def machine_code(traced: jax.stages.Traced, compile: Callable[..., Compiled]) -> Compiled:
    """What was traced, by `compile(options)` of what it was lowered to, with options for the sizes of its arrays."""
    if jax.default_backend() == "cpu" and mean_size(traced.jaxpr) <= SMALL:
        with contextlib.suppress(jax.errors.JaxRuntimeError):  # another release of XLA may not know these options
            return compile(OPTIONS)
    return compile(None)


def mean_size(jaxpr: Any) -> float:
    """How many numbers an equation makes, on average over all of them, those of loops and choices among them."""
    sizes = [
        max((math.prod(getattr(out.aval, "shape", ())) for out in equation.outvars), default=0)
        for equation in _equations(jaxpr)
    ]
    return sum(sizes) / max(len(sizes), 1)


def _equations(jaxpr: Any) -> Iterator[Any]:
    """The equations that compute something themselves."""
    for equation in jaxpr.eqns:
        bodies = inside(equation)
        if not bodies:
            yield equation
        for body in bodies:
            yield from _equations(body)
