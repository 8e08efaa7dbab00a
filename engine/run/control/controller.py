"""The convergence controller: one while loop that sweeps, accelerates, damps, restarts and stops, with a result code.

A sweep is a fixed-point map. Its iterates are extrapolated (`next_start.py`) and guarded: an extrapolation that makes a
belief improper, loses evidence or raises the residual (`judging.py`) is dropped and the run goes on from the last good
state; a plain step that fails so is damped (`damping.py`). A start from which no sweep succeeds is replaced by a
narrower one. What a run returns is the last sound state: proper beliefs, and evidence that is a number.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Int

from ....factors.arrays import Array
from .carry import Best, Carry, Good, Settings, Sound, Starter, Sweeper, Swept, Tally
from .damping import SMALLEST_STEP, damped, undamped
from .judging import Judgement, judge
from .next_start import either, next_start, start_at_fault
from .result_codes import RUNNING, code_after


def _own(flag: Array) -> Array:
    return flag


def advance(
    sweep: Sweeper,
    start: Starter,
    carry: Carry,
    settings: Settings,
    limit: Int[Array, ""],
    agreed: Callable[[Array], Array] = _own,
) -> Carry:
    """Sweeps until converged, failed, or `limit` iterations.

    `sweep(x, rest, step, first)` is one sweep; `start(n)` is the start made narrower n times; `agreed` makes a whole
    number the same on all devices, so that none stops alone.
    """

    def going(carry: Carry) -> Bool[Array, ""]:
        return (carry.code == RUNNING) & (carry.iteration < limit)

    return jax.lax.while_loop(going, lambda carry: _iterate(sweep, start, carry, settings, agreed), carry)


def _iterate(
    sweep: Sweeper, start: Starter, carry: Carry, settings: Settings, agreed: Callable[[Array], Array]
) -> Carry:
    """One sweep, what is thought of it, and what follows."""
    swept = sweep(carry.x, carry.sound.rest, carry.pace.step, carry.tally.accepted == 0)
    judged = judge(swept, carry, settings)
    pace = damped(carry.pace, judged, settings.longest)
    x, accelerated, history = next_start(swept, carry, judged, settings)
    spent = judged.plain_failure & (pace.step < SMALLEST_STEP)
    narrow = agreed(start_at_fault(judged, spent, carry).astype(int)) > 0
    x = jax.lax.cond(narrow, lambda: start(carry.tally.narrowed + 1), lambda: x)
    recorded = jnp.where(judged.bad | ~jnp.isfinite(judged.evidence), jnp.nan, judged.evidence)
    return Carry(
        x=x,
        base=either(narrow, x, either(judged.bad, carry.base, carry.x)),
        accelerated=accelerated,
        closing=judged.closing,
        code=agreed(code_after(carry, judged, spent & ~narrow, settings)),
        error=jnp.where(judged.bad | carry.closing, carry.error, judged.error),
        good=either(judged.bad, carry.good, Good(swept.y, judged.residual, carry.good.residual, judged.evidence)),
        best=_best(carry, judged, narrow),
        pace=undamped(pace, judged, narrow, carry.tally.narrowed, settings.longest),
        history=history,
        sound=_sound(carry, swept, judged),
        tally=_counted(carry, swept, judged, narrow),
        residuals=carry.residuals.at[carry.iteration].set(judged.residual),
        evidences=carry.evidences.at[carry.iteration].set(recorded),
    )


def _best(carry: Carry, judged: Judgement, narrow: Bool[Array, ""]) -> Best:
    """The best residual, which a narrower start forgets; patience begins anew where a run was stuck."""
    residual = jnp.where(judged.improved, judged.residual, carry.best.residual)
    at = jnp.where(judged.improved | judged.stuck, carry.iteration, carry.best.at)
    return Best(jnp.where(narrow, jnp.inf, residual), at)


def _sound(carry: Carry, swept: Swept, judged: Judgement) -> Sound:
    found = Sound(carry.x, swept.rest, judged.parts, jnp.asarray(True))
    return either(judged.sound, found, carry.sound)


def _counted(carry: Carry, swept: Swept, judged: Judgement, narrow: Bool[Array, ""]) -> Tally:
    tally = carry.tally
    return Tally(
        iteration=tally.iteration + 1,
        accepted=jnp.where(narrow, 0, tally.accepted + ~judged.bad),
        rejected=tally.rejected + (judged.bad & carry.accelerated),
        damped=tally.damped + (judged.plain_failure & ~narrow | judged.stuck),
        narrowed=tally.narrowed + narrow,
        floored=jax.tree.map(lambda a, b: a + b.astype(a.dtype), tally.floored, swept.floored),
    )
