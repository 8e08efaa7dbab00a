"""Covariances of a posterior: of a joint belief where an exact plan has one, else of joint draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...compiler.answers import answers
from ...compiler.graph import Joint
from ...compiler.language.nodes import Random
from ...factors.arrays import Array
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.outcome import Outcome
from ..checks.verdict import is_exact
from ..support.asked_arguments import known_name
from ..values.first_beliefs import family_of
from ..values.joint_beliefs import member_values

DRAWS = 4000
SEED = 0


def covariance(
    posterior: Inferred, draws: Callable[[int, int], dict[str, np.ndarray]], first: str, second: str
) -> np.ndarray:
    """Of all elements of one with all elements of the other; `draws(n, seed)` are joint ones of the posterior."""
    for name in (first, second):
        known_name(name, [*posterior])
    if (exact := _of_a_joint_belief(posterior, first, second)) is not None:
        return exact
    found = draws(DRAWS, SEED)
    for name in (first, second):
        if name not in found:
            raise KeyError(f"There are no draws of {name!r}. There are: {', '.join(found)}.")
    x, y = (np.asarray(found[name], float) for name in (first, second))
    return np.tensordot(x - x.mean(axis=0), (y - y.mean(axis=0)) / (len(x) - 1), axes=(0, 0))


def _of_a_joint_belief(posterior: Inferred, first: str, second: str) -> np.ndarray | None:
    """The covariance that a joint belief has of two of its members; None where there is none that is exact."""
    if not isinstance(posterior, Outcome) or not posterior.converged:
        return None
    if not all(is_exact(answer) for answer in answers(posterior.graph)):
        return None
    for joint in posterior.graph.joints:
        members = {member.name: member for member in joint.members}
        if {first, second} <= set(members) and not joint.variable.plates and not posterior.graph.partly:
            return _between(posterior, joint, members[first], members[second])
    return None


def _between(posterior: Outcome, joint: Joint, first: Random, second: Random) -> np.ndarray:
    sizes = posterior.machine.sizes
    with double_precision():
        family = family_of(joint.variable).from_naturals(posterior.naturals_of(joint.variable.name))
        whole: Array = family.covariance()  # pyright: ignore[reportAttributeAccessIssue]
        rows = member_values(second, joint, whole, sizes)  # of each entry of the joint vector with the second
        entries = np.moveaxis(np.asarray(rows), 0, -1)
        return np.moveaxis(
            np.asarray(member_values(first, joint, entries, sizes)),
            tuple(range(entries.ndim - 1, entries.ndim - 1 + _axes(first))),
            tuple(range(_axes(first))),
        )


def _axes(node: Random) -> int:
    return len(node.plates) + node.domain.event_ndim
