"""The plan in words: for each factor its method, operator, accuracy and reason, and what is exact in the answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .answers import in_words
from .blocks.base import Block
from .blocks.site import SiteBlock
from .discrete.loops import loopy, short_loops
from .graph import Plan
from .growing import one_size, open_plates
from .language.nodes import Expr, applies
from .language.operations import NOT


def explain_plan(
    plan: Plan,
    evidence: Mapping[str, float] | None = None,
    floored: Mapping[str, int] | None = None,
    *,
    gridded: Collection[str] = (),
    answers: str = "answers",
) -> str:
    """A plan as text; with the evidence and the floored cavities by factor where a run gives them.

    `gridded` are the variables that are data at a point of a grid and not to the user; `answers` says whose answers
    the plan makes, where these are not those of the posterior.
    """
    observed = [*sorted(plan.observed - set(gridded)), *(f"{name} in part" for name in plan.partly)]
    grid = f"; on a grid: {', '.join(sorted(gridded))}" if gridded else ""
    lines = [
        f"{plan.model.name}: {len(plan.blocks)} factors, {len(plan.latent)} variables to infer, observed: "
        f"{', '.join(observed) or 'nothing'}{grid}"
    ]
    for block in plan.blocks:
        lines.append(_head(block))
        lines.append(f"    {block.choice.operator} [message: {block.choice.accuracy}]")
        lines.append(f"    because {block.choice.reason}")
        if evidence and block.name in evidence:
            lines.append(f"    log evidence {evidence[block.name]:.6g}")
        if floored and floored.get(block.name):
            lines.append(f"    {floored[block.name]} cavities were improper and floored")
    if plan.forward:
        lines.append(f"computed forward afterwards (nothing observed depends on them): {', '.join(plan.forward)}")
    if absorbed := plan.absorbed():
        lines.append(f"integrated out inside a factor, recovered afterwards: {', '.join(absorbed)}")
    for joint in plan.joints:
        members, size = ", ".join(member.name for member in joint.members), joint.variable.domain.size.size
        lines.append(f"one Gaussian belief of {size} dimensions, with all covariances: {members}")
    for pair in plan.pairs:
        what = "normal-Gamma" if pair.mean.domain.is_real else "normal-Wishart"
        lines.append(f"one {what} belief: {pair.mean.name}, {pair.precision.name}")
    if exactness := in_words(plan):
        lines.append(f"{answers}{' at a point of the grid' if gridded else ''}: {exactness}")
    if advice := _on_loops(plan):
        lines.append(advice)
    if short := short_loops(plan):
        lines.append(
            f"short loops: {'; '.join(' - '.join(loop) for loop in short)}. Belief propagation counts what comes back "
            "through them twice: its probabilities may be far off. accuracy='best' sums small networks out exactly."
        )
    lines += [
        f"each size of {plate.name} is compiled: {why}" for plate in open_plates(plan) if (why := one_size(plan, plate))
    ]
    if dealt := _on_devices(plan):
        lines.append(dealt)
    lines.append(f"schedule of a sweep: {plan.updates()}")
    return "\n".join(lines)


def _on_devices(plan: Plan) -> str:
    """Of which plates the rows can be dealt to several devices, and why not of others."""
    from .sharding import whole  # only who asks for an explanation, or has several devices, needs it

    reasons = {plate.name: whole(plan, plate) for plate in plan.model.plates.values()}
    able = ", ".join(name for name, why in reasons.items() if not why)
    others = ", ".join(f"{name} ({why})" for name, why in reasons.items() if why)
    parts = [f"rows of {able} can be dealt to them"] * bool(able) + [f"each has all of {others}"] * bool(others)
    return f"on several devices (mesh=): {'; '.join(parts)}" if parts else ""


def _on_loops(plan: Plan) -> str:
    """What would keep Gaussians that meet in one linear form out of loops, where that is open to the user."""
    back = set(loopy(plan))
    meeting = [block.name for block in plan.blocks if block.name in back and _several_gaussians(block)]
    if not meeting:
        return ""
    if plan.default.name != "auto" and plan.accuracy != "best":
        remedy = "method='auto' gives them one belief with all covariances, where that is affordable."
    elif plan.accuracy != "best":
        remedy = "accuracy='best' gives larger groups one belief with all covariances."
    else:
        return ""
    return f"loops: Gaussian variables meet in {', '.join(meeting)} with beliefs of their own; {remedy}"


def _several_gaussians(block: Block) -> bool:
    return isinstance(block, SiteBlock) and len(block.form.terms) > 1


def _head(block: Block) -> str:
    plates = f"[{', '.join(plate.name for plate in block.plates)}]" if block.plates else ""
    joins = f" ~ {', '.join(block.latent)}" if block.latent else ""
    gates = "".join(f" | gate {gate.selector}" for gate in block.gates)
    cases = "".join(f" | where {_condition(mask)}" for mask in block.where)
    return f"  {block.name}{plates}: {block.method}{joins}{gates}{cases}"


def _condition(mask: Expr) -> str:
    return f"not: {mask.args[0]}" if applies(mask, NOT) else str(mask)
