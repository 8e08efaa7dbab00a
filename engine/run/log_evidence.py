"""The evidence, by factor."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Float

from ...compiler.blocks.energy import EnergyBlock
from ...factors.arrays import Array
from ..blocks.energy import NEVER, block_energy
from ..blocks.kinds import KINDS, partitions
from ..values.first_beliefs import family_of, first_element, stats_from_moments, uniform
from ..values.joint_beliefs import given_places
from ..values.naturals import Fixed, Naturals
from ..values.scope import Scope
from .bound_plan import BoundPlan, Messages, Moments

NORMAL_ENTROPY = 0.5 * math.log(2.0 * math.pi * math.e)  # of the belief that stands for an entry given


def part_names(machine: BoundPlan) -> tuple[str, ...]:
    """The names that the evidence is split by."""
    return tuple(dict.fromkeys([block.name for block in machine.graph.blocks] + list(machine.graph.latent)))


def evidence_parts(
    machine: BoundPlan,
    fixed: Fixed,
    scope: Scope,
    beliefs: Naturals,
    moments: Moments,
    messages: Messages,
    log_z: Mapping[str, Float[Array, ""]] | None = None,
    energies: Mapping[EnergyBlock, Float[Array, ""]] | None = None,
) -> dict[str, Float[Array, ""]]:
    """log evidence by factor: expected log densities, EP terms, and entropies.

    EP factors contribute log Z(cavities) - log Z(beliefs), VMP factors E log f. Each variable adds its entropy plus
    EP messages . E t to the factor that generates it. `log_z` holds log Z of exactly solved blocks by number, where it
    is known, `energies` expected log densities that are known already. Returns nats by name of `part_names`; their sum
    is the evidence, minus infinity where the data contradict the model. Source: heskes2005approximate.
    """
    scope, latent = scope.with_moments(moments), machine.graph.latent
    parts: dict[str, Float[Array, ""]] = {name: jnp.zeros(()) for name in part_names(machine)}
    for block in machine.graph.blocks:
        if isinstance(block, EnergyBlock):
            known = (energies or {}).get(block)
            parts[block.name] = parts[block.name] + (block_energy(block, scope) if known is None else known)
    for number, block in machine.ep_blocks.items():
        if log_z is None:
            own = _read(machine, fixed, number, beliefs, messages, scope)
        else:
            own = log_z[number] - partitions(
                {name: family_of(latent[name]).from_naturals(beliefs[name]) for name in messages[number]}
            )
        parts[block.name] = parts[block.name] + own
    silent = {name: uniform(latent[name], scope) if name in machine.with_ep else beliefs[name] for name in latent}
    sums = machine.with_messages(fixed, messages, silent)
    for name in latent:
        total = _entropy(machine, name, beliefs[name], scope)
        if name in machine.with_ep:
            stats = stats_from_moments(moments[name])
            total = total + sum(jnp.sum(message * stat) for message, stat in zip(sums[name], stats, strict=True))
        parts[name] = parts[name] + total
    return parts


def _read(
    machine: BoundPlan, fixed: Fixed, number: str, beliefs: Naturals, messages: Messages, scope: Scope
) -> Float[Array, ""]:
    block = machine.ep_blocks[number]
    kind, flat = KINDS[type(block)], machine.flat(block, beliefs)
    return kind.evidence(block, fixed.prepared[number], flat, messages[number], scope)


def _entropy(machine: BoundPlan, name: str, naturals: tuple[Array, ...], scope: Scope) -> Float[Array, ""]:
    family, plates = family_of(machine.graph.latent[name]), machine.plates_shape(name)
    if name in machine.shared:  # a Gaussian's entropy depends on its precision alone
        return math.prod(plates) * family.from_naturals(first_element(naturals, len(plates))).entropy()
    entropies = family.from_naturals(naturals).entropy()
    if name in machine.partly:  # what is given has none
        entropies = entropies * scope.data[machine.graph.partly[name].missing.name]
    total = jnp.sum(entropies)
    for joint in machine.graph.joints:
        if joint.variable.name == name:
            given = given_places(joint, machine.graph.partly, scope.data, machine.sizes)
            total = total if given is None else total - NORMAL_ENTROPY * jnp.sum(given)
    return total


def with_contradictions(parts: Mapping[str, Float[Array, ""]]) -> dict[str, Float[Array, ""]]:
    """The same, minus infinity where data are impossible: cases are kept from it while beliefs move."""
    return {name: jnp.where(part < 1e-3 * NEVER, -jnp.inf, part) for name, part in parts.items()}
