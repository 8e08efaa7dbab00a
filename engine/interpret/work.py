"""The work of interpreting a jaxpr, counted in steps and elements: never timed, so that it is the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .equation import Shape, inside

STEP = 1.2  # microseconds of a call of NumPy, on a common processor
ELEMENT, COSTLY, PRODUCT = 1e-3, 1e-2, 2.5e-4  # of each element; of one of a special function; of a product and a sum
SWEEPS, ROUNDS = 20, 5  # turns that are expected of an outer loop, and of one inside another

SPECIAL = {
    *("exp", "exp2", "log", "log1p", "expm1", "pow", "sin", "cos", "tan", "tanh", "logistic", "erf", "erfc", "erf_inv"),
    *("lgamma", "digamma", "igamma", "igammac", "regularized_incomplete_beta", "bessel_i0e", "bessel_i1e"),
    *("random_bits", "random_gamma", "sort", "gather", "scatter", "scatter-add"),
}
ALGEBRA = {"dot_general", "cholesky", "triangular_solve", "lu", "eigh", "svd", "qr"}


class Spent(Exception):
    """More work was done than may be."""


class Meter:
    """Counts what is done, in microseconds of a common processor; raises Spent before it is more than `most`."""

    def __init__(self, most: float = math.inf) -> None:
        self.most, self.done = most, 0.0

    def spend(self, work: float) -> None:
        """Counts `work` that is about to be done."""
        self.done += work
        if self.done > self.most:
            raise Spent


def of_step(name: str, ins: Sequence[Shape], outs: Sequence[Shape]) -> float:
    """The work of one equation: `name` of arrays of these shapes."""
    sizes = [math.prod(shape) for shape in (*ins, *outs)]
    if name in ALGEBRA:
        return STEP + PRODUCT * (sizes[0] * ins[0][-1] if len(sizes) == 2 else math.prod(sizes[:3]) ** 0.5)
    return STEP + (COSTLY if name in SPECIAL else ELEMENT) * max(sizes, default=0)


class Expected(NamedTuple):
    """How many equations a jaxpr has, those inside others too, and the work that running it is expected to be."""

    equations: int
    work: float


def expected(jaxpr: Any, rounds: int = SWEEPS) -> Expected:
    """What is seen of a jaxpr, closed or not, before it runs."""
    equations, work = 0, 0.0
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        turns, inner = 1, rounds
        if name in ("scan", "while"):
            turns, inner = (params["length"], rounds) if name == "scan" else (rounds, ROUNDS)
        for part in inside(equation):
            found = expected(part, inner)
            equations, work = equations + found.equations, work + turns * found.work
        if name != "broadcast_in_dim":
            shapes = [[variable.aval.shape for variable in side] for side in (equation.invars, equation.outvars)]
            work += of_step(name, *shapes)
        equations += 1
    return Expected(equations, work)
