"""What the next sweep starts from: an extrapolation, what a plain sweep made, the way back, or a narrower start.

Results of sweeps are extrapolated by Anderson acceleration (walker2011anderson): the residual's best approximation by
its own differences is subtracted.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from ....factors.arrays import Array
from ...support.concrete import all_finite
from .carry import SMALLEST_RIDGE, Carry, History, Point, Settings, Swept
from .judging import Judgement

NARROWEST = 5  # times that a start may be made narrower
_Tree = TypeVar("_Tree")  # a pytree of arrays


class Start(NamedTuple):
    """What the next sweep starts from, whether that is an extrapolation, and what is known for those to come."""

    x: Point
    accelerated: Bool[Array, ""]
    history: History


def next_start(swept: Swept, carry: Carry, judged: Judgement, settings: Settings) -> Start:
    """What to start from, unless the start of the whole run is at fault.

    An extrapolation that failed falls back to the plain sweep it came from; a plain sweep that failed to where that
    sweep began, with a smaller step.
    """
    bad, stuck = judged.bad, judged.stuck
    x, history = _extrapolated(swept.y, carry, settings)
    # Where the plain map leads away from a fixed point (a saddle), the extrapolation would lead back to it.
    plain = history.used == 0
    if settings.climbs:
        plain = plain | (judged.residual > carry.good.residual)
    back = either(carry.accelerated, carry.good.y, carry.base)
    x = either(bad, back, either(stuck | plain, swept.y, x))
    x = either(judged.closing, swept.y, x)
    return Start(x, ~bad & ~stuck & ~plain & ~judged.closing, _kept(history, carry, judged))


def start_at_fault(judged: Judgement, spent: Bool[Array, ""], carry: Carry) -> Bool[Array, ""]:
    """Whether to begin again from a narrower start, `spent` telling that no smaller step is left.

    Where nothing but the start ever succeeded, the start is at fault, not the step.
    """
    alone = judged.bad & judged.first | spent & (carry.tally.accepted == 1)
    return alone & (carry.tally.narrowed < NARROWEST)


def _kept(history: History, carry: Carry, judged: Judgement) -> History:
    """What is remembered of the sweep: what it told about the map stays true when it is rejected, unless unsound."""
    lost = judged.bad & carry.accelerated
    ridge = carry.history.ridge
    ridge = jnp.where(lost, 100.0 * jnp.maximum(ridge, 1e-10), jnp.maximum(0.1 * ridge, SMALLEST_RIDGE))
    reset = judged.plain_failure | judged.stuck | (judged.bad & ~judged.fit)
    return history._replace(
        ridge=jnp.where(judged.bad | (history.used > 0), jnp.minimum(ridge, 1.0), carry.history.ridge),
        used=jnp.where(reset, -1, history.used),  # the next difference still spans the reset
    )


def either(condition: Bool[Array, ""], one: _Tree, other: _Tree) -> _Tree:
    """One of two states of the same form."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


def _extrapolated(y: Point, carry: Carry, settings: Settings) -> tuple[Point, History]:
    """Anderson's combination of the last results, and the differences with those of this sweep; none used: y itself."""
    if settings.depth == 0:
        return y, carry.history._replace(used=jnp.zeros((), jnp.int32))
    old, step = carry.history, carry.pace.step
    r = jax.tree.map(lambda y, x: (y - x) / step, y, carry.x)
    slot = jnp.mod(carry.iteration, settings.depth)
    usable = (carry.iteration > 0) & all_finite(y)

    def noted(differences: Array, new: Array, last: Array) -> Array:
        changed = jax.lax.dynamic_update_index_in_dim(differences, new - last, slot, 0)
        return jnp.where(usable, changed, differences)

    dx = jax.tree.map(noted, old.differences_x, carry.x, old.last_x)
    dr = jax.tree.map(noted, old.differences_r, r, old.last_r)
    used = jnp.where(usable, jnp.minimum(old.used + 1, settings.depth), 0)
    active = jnp.mod(slot - jnp.arange(settings.depth), settings.depth) < used
    gram = jnp.where(active[:, None] & active[None, :], _products(dr, dr), 0.0)
    scale = jnp.maximum(jnp.max(jnp.diagonal(gram)), 1e-300)
    gram = gram / scale + jnp.diag(jnp.where(active, old.ridge, 1.0))
    right = jnp.where(active, _products(dr, r), 0.0) / scale
    weights = jnp.linalg.solve(gram, right)

    def moved(y: Array, dx: Array, dr: Array) -> Array:
        inside = active.reshape((-1,) + (1,) * y.ndim)
        return y - jnp.tensordot(weights, jnp.where(inside, dx + step * dr, 0.0), 1)

    candidate = jax.tree.map(moved, y, dx, dr)
    sound = all_finite(candidate)
    history = History(dx, dr, carry.x, r, old.ridge, jnp.where(sound, used, 0))
    return either(sound, candidate, y), history


def _products(rows: Point, others: Point) -> Array:
    """The inner products of each of `rows` with one point, or with each of several."""

    def of_one(rows: Array, others: Array) -> Array:
        axes = list(range(1, rows.ndim))
        return jnp.tensordot(rows, others, (axes, [axis - rows.ndim for axis in axes]))

    return sum(jax.tree.leaves(jax.tree.map(of_one, rows, others)), jnp.zeros(()))
