"""Checkpoints of inference: everything that a run carries from one sweep to the next, in a file.

A file has no order of devices in it: the points that are accelerated are written as naturals and messages, so that a
run goes on, to the same answer, with other devices and processes than it began with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...values.naturals import State
from ..control.carry import Carry, Good, History, Sound
from ..in_sweeps import Sweeping
from .dealt_state import dealt_messages


class Told(NamedTuple):
    """A carry without its points, and these one after the other, as outputs of a run are."""

    rest: Carry
    points: dict[str, PyTree]


def told(task: Sweeping, carry: Carry) -> Told:
    """What a file has of a carry, inside of a program."""
    _, _, join = task.split(task.state)
    history = carry.history
    points = [carry.x, carry.base, carry.good.y, carry.sound.x, history.last_x, history.last_r]
    for differences in (history.differences_x, history.differences_r):
        points += [jax.tree.map(lambda leaf, i=i: leaf[i], differences) for i in range(_depth(differences))]
    states = [join(point, carry.sound.rest) for point in points]
    stacked: State = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    one = jax.vmap(lambda moving, messages: task.machine.shown(task.fixed, moving, messages))
    found = {"places": {}, **one(stacked.moving, stacked.messages), "code": jnp.zeros(len(points), jnp.int32)}
    return Told(_without(carry), found)


def carried(task: Sweeping, told: Told) -> Carry:
    """The carry that a file tells of, inside of a program."""
    moving, messages = told.points["beliefs"], told.points["messages"]

    def point(i: int) -> tuple[Any, Any]:
        own = {number: jax.tree.map(lambda leaf: leaf[i], parts) for number, parts in messages.items()}
        own = dealt_messages(task.machine, task.fixed, own)
        return task.split(State(jax.tree.map(lambda leaf: leaf[i], moving), own))[:2]

    number = told.points["code"].shape[0]
    points = [point(i) for i in range(number)]
    x, base, y, sound, last_x, last_r = (own for own, _ in points[:6])
    depth = (number - 6) // 2

    def stacked(first: int) -> Any:
        rows = [own for own, _ in points[first : first + depth]]
        if not rows:
            return jax.tree.map(lambda leaf: jnp.zeros((0, *leaf.shape), leaf.dtype), x)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)

    rest = told.rest
    return rest._replace(
        x=x,
        base=base,
        good=Good(y, *rest.good[1:]),
        sound=Sound(sound, points[3][1], *rest.sound[2:]),
        history=History(stacked(6), stacked(6 + depth), last_x, last_r, *rest.history[4:]),
    )


def _depth(differences: PyTree) -> int:
    return jax.tree.leaves(differences)[0].shape[0]


def _without(carry: Carry) -> Carry:
    """The carry with nothing where points are."""
    nothing = jnp.zeros(0)
    return carry._replace(
        x=nothing,
        base=nothing,
        good=carry.good._replace(y=nothing),
        sound=carry.sound._replace(x=nothing, rest=nothing),
        history=carry.history._replace(differences_x=nothing, differences_r=nothing, last_x=nothing, last_r=nothing),
    )
