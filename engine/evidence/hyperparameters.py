"""Which scalars to integrate: the fewest, given which as little as possible is left approximate.

A plan tells which of its factors make answers approximate (`compiler/answers.py`). A scalar that is given is data, and
its factors are exact or simpler; so plans are made with scalars given, and those that change nothing are dropped again:
locations first, scales and selectors last.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.answers import Cause, Kind, answers
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
    ignored = frozenset({Kind.PROJECTED} if tolerated else ())
    plan = program.plan_given((), binding)
    scalars = scalars_of(program)
    open_ = {name for answer in answers(plan) if _serious(answer.causes, ignored) for name in answer.latent}
    joined = {member.name for joint in plan.joints for member in joint.members if joint.variable.name in open_}
    inside = [name for name in scalars if name in joined]
    apart = [name for name in scalars if name in open_]
    for candidates in ((*inside, *apart), apart):
        found = _fewest(program, binding, sorted(candidates, key=lambda name: _keeps(scalars[name])), plan, ignored)
        if sum(not scalars[name].domain.is_discrete for name in found) <= most:
            return found
    return ()


def decided(program: Program, plan: Plan) -> list[str]:
    """Constraints and observed expressions that hold or fail by what else is given in a plan: they have no density."""
    return [name for name in program.expressions_of_data(plan) if name not in program.fixed]


def _keeps(node: Random) -> int:
    """The order in which scalars are dropped: locations, scales, selectors."""
    return 0 if node.domain.is_real else 2 if node.domain.is_discrete else 1


def _fewest(
    program: Program, binding: Binding, candidates: Sequence[str], plan: Plan, ignored: frozenset[Kind]
) -> tuple[str, ...]:
    """Those of the candidates without which more would be approximate."""

    def causes(names: tuple[str, ...]) -> frozenset[Cause] | None:
        given = program.plan_given(names, binding)
        return None if decided(program, given) else _causes(given, ignored)

    kept = tuple(candidates[-MOST_TRIED:])
    least = causes(kept) if kept else None
    if least is None or not least < _causes(plan, ignored):
        return ()
    for name in kept:
        fewer = tuple(other for other in kept if other != name)
        found = causes(fewer) if fewer else None
        if found is not None and found <= least:
            kept = fewer
    return kept


def _causes(plan: Plan, ignored: frozenset[Kind]) -> frozenset[Cause]:
    """What leaves answers approximate."""
    return frozenset().union(*(_serious(answer.causes, ignored) for answer in answers(plan)))


def _serious(causes: frozenset[Cause], ignored: frozenset[Kind]) -> frozenset[Cause]:
    return frozenset((name, kind) for name, kind in causes if kind not in ignored)
