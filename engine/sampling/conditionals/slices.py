"""Moves by slice sampling: each number of a variable whose elements are independent given all others.

Unconstrained coordinates, stepping out and shrinking for all elements at once; the first width of each is learned while
chains warm up. Source: neal2003slice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ....compiler.language.nodes import Random
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.families.bijections import Bijection
from ...values.plated import spread
from ..joint import Data, Gathers, Joint, Values
from ..move import Move, Stage

STEPS = 64  # of stepping out, both sides together
LOWEST = -1e300  # any log density of what is possible lies above it
LEARNS = 0.1  # of the last width, while chains warm up

Numbers = Float[Array, "..."]
Density = Callable[[Numbers], Numbers]


class _Interval(NamedTuple):
    low: Numbers
    high: Numbers
    left: Numbers
    right: Numbers


def slice_step(
    key: Key, log_density: Callable[[Numbers], Numbers], z: Numbers, width: Numbers
) -> tuple[Numbers, Numbers]:
    """One transition of each number, and how wide its slice was found to be.

    A number where the density is zero, as at a start that a constraint forbids, goes anywhere near where it is not.
    """
    own = jax.random.split(key, 4)
    here = log_density(z)
    lost = jnp.isneginf(here)
    level = jnp.where(lost, LOWEST, here - draws.exponential(own[0], z.shape))
    width = jnp.where(lost, STEPS * width, width)
    low = z - width * draws.uniform(own[1], z.shape)
    left = jnp.floor(STEPS * draws.uniform(own[2], z.shape))  # shared at random, else it is not reversible

    def out(now: _Interval) -> tuple[Array, Array]:
        return (now.left > 0) & (log_density(now.low) > level), (now.right > 0) & (log_density(now.high) > level)

    def step_out(both: tuple[_Interval, Array, Array]) -> tuple[_Interval, Array, Array]:
        now, lower, upper = both
        now = _Interval(
            jnp.where(lower, now.low - width, now.low),
            jnp.where(upper, now.high + width, now.high),
            now.left - lower,
            now.right - upper,
        )
        return now, *out(now)

    begin = _Interval(low, low + width, left, STEPS - 1 - left)
    found, *_ = jax.lax.while_loop(lambda both: jnp.any(both[1] | both[2]), step_out, (begin, *out(begin)))

    def shrink(now: tuple) -> tuple:
        i, low, high, current, waiting = now
        proposal = low + (high - low) * draws.uniform(jax.random.fold_in(own[3], i), z.shape)
        # An interval that has shrunk to where it started, to rounding, stays there.
        stuck = high - low <= 1e-14 * (1.0 + jnp.abs(z))
        good = waiting & ((log_density(jnp.where(waiting, proposal, current)) >= level) | stuck)
        current = jnp.where(good, jnp.where(stuck, z, proposal), current)
        low = jnp.where(waiting & ~good & (proposal < z), proposal, low)
        high = jnp.where(waiting & ~good & (proposal >= z), proposal, high)
        return i + 1, low, high, current, waiting & ~good

    start = jnp.zeros((), int), found.low, found.high, z, jnp.ones(z.shape, bool)
    _, low, high, current, _ = jax.lax.while_loop(lambda now: jnp.any(now[4]), shrink, start)
    return current, high - low


def slice_move(joint: Joint, name: str, gathers: Gathers, one: Bijection) -> Move:
    """Each element by a transition of its slice sampler; `one` gives the unconstrained coordinate of an element."""
    variable: Random = joint.variables[name]
    plates = len(variable.plates)
    forward, backward, log_jacobian = _over(plates, one)

    def step(key: Key, values: Values, width: Array, data: Data, stage: Stage) -> tuple[Values, Array]:
        def log_density(z: Array) -> Array:
            table = joint.by_element(name, gathers, {**values, name: forward(z)}, data)
            found = spread(table, variable.plates, joint.sizes) + log_jacobian(z)
            return jnp.where(jnp.isnan(found), -jnp.inf, found)

        z, seen = slice_step(key, log_density, backward(values[name]), width)
        learned = (1.0 - LEARNS) * width + LEARNS * jnp.maximum(1.5 * seen, 1e-6)
        return {**values, name: forward(z)}, jnp.where(stage.warming, learned, width)

    def init(values: Values, data: Data) -> Array:
        return jnp.ones(values[name].shape)

    return Move((name,), "each element by slice sampling: its conditional is of no family", False, init, step, True)


def _over(plates: int, one: Bijection) -> tuple[Callable[[Array], Array], ...]:
    """The functions of a bijection of one number, for arrays of numbers."""
    found = (
        lambda z: one.forward(z[None]),
        lambda x: one.backward(x)[0],
        lambda z: one.log_jacobian(z[None]),
    )
    for _ in range(plates):
        found = tuple(map(jax.vmap, found))
    return found
