"""Conjugate gradients with a preconditioner, for convex and other smooth functions inside a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int, PyTree

from ...factors.arrays import Array

HALVINGS = 40
ARMIJO = 1e-4  # of the descent that a slope promises, at least
ROUNDING = 1e-13  # of a value

Vector = Float[jax.Array, " number"]


class Look(NamedTuple):
    """A function at a point: value, gradient, a step downhill, whether the point is allowed, and what belongs to it."""

    value: Float[Array, ""]
    gradient: Vector
    step: Vector
    inside: Bool[Array, ""]
    found: PyTree = ()

    @property
    def gap(self) -> Float[Array, ""]:
        """What the step promises: zero at a minimum."""
        return -jnp.vdot(self.gradient, self.step)


class _Carry(NamedTuple):
    x: Vector
    look: Look
    direction: Vector
    length: Float[Array, ""]
    steps: Int[Array, ""]
    stuck: Bool[Array, ""]

    @property
    def first(self) -> Bool[Array, ""]:
        """Before anything was looked at."""
        return self.steps == 0


def nowhere(x: Vector, found: PyTree = ()) -> Look:
    """What stands for a look before the first one."""
    return Look(jnp.full((), jnp.inf), jnp.zeros_like(x), jnp.zeros_like(x), jnp.asarray(False), found)


def descend(
    look: Callable[[Vector, Look], Look], x: Vector, begun: Look, enough: Float[Array, ""], most: int
) -> tuple[Vector, Look]:
    """From `x` until the gap is `enough`, or after the `most` steps.

    `look(x, near)` looks at a point, `near` being the look at the last one, `begun` before the first: it stands in the
    program once, since it may be large. Polak and Ribiere's conjugate gradients, with a coefficient never below zero;
    each step is halved until the function is less.
    """

    def going(carry: _Carry) -> Bool[Array, ""]:
        return carry.first | (carry.look.gap > enough) & (carry.steps <= most) & ~carry.stuck

    carry = _Carry(x, begun, jnp.zeros_like(x), jnp.ones(()), jnp.zeros((), int), jnp.asarray(False))
    found = jax.lax.while_loop(going, lambda carry: _stepped(look, carry), carry)
    return found.x, found.look


def _stepped(look: Callable[[Vector, Look], Look], carry: _Carry) -> _Carry:
    here, slope = carry.look, jnp.vdot(carry.look.gradient, carry.direction)
    slack = ROUNDING * (1.0 + jnp.abs(here.value))

    def too_far(tried: tuple[Float[Array, ""], Look, Int[Array, ""]]) -> Bool[Array, ""]:
        length, there, looks = tried
        lower = there.value <= here.value + ARMIJO * length * slope
        # Near a minimum values differ by rounding alone, and the gap still tells.
        nearer = (there.value <= here.value + slack) & (there.gap < here.gap)
        better = carry.first | (lower | nearer) & there.inside & jnp.isfinite(there.value)
        return (looks == 0) | ~better & (looks <= HALVINGS)

    def shorter(tried: tuple[Float[Array, ""], Look, Int[Array, ""]]) -> tuple[Array, Look, Array]:
        length = jnp.where(tried[2] == 0, tried[0], 0.5 * tried[0])
        return length, look(carry.x + length * carry.direction, here), tried[2] + 1

    tried = carry.length, here, jnp.zeros((), int)
    length, there, looks = jax.lax.while_loop(too_far, shorter, tried)
    stuck = looks > HALVINGS
    share = jnp.vdot(there.step, there.gradient - here.gradient) / jnp.vdot(here.step, here.gradient)
    direction = there.step + jnp.where(carry.first, 0.0, jnp.maximum(share, 0.0)) * carry.direction
    direction = jnp.where(jnp.vdot(there.gradient, direction) < 0.0, direction, there.step)
    longer = 2.0 * length * jnp.clip(slope / jnp.vdot(there.gradient, direction), 0.1, 10.0)
    x = jnp.where(stuck, carry.x, carry.x + length * carry.direction)
    after = jax.tree.map(lambda new, old: jnp.where(stuck, old, new), there, here)
    return _Carry(x, after, direction, jnp.where(carry.first, 1.0, longer), carry.steps + 1, stuck)
