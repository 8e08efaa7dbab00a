"""What may mend a posterior: only what compiles, and what leaves less approximate than the plan that was run."""

from __future__ import annotations

from collections.abc import Callable

from ...compiler.answers import SERIOUS, Cause, answers, causes_of, fewest_given
from ...compiler.graph import Plan
from ...compiler.methods import AUTO, checked_method
from ...compiler.plan import make_plan
from ...factors.errors import CavityError
from ..answers.inferred import Inferred

GRID = 3  # scalars that integrate= takes
TRIED = 8  # scalars that are looked at
KINDS = ("real", "positive", "unit", "boolean", "category")


def remedy(posterior: Inferred) -> str:
    """A sentence, "" where nothing is known that would help."""
    least = causes_of(posterior.graph, SERIOUS)
    asked, accuracy = posterior.request.method, posterior.request.options.of_plan
    if checked_method(asked) != AUTO and _fewer(posterior, least, method="auto"):
        return "To mend it: leave method= out; the compiler then chooses operators that leave less approximate."
    if names := _worth_integrating(posterior, least):
        return f"To mend it: integrate the scalars that are taken apart (infer(..., integrate={names!r}))."
    if accuracy != "best" and _fewer(posterior, least, accuracy="best"):
        return "To mend it: infer(..., accuracy='best') treats jointly what is apart here."
    if checked_method(asked) == AUTO and _fewer(posterior, least, method="ep"):
        return "To mend it: infer(..., method='ep') takes nothing apart here."
    if posterior.request.options.accuracy == "default" and not least and _all_integrable(posterior):
        return "To mend it: infer(..., accuracy='best') integrates what EP keeps means and variances of here."
    return ""


def _all_integrable(posterior: Inferred) -> bool:
    """Whether nothing is approximate once all scalars are given, few and of kinds that are integrated."""
    approximate = [answer for answer in answers(posterior.graph) if answer.reasons]
    open_ = {name for answer in approximate for name in answer.latent}
    open_ |= {m.name for joint in posterior.graph.joints for m in joint.members if joint.variable.name in open_}
    randoms = [posterior.model.randoms[name] for name in open_ if name in posterior.model.randoms]
    scalars = [node.name for node in randoms if not node.plates and node.domain.kind in KINDS]
    if not 0 < len(scalars) <= TRIED:
        return False
    try:
        return not causes_of(_plan(posterior, given=frozenset(scalars)))
    except CavityError:
        return False


def _worth_integrating(posterior: Inferred, least: frozenset[Cause]) -> list[str]:
    """The fewest scalars given which less is approximate."""
    plan = posterior.graph
    open_ = {name for answer in answers(plan) if answer.of(SERIOUS) for name in answer.latent}
    open_ |= {member.name for joint in plan.joints for member in joint.members if joint.variable.name in open_}
    randoms = posterior.model.randoms
    kept = [name for name in open_ if name in randoms and not randoms[name].plates and name not in posterior.observed]
    kept = sorted((name for name in kept if randoms[name].domain.kind in KINDS), key=lambda n: not _real(posterior, n))
    if len(kept) > TRIED:
        return []
    kept = fewest_given(kept, lambda names: _causes(lambda: _plan(posterior, given=frozenset(names))), least)
    continuous = [name for name in kept if not randoms[name].domain.is_discrete]
    return sorted(kept) if len(continuous) <= GRID else []


def _real(posterior: Inferred, name: str) -> bool:
    return posterior.model.randoms[name].domain.is_real


def _fewer(posterior: Inferred, least: frozenset[Cause], method: object = None, accuracy: str = "") -> bool:
    """Whether another plan leaves less approximate."""
    found = _causes(lambda: _plan(posterior, method, accuracy))
    return found is not None and found < least


def _causes(made: Callable[[], Plan]) -> frozenset[Cause] | None:
    try:
        return causes_of(made(), SERIOUS)
    except CavityError:
        return None


def _plan(posterior: Inferred, method: object = None, accuracy: str = "", given: frozenset[str] = frozenset()) -> Plan:
    request, binding = posterior.request, posterior.binding
    return make_plan(
        request.model,
        request.observed | given,
        frozenset(binding.missing),
        request.method if method is None else method,  # type: ignore[arg-type]  # "auto" or "ep"
        sizes=binding.sizes,
        accuracy=accuracy or request.options.of_plan,
    )
