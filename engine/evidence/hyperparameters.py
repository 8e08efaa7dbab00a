"""Which scalars to integrate: the fewest, given which as little as possible is left approximate.

A plan tells which of its factors make answers approximate (`compiler/answers.py`). A scalar that is given is data, and
its factors are exact or simpler; so plans are made with scalars given, and those that change nothing are dropped again:
locations first, scales and selectors last.
"""

from __future__ import annotations

from ...compiler.answers import Cause, Kind, answers, causes_of, fewest_given
from ...compiler.data.bind import Binding
from ...compiler.graph import Plan
from ...compiler.language.nodes import Random
from ..distributions.mixed_over_grid import FROM_REAL
from ..program import Program

MOST_TRIED = 24  # scalars that are looked at: beyond these their plates should have been plates


def scalars_of(program: Program) -> dict[str, Random]:
    """The unobserved variables without plates that can be integrated."""
    return {
        name: node
        for name, node in program.model.randoms.items()
        if not node.plates and node.domain.kind in FROM_REAL and name not in program.observed
    }


def approximate_scalars(program: Program, binding: Binding, most: int, tolerated: bool) -> tuple[str, ...]:
    """Scalars, at most `most` continuous ones, given which as little is approximate as given all.

    Nothing where none helps. Messages of EP that keep moments are mostly near the truth: where they are `tolerated`
    they count as exact. Where the scalars are too many, those that have a belief of their own are looked at alone: one
    that shares a Gaussian belief is the least in need of it.
    """
    kinds = [kind for kind in Kind if not (tolerated and kind is Kind.PROJECTED)]
    plan = program.plan_given((), binding)
    scalars = scalars_of(program)
    open_ = {name for answer in answers(plan) if answer.of(kinds) for name in answer.latent}
    joined = {member.name for joint in plan.joints for member in joint.members if joint.variable.name in open_}
    inside = [name for name in scalars if name in joined]
    apart = [name for name in scalars if name in open_]

    def causes(names: tuple[str, ...]) -> frozenset[Cause] | None:
        given = program.plan_given(names, binding)
        return None if decided(program, given) else causes_of(given, kinds)

    for candidates in ((*inside, *apart), apart):
        ordered = sorted(candidates, key=lambda name: _keeps(scalars[name]))
        found = fewest_given(ordered[-MOST_TRIED:], causes, causes_of(plan, kinds))
        if sum(not scalars[name].domain.is_discrete for name in found) <= most:
            return found
    return ()


def decided(program: Program, plan: Plan) -> list[str]:
    """Constraints and observed expressions that hold or fail by what else is given in a plan: they have no density."""
    return [name for name in program.expressions_of_data(plan) if name not in program.fixed]


def _keeps(node: Random) -> int:
    """The order in which scalars are dropped: locations, scales, selectors."""
    return 0 if node.domain.is_real else 2 if node.domain.is_discrete else 1
