"""Where a run begins: what depends on data only, and the first beliefs."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int, PyTree

from ...compiler.algebra.known import ungathered
from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.language.nodes import Let, Random
from ...compiler.symmetry import exchangeable, multiplied
from ...factors.arrays import Array, Key
from ...factors.factor import Term
from ..blocks.discrete import tables
from ..blocks.kinds import KINDS
from ..values.first_beliefs import (
    anchor,
    divisible,
    divisors,
    first_moments,
    jittered,
    on_side,
    proper,
    scattered,
    seeds,
    sharpened,
)
from ..values.joint_beliefs import given_places
from ..values.naturals import Fixed, Naturals, State, add, spread, subtract
from ..values.scope import Scope
from .bound_plan import BoundPlan, Data, Moments
from .given_start import begin_there, given_start
from .principal_start import begun, components, undecided


def prepare(machine: BoundPlan, data: Data, key: Key) -> Fixed:
    """Everything that depends on data only: constant messages by variable, and the EP blocks' data by number.

    `data` is by name, in the forms of `BoundPlan.completed`; `key` orders instances that are updated in batches.
    """
    scope = machine.scope(data)
    prepared = {}
    for number, block in machine.ep_blocks.items():
        prepared[number] = machine.prepare_block(block, scope, jax.random.fold_in(key, int(number)))
    constant = machine.constant_of(machine.graph.blocks, scope)
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


def _given(machine: BoundPlan, name: str, scope: Scope) -> Float[Array, "*plates"]:
    """One where an entry is given, zero where it is missing."""
    return jnp.asarray(scope.data[machine.graph.partly[name].given.name], float)


class Lane(NamedTuple):
    """One of several runs: its random key, whether its start is moved away from that of the first, and its side."""

    key: Key
    moved: Bool[Array, ""] | None  # None where there is one start
    side: Float[Array, ""]  # 1 or -1: of the variables whose sign the model hardly sees


def start(machine: BoundPlan, fixed: Fixed, data: Data, lane: Lane) -> tuple[State, Moments]:
    """Beliefs from the priors in order of declaration, with symmetries broken by the random key.

    Also returns the moments that the selectors of gates have in the first sweep. Those are seeds, or the prior:
    wiser than what they would be under components so vague that no case but the tightest survives. In all but the first
    of several starts they are seeds where components have a plate, and else random.
    """
    key = lane.key
    scope = machine.scope(data)
    beliefs, moments = dict(fixed.constant), {}
    multiply, below = multiplied(machine.graph), divisors(machine.graph)
    centres = components(machine, scope, jax.random.fold_in(key, 3000))
    for i, (name, variable) in enumerate(machine.graph.latent.items()):
        own = tuple(block for block in machine.energies if block.out is variable or _joins(machine, block, name))
        own = own or _instead_of_a_prior(machine, name)
        if own:
            around = {n: first_moments(v, scope) for n, v in machine.graph.latent.items()} | moments
            pulled = add(beliefs[name], machine.pull(name, own, scope, around, first_moments(variable, scope)))
            beliefs[name] = proper(variable, pulled, scope)
        elif name in machine.moving and _is_flat(variable):  # energies that read others beside it need its moments
            beliefs[name] = proper(variable, beliefs[name], scope)
        if name in below and name in machine.moving:
            beliefs[name] = divisible(variable, beliefs[name], below[name])
        if name in centres:
            beliefs[name] = begun(variable, centres[name])
        elif name in multiply:
            beliefs[name] = jittered(variable, beliefs[name], jax.random.fold_in(key, 1000 + i))
        if name in machine.mirrored:
            sides = _sides(machine, name, lane, jax.random.fold_in(key, 4000 + i))
            beliefs[name] = on_side(variable, beliefs[name], sides)
        moments[name] = (
            machine.moments_of(name, beliefs[name])
            if name not in machine.with_ep or own or _has_prior(machine, name)
            else first_moments(variable, scope)
        )
    selectors = [ungathered(gate.selector) for block in machine.energies for gate in block.gates]
    chosen = {selector.name for selector in selectors if isinstance(selector, (Random, Let))}
    starts = {name: moments[name] for name in machine.moving if name in chosen}
    if (moved := lane.moved) is not None:
        for i, (name, own) in enumerate(starts.items()):
            random = _elsewhere(machine, name, own, scope, jax.random.fold_in(key, 5000 + i))
            starts[name] = jax.tree.map(lambda there, here: jnp.where(moved, there, here), random, own)
    starts |= {name: first_moments(machine.graph.latent[name], scope) for name in undecided(machine, centres)}
    for i, selector in enumerate(dict.fromkeys(choice.selector for choice in exchangeable(machine.graph))):
        data_of = machine.graph.partly.get(selector.name)
        starts[selector.name] = seeds(selector, scope, jax.random.fold_in(key, 2000 + i), data_of)
    moving = {name: subtract(beliefs[name], fixed.constant[name]) for name in machine.moving}
    messages = {
        number: _first_messages(machine, block, fixed.prepared[number], beliefs, scope)
        for number, block in machine.ep_blocks.items()
    }
    state = State(moving, messages)
    if (given := given_start(data)) is not None:
        return begin_there(machine, fixed, data, state, starts, given)
    return state, starts


def _first_messages(machine: BoundPlan, block: Block, prepared: PyTree, beliefs: Naturals, scope: Scope) -> PyTree:
    kind = KINDS[type(block)]
    if kind.begin is None:
        return kind.initial(block, prepared, scope)
    return kind.begin(block, prepared, machine.flat(block, beliefs), scope)


def _sides(machine: BoundPlan, name: str, lane: Lane, key: Key) -> Float[Array, "*plates"]:
    """The side of every element: that of the lane, or random ones where the start is moved."""
    if lane.moved is None:
        return lane.side
    random = jax.random.rademacher(key, machine.plates_shape(name), float)
    return jnp.where(lane.moved, random, lane.side)


def _elsewhere(machine: BoundPlan, name: str, moments: PyTree, scope: Scope, key: Key) -> PyTree:
    """Other moments of a selector for the first sweep."""
    selector = machine.graph.latent[name]
    gates = [gate for block in machine.energies for gate in block.gates]
    on_plate = any(ungathered(gate.selector) is selector and gate.axis for gate in gates)
    if on_plate and selector.plates and isinstance(selector, Random):
        return seeds(selector, scope, key, machine.graph.partly.get(name))
    return scattered(selector, moments, key)


def _joins(machine: BoundPlan, block: Block, name: str) -> bool:
    """Whether a block adds to a joint belief, whose precision may need all of them to be proper."""
    return name in block.latent and any(joint.variable.name == name for joint in machine.graph.joints)


def _instead_of_a_prior(machine: BoundPlan, name: str) -> tuple[EnergyBlock, ...]:
    """The energies of a variable whose prior is a message of EP, which the first sweep has not made yet."""
    if name not in machine.moving or name not in machine.with_ep or _has_prior(machine, name):
        return ()
    return tuple(block for block in machine.energies if name in block.latent)


def _is_flat(variable: Random | Let) -> bool:
    """Whether the prior of a variable is no distribution."""
    return isinstance(variable, Random) and isinstance(variable.term, Term) and variable.term.factor.improper


def _has_prior(machine: BoundPlan, name: str) -> bool:
    return any(block.constant and block.latent == (name,) for block in machine.graph.blocks)


def narrower(machine: BoundPlan, fixed: Fixed, moving: Naturals, times: Int[Array, ""]) -> Naturals:
    """The moving parts of beliefs with the same means and 100^times the precision, where these are real or positive.

    Under a vague start an energy may overflow, E exp(x) of N(0, 1e4) for one, though it does not near the answer.
    Beliefs about other variables stay as they are.
    """
    return {
        name: subtract(
            sharpened(machine.graph.latent[name], add(fixed.constant[name], own), 100.0**times), fixed.constant[name]
        )
        for name, own in moving.items()
    }
