"""Where a run begins: what depends on data only, and the first beliefs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ..compiler.expressions import Let, Random
from ..compiler.graph import Block
from . import tables
from .beliefs import (
    anchor,
    divisible,
    divisors,
    exchangeable_gates,
    jittered,
    multiplied,
    placeholder,
    proper,
    seeds,
    uniform,
)
from .evaluate import Scope
from .joint import given_places
from .kinds import KINDS
from .principal import begun, components, undecided
from .state import Fixed, Naturals, State, add, spread, subtract

if TYPE_CHECKING:
    from .machine import Machine


def prepare(machine: Machine, data: dict[str, Any], key: Any) -> Fixed:
    """Everything that depends on data only."""
    scope = machine.scope(data)
    prepared = {}
    for number, block in machine.ep_blocks.items():
        prepared[number] = machine.prepare_block(block, scope, jax.random.fold_in(key, int(number)))
    constant = constant_of(machine, machine.graph.blocks, scope)
    for name in dict.fromkeys(block.latent[0] for block in machine.graph.blocks if block.constant and block.latent):
        kind = machine.graph.latent[name].domain.kind
        if kind in ("boolean", "category"):  # a certain state must stay finite to be subtracted
            constant[name] = (tables.bounded(constant[name][0], kind == "category"),)
    for name in machine.partly:
        given, own = _given(machine, name, scope), anchor(machine.graph.latent[name], scope)
        constant[name] = tuple(c + spread(given, a) * a for c, a in zip(constant[name], own, strict=True))
    for joint in machine.graph.joints:
        if (given := given_places(joint, machine.graph.partly, data, machine.sizes)) is not None:
            shift, half = constant[joint.variable.name]
            constant[joint.variable.name] = shift, half - 0.5 * given[..., None] * jnp.eye(given.shape[-1])
    return Fixed(constant, prepared)


def constant_of(machine: Machine, blocks: tuple[Block, ...], scope: Scope) -> Naturals:
    """The sums of the constant messages of some blocks."""
    constant = {name: uniform(variable, scope) for name, variable in machine.graph.latent.items()}
    for block in blocks:
        if block.constant and block.latent:
            (name,) = block.latent
            variable = machine.graph.latent[name]
            here = placeholder(variable, scope)
            constant[name] = add(constant[name], machine.pull(name, (block,), scope, {}, here))
    return constant


def _given(machine: Machine, name: str, scope: Scope) -> Any:
    """One where an entry is given, zero where it is missing."""
    return jnp.asarray(scope.data[machine.graph.partly[name].given.name], float)


def start(machine: Machine, fixed: Fixed, data: dict[str, Any], key: Any) -> tuple[State, dict[str, Any]]:
    """Beliefs from the priors in order of declaration, with symmetries broken by the random key.

    Also returns the moments that the selectors of gates have in the first sweep. Those are seeds, or the prior:
    wiser than what they would be under components so vague that no case but the tightest survives.
    """
    scope = machine.scope(data)
    beliefs, moments = dict(fixed.constant), {}
    multiply, below = multiplied(machine.graph), divisors(machine.graph)
    centres = components(machine, scope, jax.random.fold_in(key, 3000))
    for i, (name, variable) in enumerate(machine.graph.latent.items()):
        own = tuple(block for block in machine.energies if block.out is variable or _joins(machine, block, name))
        if own:
            around = {n: placeholder(v, scope) for n, v in machine.graph.latent.items()} | moments
            pulled = add(beliefs[name], machine.pull(name, own, scope, around, placeholder(variable, scope)))
            beliefs[name] = proper(variable, pulled, scope)
        if name in below and name in machine.moving:
            beliefs[name] = divisible(beliefs[name], below[name])
        if name in centres:
            beliefs[name] = begun(variable, centres[name])
        elif name in multiply:
            beliefs[name] = jittered(variable, beliefs[name], jax.random.fold_in(key, 1000 + i))
        moments[name] = (
            machine.moments_of(name, beliefs[name])
            if name not in machine.with_ep or own or _has_prior(machine, name)
            else placeholder(variable, scope)
        )
    selectors = [gate.selector for block in machine.energies for gate in block.gates]
    chosen = {selector.name for selector in selectors if isinstance(selector, (Random, Let))}
    starts = {name: moments[name] for name in machine.moving if name in chosen}
    starts |= {name: placeholder(machine.graph.latent[name], scope) for name in undecided(machine, centres)}
    for i, (selector, _) in enumerate(exchangeable_gates(machine.graph)):
        data_of = machine.graph.partly.get(selector.name)
        starts[selector.name] = seeds(selector, scope, jax.random.fold_in(key, 2000 + i), data_of)
    moving = {name: subtract(beliefs[name], fixed.constant[name]) for name in machine.moving}
    messages = {
        number: KINDS[block.kind].initial(block, fixed.prepared[number], scope)
        for number, block in machine.ep_blocks.items()
    }
    return State(moving, messages), starts


def _joins(machine: Machine, block: Block, name: str) -> bool:
    """Whether a block adds to a joint belief, whose precision may need all of them to be proper."""
    return name in block.latent and any(joint.variable.name == name for joint in machine.graph.joints)


def _has_prior(machine: Machine, name: str) -> bool:
    return any(block.constant and block.latent == (name,) for block in machine.graph.blocks)
