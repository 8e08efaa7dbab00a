"""The part of a sweep that updates messages: the factors in their order, by what has changed, or a double loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from ...factors.arrays import Array, Numeric
from ..blocks.kinds import KINDS
from ..values.naturals import Fixed, Naturals
from ..values.scope import Scope
from .bound_plan import BoundPlan, Messages, Moments


class Passed(NamedTuple):
    """Beliefs and messages, how many cavities were floored by block, and how far an inner problem is from solved."""

    beliefs: Naturals
    messages: Messages
    floored: dict[str, Int[Array, ""]]
    left: Numeric = 0.0


Pass: TypeAlias = Callable[[BoundPlan, Fixed, Scope, Naturals, Moments, Messages, Float[Array, ""]], Passed]


def in_order(
    plan: BoundPlan,
    fixed: Fixed,
    scope: Scope,
    beliefs: Naturals,
    moments: Moments,
    messages: Messages,
    step: Float[Array, ""],
) -> Passed:
    """The blocks with messages in the order of the schedule."""
    passed = Passed(beliefs, messages, {})
    for number in map(str, plan.graph.ep_order):
        passed = _updated(plan, fixed, scope, moments, number, passed, step)
    return passed


def by_residual(
    plan: BoundPlan,
    fixed: Fixed,
    scope: Scope,
    beliefs: Naturals,
    moments: Moments,
    messages: Messages,
    step: Float[Array, ""],
) -> Passed:
    """Each block once, then as many updates of the one whose beliefs others have changed most since it saw them.

    Source: sutton2007residual.
    """
    numbers = list(plan.ep_blocks)
    if not numbers:
        return Passed(beliefs, messages, {})
    touches = jnp.asarray([[name in plan.message_names(plan.ep_blocks[b]) for name in plan.with_ep] for b in numbers])

    def visit(
        at: int, passed: Passed, waiting: Float[jax.Array, " block"]
    ) -> tuple[Passed, Float[jax.Array, " block"]]:
        after = _updated(plan, fixed, scope, moments, numbers[at], passed, step)
        changed = jnp.stack([_moved(plan, name, passed.beliefs, after.beliefs) for name in plan.with_ep])
        return after, (waiting + jnp.max(jnp.where(touches, changed, 0.0), axis=1)).at[at].set(0.0)

    passed = Passed(beliefs, messages, {number: jnp.zeros((), int) for number in numbers})
    waiting = jnp.zeros(len(numbers))
    for at in range(len(numbers)):
        passed, waiting = visit(at, passed, waiting)
    if len(numbers) == 1:
        return passed
    branches = [lambda carry, at=at: visit(at, *carry) for at in range(len(numbers))]

    def again(_: Int[Array, ""], carry: tuple[Passed, jax.Array]) -> tuple[Passed, jax.Array]:
        return jax.lax.switch(jnp.argmax(carry[1]), branches, carry)

    return jax.lax.fori_loop(0, len(numbers) - 1, again, (passed, waiting))[0]


def _updated(
    plan: BoundPlan,
    fixed: Fixed,
    scope: Scope,
    moments: Moments,
    number: str,
    before: Passed,
    step: Float[Array, ""],
) -> Passed:
    """After the update of one block."""
    beliefs, messages, floored = dict(before.beliefs), dict(before.messages), dict(before.floored)
    block, prepared = plan.ep_blocks[number], fixed.prepared[number]
    flat = plan.flat(block, beliefs)
    # Parameters with messages are seen as earlier blocks left them: before the first they have no moments.
    seen = {name: plan.moments_of(name, beliefs[name]) for name in block.parameters if name in plan.with_ep}
    flat, messages[number], count = KINDS[type(block)].update(
        block, prepared, flat, messages[number], step, scope.with_moments({**moments, **seen})
    )
    for name, naturals in flat.items():
        beliefs[name] = plan.shaped(name, naturals)
    floored[number] = floored.get(number, jnp.zeros((), int)) + count
    return Passed(beliefs, messages, floored, before.left)


def _moved(plan: BoundPlan, name: str, before: Naturals, after: Naturals) -> Float[Array, ""]:
    """How far a belief has moved: the largest change of a natural parameter, relative to its size."""
    changes = [
        jnp.abs(b - a) / (jnp.abs(a) + jnp.abs(b) + 1e-30) for a, b in zip(before[name], after[name], strict=True)
    ]
    return jnp.max(jnp.stack([jnp.max(change) for change in changes]))


def in_double_loop(
    plan: BoundPlan,
    fixed: Fixed,
    scope: Scope,
    beliefs: Naturals,
    moments: Moments,
    messages: Messages,
    step: Float[Array, ""],
) -> Passed:
    """Some outer steps of the double loop, which is loaded by the schedule that asks for it."""
    from .double_loop import solve

    if not plan.ep_blocks:
        return Passed(beliefs, messages, {})
    seen = {name: plan.moments_of(name, beliefs[name]) for name in plan.partners if name in plan.with_ep}
    inner = solve(plan, fixed, scope.with_moments({**moments, **seen}), beliefs, messages)
    messages = jax.tree.map(lambda old, new: old + step * (new - old), messages, inner.messages)
    return Passed(plan.with_messages(fixed, messages, inner.own), messages, inner.floored, inner.left)


PASSES: dict[str, Pass] = {"single": in_order, "residual": by_residual, "double": in_double_loop}
