"""The state of a run whose rows are dealt to devices: what of it each has by itself, and what it is as an output."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Int

from ....factors.arrays import Array
from ...values.dealt import WHOLE, Dealt, Packing
from ...values.instances import ScheduleLayout
from ...values.naturals import Fixed, Naturals
from ..bound_plan import BoundPlan, Messages


class Places(NamedTuple):
    """Where the messages of a block that is dealt belong, as an output: what is padding has the place `width`.

    `place` is that in the batch of a run that is not dealt, where a batch has `width`, `instance` the instance, or -1.
    """

    place: Int[Array, "batch width"]
    width: Int[Array, ""]
    instance: Int[Array, "batch width"]


def packing(dealt: Dealt, fixed: Fixed, tree: tuple[Naturals, Messages]) -> Packing:
    """How naturals and messages are packed: naturals are dealt as their variables are, messages by batches."""
    naturals, messages = tree
    layouts = _layouts(fixed, messages)
    axes = (
        {name: jax.tree.map(lambda _, name=name: dealt.axes[name], own) for name, own in naturals.items()},
        {n: jax.tree.map(lambda _, n=n: 1 if n in layouts else WHOLE, own) for n, own in messages.items()},
    )
    return Packing(dealt, tree, axes)


def numbers_of(fixed: Fixed, live: Naturals, messages: Messages) -> int:
    """How many numbers of a state are accelerated, without what pads the rows of devices."""
    total, layouts = sum(jnp.size(leaf) for leaf in jax.tree.leaves(live)), _layouts(fixed, messages)
    for number, own in messages.items():
        size = sum(jnp.size(leaf) for leaf in jax.tree.leaves(own))
        if number in layouts:
            order, shares = layouts[number].order, layouts[number].shares
            assert shares is not None
            size = size // order.shape[1] * shares.width
        total += size
    return total


def shown(machine: BoundPlan, fixed: Fixed, beliefs: Naturals, messages: Messages) -> Any:
    """Beliefs and messages as outputs; where rows are dealt, as many for each device, and where messages belong."""
    dealt = machine.dealt
    assert dealt is not None
    even = {name: jax.tree.map(partial(dealt.even, axis=dealt.axes[name]), own) for name, own in beliefs.items()}
    places = {}
    for number, layout in _layouts(fixed, messages).items():
        assert layout.shares is not None
        width = layout.shares.width
        places[number] = Places(
            jnp.where(layout.present, layout.shares.places, width),
            jnp.asarray(width),
            jnp.where(layout.present, layout.order, -1),
        )
    return {"beliefs": even, "messages": messages, "places": places}


def dealt_messages(machine: BoundPlan, fixed: Fixed, messages: Messages) -> Messages:
    """Messages in the layout of a run that is not dealt, in that of this machine."""
    if machine.dealt is None:
        return messages
    found = dict(messages)
    for number, layout in _layouts(fixed, messages).items():
        assert layout.shares is not None
        places, present = layout.shares.places, layout.present

        def own(leaf: Array, places: Array = places, present: Array = present) -> Array:
            event = (1,) * (leaf.ndim - 2)
            taken = jnp.take_along_axis(leaf, places.reshape((*places.shape, *event)), axis=1)
            return jnp.where(present.reshape((*present.shape, *event)), taken, 0)

        found[number] = jax.tree.map(own, messages[number])
    return found


def _layouts(fixed: Fixed, messages: Messages) -> dict[str, ScheduleLayout]:
    """The layouts of the blocks whose messages are dealt to devices, by number."""
    plans = {number: getattr(fixed.prepared[number], "plan", None) for number in messages}
    return {number: plan for number, plan in plans.items() if plan is not None and plan.shares is not None}
