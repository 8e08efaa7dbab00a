"""What an integration is for, in words: what it removes from the reasons why answers are approximate, and its price."""

from __future__ import annotations

import math

from ...compiler.answers import answers
from ...compiler.data.bind import Binding
from ...compiler.graph import Plan
from ..program import Program
from .choice import Choice


def integration_in_words(
    program: Program, binding: Binding, choice: Choice, given: Plan, points: int | None = None
) -> str:
    """The lines of an explanation: which scalars are integrated, over how many points where that is known, and why.

    `program` is that of the single inference, of the data in `binding`; `given` is the plan at a point, where the
    scalars of the `choice` are data.
    """
    names, title = choice.names, choice.design.title
    at_point = answers(given)
    left = {reason for answer in at_point for reason in answer.reasons}
    exact = not left and not any(answer.moments for answer in at_point)
    removed = dict.fromkeys(
        reason for answer in answers(program.plan_given((), binding)) for reason in answer.reasons if reason not in left
    )
    many = "" if points is None else f" of {points} points"
    why = f"; in a single inference {'; '.join(removed)}" if removed else ""
    return "\n".join(
        [
            f"integrated over {title}{many}: {', '.join(names)}{why}",
            f"    at every point {_are(names)} data, and all lines above hold there"
            + (f": the mixture of exact answers is as exact as the {title.removeprefix('a ')}" if exact else ""),
            f"    expected to take {choice.seconds:.2g} s of computing: accuracy='default' "
            "integrates what takes no more than effort= (1 unless asked for), accuracy='fast' is the single inference",
        ]
    )


def too_costly(choice: Choice, effort: float) -> str:
    """What is said of a single inference where the cheapest integration is expected to cost more than it may."""
    names, cost = choice.names, choice.seconds
    unit = 10.0 ** (math.floor(math.log10(cost)) - 1)
    enough = math.ceil(cost / unit) * unit
    return (
        f"{', '.join(names)} would be integrated, but that is expected to take {cost:.2g} s of computing, more than "
        f"effort={effort:g}. For answers that are nearer to exact give effort={enough:.2g} or accuracy='best'."
    )


def no_grid(choice: Choice) -> str:
    """What is said of a single inference where the design does not hold the scalars."""
    return (
        f"{', '.join(choice.names)} would be integrated, but {choice.design.title} cannot hold the evidence as a "
        "function of that: it has no single peak, or too wide a one."
    )


def _are(names: tuple[str, ...]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
