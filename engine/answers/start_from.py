"""Another run's beliefs as the start of a run: what of them fits its plan, and a word on what does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.graph import Joint, NormalPair
from ...compiler.language.nodes import Let, Random
from ...factors.errors import DataError
from ...factors.families import ExponentialFamily
from ...factors.switches import double_precision
from ..distributions.mixed_over_grid import GridMixture, OnGrid
from ..run.bound_plan import Messages
from ..run.given_start import GivenStart
from ..run.machine import Machine
from ..support import asked_families as asked
from ..values.first_beliefs import family_of
from ..values.joint_beliefs import together
from .outcome import Outcome

SHOWN = 4  # variables that the remark names


def start_from(machine: Machine, binding: Binding, start: object) -> tuple[GivenStart, str]:
    """Where a run of `machine` begins that is given `start`, and a sentence on what begins as if nothing were given.

    `start` is a posterior or another mapping of marginals by name. Returns a `GivenStart` and the sentence, empty where
    all fits. Raises DataError for anything else, for names that the model lacks, where a dictionary gives what does not
    fit, and where nothing fits.
    """
    model = machine.graph.model
    if not isinstance(start, Mapping):
        raise DataError(
            "start= takes a posterior of the same model, or a dictionary of marginals by name such as "
            f"{{'mean': posterior['mean']}}; found {type(start).__name__}."
        )
    if unknown := [name for name in start if name not in model.randoms and name not in model.lets]:
        raise DataError(
            f"start= gives a belief of '{unknown[0]}', which model \"{model.name}\" does not have. It has: "
            f"{', '.join(model.randoms)}."
        )
    naturals, reasons = _beliefs(machine, start)
    if isinstance(start, dict):
        for name in start:
            if name in binding.observed and name not in binding.missing:
                reasons[name] = "the data observe it"
        if wrong := [name for name in start if name in reasons]:
            raise DataError(
                f"start= cannot begin at the belief given of '{wrong[0]}': {reasons[wrong[0]]}. Use the marginal of "
                "the same variable, over the same elements, or leave it out: it then begins as without start=."
            )
    if not naturals:
        why = "; ".join(f"'{name}': {reason}" for name, reason in reasons.items()) or "no variable needs a belief"
        raise DataError(f"start= gives nothing that this run can begin at ({why}). Leave it out.")
    messages, key = _messages(machine, start)
    return GivenStart(naturals, messages, key), _told(reasons)


def _told(reasons: Mapping[str, str]) -> str:
    if not reasons:
        return ""
    each = [f"{name} ({reason})" for name, reason in list(reasons.items())[:SHOWN]]
    more = f" and {len(reasons) - SHOWN} others" if len(reasons) > SHOWN else ""
    return f"The run began at the beliefs of start=, but for {', '.join(each)}{more}."


def _beliefs(machine: Machine, start: Mapping[str, Any]) -> tuple[dict[str, tuple[np.ndarray, ...]], dict[str, str]]:
    """The naturals of all that can begin at what is given, and by name why others cannot."""
    graph, naturals, reasons = machine.graph, {}, {}
    joints = {joint.variable.name: joint for joint in graph.joints}
    pairs = {pair.variable.name: pair for pair in graph.pairs}
    for name, variable in graph.latent.items():
        if name in joints:
            _of_joint(machine, joints[name], start, naturals, reasons)
        elif name in pairs:
            _of_pair(pairs[name], start, naturals, reasons)
        elif name in machine.partly:
            reasons[name] = "its data are given in part"
        else:
            family = _given(start, name)
            if reason := _misfit(machine, variable, family):
                reasons[name] = reason
            else:
                naturals[name] = tuple(np.asarray(natural, float) for natural in family.naturals())
    return naturals, reasons


def _of_joint(machine: Machine, joint: Joint, start: Mapping[str, Any], naturals: dict, reasons: dict) -> None:
    """The same for a belief that several variables share: with its covariances, where they shared one there too."""
    name, members = joint.variable.name, [member.name for member in joint.members]
    if any(member in machine.partly for member in members):
        reasons.update(dict.fromkeys(members, "data are given in part of what shares its belief"))
        return
    families = {member.name: _given(start, member.name) for member in joint.members}
    wrong = {member.name: _misfit(machine, member, families[member.name]) for member in joint.members}
    if any(wrong.values()):
        lacks = next(member for member in members if wrong[member])
        shared = f"it shares a belief with '{lacks}', which cannot begin there"
        reasons.update({member: wrong[member] or shared for member in members})
        return
    with double_precision():
        if isinstance(start, Outcome) and (own := _same_joint(start, joint)):
            naturals[name] = start.naturals_of(own.variable.name)
            return

        def joined(families: dict[str, ExponentialFamily]) -> tuple:
            moments = {member: family.moments() for member, family in families.items()}
            found = together(joint.members, joint.variable.plates, moments, (), machine.sizes).value
            return tuple(family_of(joint.variable).from_moments(found).naturals())

        naturals[name] = tuple(map(np.asarray, machine.function("joint start", (joint,), joined)(families)))


def _of_pair(pair: NormalPair, start: Mapping[str, Any], naturals: dict, reasons: dict) -> None:
    """The same for a mean and a precision: from a posterior in which they shared one too."""
    names = [member.name for member in pair.members]
    if isinstance(start, Outcome):
        for own in start.graph.pairs:
            if [member.name for member in own.members] == names and own.variable.domain == pair.variable.domain:
                naturals[pair.variable.name] = start.naturals_of(own.variable.name)
                return
    reasons.update(dict.fromkeys(names, "they share a belief, which only a posterior can give in which they did too"))


def _same_joint(start: Outcome, joint: Joint) -> Joint | None:
    """The joint belief of the same variables, in the same order and over the same plates, that a posterior has."""
    key = [member.name for member in joint.members], [plate.name for plate in joint.variable.plates]
    for own in start.graph.joints:
        if ([member.name for member in own.members], [plate.name for plate in own.variable.plates]) == key:
            return own
    return None


def _given(start: Mapping[str, Any], name: str) -> Any:
    """The family that is given of a variable, of a mixture over a grid its projection; None where there is none."""
    if name not in start:
        return None
    found = start[name]
    family = getattr(found, "family", found)
    return family.projection() if isinstance(family, (GridMixture, OnGrid)) else family


def _misfit(machine: Machine, variable: Random | Let, family: Any) -> str:
    """Why a variable cannot begin at a belief; empty where it can."""
    wanted = family_of(variable)
    if family is None:
        return "it was not given"
    if not isinstance(family, wanted):
        return f"it is given as {type(family).__name__}, and its beliefs are of the family {wanted.__name__}"
    event = variable.domain.size
    event = machine.sizes[event.name] if event is not None and not isinstance(event, int) else event
    plates = tuple(machine.sizes[plate.name] for plate in variable.plates)
    found, shapes = [np.shape(n) for n in family.naturals()], [(*plates, *(event,) * n) for n in wanted.natural_ndims]
    if found != shapes:
        return f"it is given over plates of shape {family.plates}, and has {plates} here"
    with double_precision():
        proper = bool(np.all(asked.is_proper(family)))
    finite = all(np.isfinite(natural).all() for natural in family.naturals())
    return "" if proper and finite else "it is given an improper belief"


def _messages(machine: Machine, start: object) -> tuple[Messages, np.ndarray | None]:
    """Those of a posterior's blocks that this plan has too, and the key by which their instances are ordered."""
    if not isinstance(start, Outcome) or start.machine.sizes != machine.sizes:
        return {}, None
    if (start.machine.larger is None) != (machine.larger is None):
        return {}, None
    found, outputs = {}, start.result.outputs
    for number, block in machine.ep_blocks.items():
        own = start.machine.ep_blocks.get(number)
        if own is None or (type(own), own.name, own.latent) != (type(block), block.name, block.latent):
            continue
        if machine.message_names(block) == start.machine.message_names(own):
            found[number] = jax.tree.map(np.asarray, outputs["messages"][number])
    return found, np.asarray(outputs["key"]) if found else None
