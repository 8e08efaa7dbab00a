"""The end of the passes: the order of the updates in a sweep, which makes the last draft a plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ...factors.errors import ModelError
from ..blocks.energy import EnergyBlock
from ..graph import Draft, Facts, Plan
from ..schedules import PLAIN, Schedule


def schedule(draft: Draft, asked: Schedule = PLAIN) -> Plan:
    """EP blocks in declaration order and back; variables touched by energies from the last declared to the first.

    The last declared are the most local. Local variables come first so that what a sweep starts from are only the
    beliefs of the global ones. Names that were asked for go before both. Raises ModelError for other names.
    """
    blocks = [i for i, block in enumerate(draft.blocks) if not isinstance(block, EnergyBlock)]
    by_name: dict[str, list[int]] = {}
    for i in blocks:
        by_name.setdefault(draft.blocks[i].name, []).append(i)
    moved = (block for block in draft.blocks if isinstance(block, EnergyBlock) and not block.constant)
    energies = {name for block in moved for name in block.latent}
    parameters = {name for block in draft.blocks for name in block.parameters}
    order = tuple(name for name in reversed(list(draft.latent)) if name in energies | parameters)
    if asked.factors:
        _check("factors", "with EP messages", asked.factors, by_name)
        ep_order = tuple(i for name in asked.factors for i in by_name[name])
    else:
        ep_order = tuple(blocks + blocks[-2::-1])
    if asked.variables:
        _check("variables", "whose beliefs energies move", asked.variables, order)
        if len(set(asked.variables)) < len(asked.variables):
            raise ModelError(f"Schedule(variables=) names each variable once; found {', '.join(asked.variables)}.")
        order = asked.variables
    facts = {field.name: getattr(draft, field.name) for field in dataclasses.fields(Facts)}
    return Plan(**facts, order=order, ep_order=ep_order, schedule=asked)


def _check(what: str, which: str, asked: Sequence[str], known: Iterable[str]) -> None:
    """All that there is must be named, and nothing else: what is left out would never be updated."""
    known = list(known)
    unknown = [name for name in asked if name not in known]
    left_out = [name for name in known if name not in asked]
    if unknown or left_out:
        told = f"it names {unknown[0]!r}, which is none" if unknown else f"it leaves out {left_out[0]!r}"
        raise ModelError(
            f"Schedule({what}=) has the {what} {which}: {', '.join(known) or 'none here'}; {told}. "
            "posterior.schedule of a plain run has all of them."
        )
