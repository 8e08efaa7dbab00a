"""A run that begins at given beliefs: the state whose beliefs are these, as far as a state can have any beliefs.

What VMP moves is a difference, so that its beliefs are those given, and neighbours that are not given are updated once.
A block of EP has no more freedom than its messages: those of the run that the beliefs are from, where it had the same
block; else each block looks once at its factor with the given beliefs for cavities, and its first messages are what it
sees there. Beliefs of many rows are so counted twice in the first messages, which EP's first sweeps take back, but in
kinds that know better (`towards`). Priors stay what they are.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree, UInt32

from ...compiler.algebra.known import ungathered
from ...compiler.data.keys import STARTS
from ..blocks.kinds import KINDS
from ..support.concrete import all_finite
from ..values.naturals import Fixed, Naturals, State, add, subtract
from ..values.scope import Scope
from .bound_plan import BoundPlan, Data, Messages, Moments


class GivenStart(NamedTuple):
    """Where a run is asked to begin."""

    naturals: Naturals  # of beliefs by name, also of joint ones
    messages: Messages  # by number of a block
    key: UInt32[np.ndarray, " 2"] | None  # of the run that the messages are from: it orders their instances


def given_start(data: Data) -> GivenStart | None:
    """What the data of a run say of its start."""
    return data.get(STARTS)


def begin_there(
    machine: BoundPlan, fixed: Fixed, data: Data, state: State, starts: Moments, given: GivenStart
) -> tuple[State, Moments]:
    """A state and first moments of selectors, with the beliefs given in the place of its own."""
    scope, named = machine.scope(data), given.naturals
    moments = {name: machine.moments_of(name, naturals) for name, naturals in named.items()}
    messages = dict(state.messages)
    for number, block in machine.ep_blocks.items():
        first, names = messages[number], machine.message_names(block) | set(block.parameters)
        if number in given.messages and _alike(first, given.messages[number]):
            messages[number] = given.messages[number]
        elif names <= set(named):
            flat, context, kind = machine.flat(block, named), scope.with_moments(moments), KINDS[type(block)]
            if kind.towards is None:
                _, seen, _ = kind.update(block, fixed.prepared[number], flat, first, jnp.ones(()), context)
            else:
                seen = kind.towards(block, fixed.prepared[number], flat, context)
            sound = all_finite(seen)
            messages[number] = jax.tree.map(lambda a, b, sound=sound: jnp.where(sound, a, b), seen, first)
    outside = machine.with_messages(fixed, messages, fixed.constant)
    known = {name: subtract(named[name], outside[name]) for name in machine.moving if name in named}
    begun = State({**state.moving, **known}, messages)
    begun = State({**begun.moving, **_followed(machine, fixed, scope, begun, moments)}, messages)
    return begun, _first_moments(machine, starts, named, moments)


def _followed(machine: BoundPlan, fixed: Fixed, scope: Scope, state: State, given: Moments) -> Naturals:
    """What the beliefs given make of their neighbours that have none: a sweep may update what is given first."""
    beliefs = machine.beliefs(fixed, state)
    moments = {name: machine.moments_of(name, naturals) for name, naturals in beliefs.items()} | given
    found: Naturals = {}
    for name in machine.moving:
        mine = tuple(block for block in machine.energies if name in block.latent)
        told = {other for block in mine for other in block.latent} & set(given)
        exact = not any(block.method.name == "ncvmp" for block in mine)
        if name not in given and told and exact and name not in {*machine.with_ep, *machine.partners, *machine.turns}:
            found[name] = machine.pull(name, mine, scope, moments, moments[name])
            moments[name] = machine.moments_of(name, add(fixed.constant[name], found[name]))
    return found


def _first_moments(machine: BoundPlan, starts: Moments, named: Naturals, moments: Moments) -> Moments:
    """What selectors are in the first sweep: what components say that are given, else what is given of themselves."""
    found: Moments = {}
    for name, own in starts.items():
        gated = [
            block
            for block in machine.energies
            if any(getattr(ungathered(gate.selector), "name", None) == name for gate in block.gates)
        ]
        if not {other for block in gated for other in block.latent if other != name} & set(named):
            found[name] = moments.get(name, own)
    return found


def _alike(one: PyTree, other: PyTree) -> bool:
    """Whether two trees of arrays have the same form."""
    same = jax.tree.structure(one) == jax.tree.structure(other)
    return same and [jnp.shape(a) for a in jax.tree.leaves(one)] == [jnp.shape(a) for a in jax.tree.leaves(other)]
