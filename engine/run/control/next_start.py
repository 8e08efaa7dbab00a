"""What the next sweep starts from: an extrapolation, what a plain sweep made, the way back, or a narrower start.

Results of sweeps are extrapolated by Anderson acceleration (walker2011anderson): the residual's best approximation by
its own differences is subtracted.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....factors.arrays import Array
from .carry import SMALLEST_RIDGE, Carry, History, Settings, Swept
from .judging import Judgement

NARROWEST = 5  # times that a start may be made narrower


class Start(NamedTuple):
    """What the next sweep starts from, whether that is an extrapolation, and what is known for those to come."""

    x: Float[Array, " size"]
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
    back = jnp.where(carry.accelerated, carry.good.y, carry.base)
    x = jnp.where(bad, back, jnp.where(stuck | plain, swept.y, x))
    x = jnp.where(judged.closing, swept.y, x)
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


def _extrapolated(y: Float[Array, " size"], carry: Carry, settings: Settings) -> tuple[Float[Array, " size"], History]:
    """Anderson's combination of the last results, and the differences with those of this sweep; none used: y itself."""
    if settings.depth == 0:
        return y, carry.history._replace(used=jnp.zeros((), jnp.int32))
    old = carry.history
    r = (y - carry.x) / carry.pace.step
    slot = jnp.mod(carry.iteration, settings.depth)
    usable = (carry.iteration > 0) & jnp.all(jnp.isfinite(y))

    def noted(differences: Float[Array, "depth size"], new: Float[Array, " size"]) -> Float[Array, "depth size"]:
        return jnp.where(usable, jax.lax.dynamic_update_index_in_dim(differences, new, slot, 0), differences)

    dx, dr = noted(old.differences_x, carry.x - old.last_x), noted(old.differences_r, r - old.last_r)
    used = jnp.where(usable, jnp.minimum(old.used + 1, settings.depth), 0)
    active = jnp.mod(slot - jnp.arange(settings.depth), settings.depth) < used
    gram = jnp.where(active[:, None] & active[None, :], dr @ dr.T, 0.0)
    scale = jnp.maximum(jnp.max(jnp.diagonal(gram)), 1e-300)
    gram = gram / scale + jnp.diag(jnp.where(active, old.ridge, 1.0))
    right = jnp.where(active, dr @ r, 0.0) / scale
    weights = jnp.linalg.solve(gram, right)
    candidate = y - weights @ jnp.where(active[:, None], dx + carry.pace.step * dr, 0.0)
    sound = jnp.all(jnp.isfinite(candidate))
    history = History(dx, dr, carry.x, r, old.ridge, jnp.where(sound, used, 0))
    return jnp.where(sound, candidate, y), history
