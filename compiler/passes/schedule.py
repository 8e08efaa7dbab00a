"""The end of the passes: the order of the updates in a sweep, which makes the last draft a plan."""

from __future__ import annotations

import dataclasses

from ..blocks.energy import EnergyBlock
from ..graph import Draft, Facts, Plan


def schedule(draft: Draft) -> Plan:
    """EP blocks in declaration order and back; variables touched by energies from the last declared to the first.

    The last declared are the most local. Local variables come first so that what a sweep starts from are only the
    beliefs of the global ones.
    """
    forward = [i for i, block in enumerate(draft.blocks) if not isinstance(block, EnergyBlock)]
    ep_order = tuple(forward + forward[-2::-1])
    energies = {name for block in draft.blocks if isinstance(block, EnergyBlock) for name in block.latent}
    parameters = {name for block in draft.blocks for name in block.parameters}
    order = tuple(name for name in reversed(list(draft.latent)) if name in energies | parameters)
    facts = {field.name: getattr(draft, field.name) for field in dataclasses.fields(Facts)}
    return Plan(**facts, order=order, ep_order=ep_order)
