"""How many starts an inference has where nobody says: a few where classes or factors are alike by their priors.

From a random start, sweeps climb to the nearest of several modes. The first start is that of a single inference, so
that more of them never leave a lower bound. Counted from the plan and the sizes, as all costs.
"""

from __future__ import annotations

from ...compiler.data.bind import Binding
from ...compiler.symmetry import many_modes
from ..program import Program
from .cost import seconds

FEW = 5
LONG = 10.0  # times the sweeps of other inferences: from a random start there are many


def started(program: Program, binding: Binding, effort: float) -> Program:
    """The program with as many starts as asked for; by default a few that are expected to take `effort` seconds."""
    asked = program.options.restarts
    return program if asked is not None else program.started(starts(program, binding, effort))


def starts(program: Program, binding: Binding, effort: float) -> int:
    """From one start to a few."""
    plan = program.plan_given((), binding)
    if not many_modes(plan):
        return 1
    each = LONG * seconds(plan, binding.sizes)
    return FEW if effort >= FEW * each else max(1, int(effort / each))


def starts_in_words(program: Program, binding: Binding, effort: float) -> str:
    """The line of an explanation where there are several starts."""
    number = starts(program, binding, effort) if program.options.restarts is None else program.options.starts
    alike = many_modes(program.plan_given((), binding))
    if number == 1 or not alike:
        return ""
    return (
        f"{number} starts, the best evidence is kept: {', '.join(alike)} could be permuted or turned without a change "
        "of the model, so that each start is random and leads to one of several fixed points"
    )
