"""The convergence controller: one while loop that sweeps, accelerates, damps, restarts and stops, with a result code.

A sweep is a fixed-point map. Its iterates are extrapolated by Anderson acceleration (walker2011anderson) and guarded:
an extrapolation that makes a belief improper, loses evidence or raises the residual is dropped and the run goes on from
the last good state; a plain step that fails so is damped. A start from which no sweep succeeds is replaced by a
narrower one. What a run returns is the last sound state: proper beliefs, and evidence that is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .barrier import settle

CONVERGED, SLOW, OSCILLATING, DIVERGED, RUNNING, CONTRADICTION = 0, 1, 2, 3, 4, 5
# By code, the rank of a run among several: where the evidence is a bound, it is one before convergence too.
RANKS = {False: (0, 1, 1, 2, 1, 3), True: (0, 0, 0, 1, 0, 3)}
UNSOUND = 4  # the rank of a run that met no sound state
SMALLEST_STEP = 1e-4
SMALLEST_RIDGE = 1e-12
NARROWEST = 5  # times that a start may be made narrower


class Settings(NamedTuple):
    """How the controller works; `monotone` is true when every sweep must raise the evidence (pure VMP and NCVMP)."""

    tolerance: float = 1e-6
    max_iterations: int = 1000
    depth: int = 5
    monotone: bool = False
    with_evidence: bool = True
    trace: int = 1000  # sweeps recorded; writes beyond are dropped
    seeded: bool = False  # the first sweep sees selectors as they are seeded, and its evidence means nothing


class Carry(NamedTuple):
    """The controller's state."""

    x: Any  # what the next sweep starts from
    base: Any  # the last start that turned out sound
    good: Any  # what a plain sweep made of it
    rest: Any  # parts of the state that no sweep reads
    good_residual: Any
    older_residual: Any
    good_evidence: Any
    best_residual: Any
    best_at: Any
    differences_x: Any  # (depth, size) differences of starts of sweeps
    differences_r: Any  # (depth, size) differences of what an undamped sweep would add
    last_x: Any
    last_r: Any
    ridge: Any  # of the least squares of an extrapolation: large after failures, when it is nearly a plain sweep
    history: Any  # how many differences are in use
    accelerated: Any
    step: Any
    ceiling: Any  # a step above this failed: growth slows down
    iteration: Any
    rejected: Any
    damped: Any
    floored: Any
    code: Any
    accepted: Any  # sweeps that succeeded since the start
    narrowed: Any  # times that the start was made narrower
    sound: Any  # the last start that was found sound; `rest` and `parts` belong to it
    found: Any  # whether there was one
    closing: Any  # converged; the last sweep only evaluates the evidence of the answer
    parts: Any  # evidence by factor at `sound`
    error: Any
    residuals: Any
    evidences: Any


def begin(x: Any, rest: Any, floored: Any, parts: Any, settings: Settings, step: float) -> Carry:
    """The carry before the first sweep."""
    size, inf = x.shape[0], jnp.asarray(jnp.inf)
    empty = jnp.zeros((settings.depth, size), x.dtype)
    trace = jnp.full(settings.trace, jnp.nan)
    zero = jnp.zeros((), jnp.int32)
    return Carry(
        x=x,
        base=x,
        good=x,
        rest=rest,
        good_residual=inf,
        older_residual=inf,
        good_evidence=-inf,
        best_residual=inf,
        best_at=zero,
        differences_x=empty,
        differences_r=empty,
        last_x=x,
        last_r=jnp.zeros_like(x),
        ridge=jnp.asarray(SMALLEST_RIDGE),
        history=zero,
        accelerated=jnp.asarray(False),
        step=jnp.asarray(step, float),
        ceiling=jnp.asarray(1.0),
        iteration=zero,
        rejected=zero,
        damped=zero,
        floored=floored,
        code=jnp.asarray(RUNNING, jnp.int32),
        accepted=zero,
        narrowed=zero,
        sound=x,
        found=jnp.asarray(False),
        closing=jnp.asarray(False),
        parts=parts,
        error=inf,
        residuals=trace,
        evidences=trace,
    )


def advance(
    sweep: Callable[[Any, Any, Any, Any], Any],
    start: Callable[[Any], Any],
    carry: Carry,
    settings: Settings,
    limit: Any,
) -> Carry:
    """Sweeps until converged, failed, or `limit` iterations.

    `sweep(x, rest, step, first)` returns (y, rest, residual, evidence parts, whether x is proper, whether y is too,
    floored); `start(n)` is the start made narrower n times.
    """

    def going(carry):
        return (carry.code == RUNNING) & (carry.iteration < limit)

    return jax.lax.while_loop(going, lambda carry: _iterate(sweep, start, carry, settings), carry)


def _iterate(sweep, start, carry: Carry, settings: Settings) -> Carry:
    first = carry.accepted == 0
    y, rest, residual, parts, begun, proper, floored = sweep(carry.x, carry.rest, carry.step, first)
    residual, parts, begun, proper = settle((residual, parts, begun, proper), carry.step > 0)
    evidence = sum(parts.values(), jnp.zeros(())) if settings.with_evidence else jnp.asarray(jnp.nan)
    residual = residual / carry.step
    finite, number = jnp.all(jnp.isfinite(y)) & ~jnp.isnan(residual), evidence < jnp.inf
    # The very first sweep may start from beliefs that are still improper, but must make numbers of them.
    failed_start = ~finite
    if settings.monotone and not settings.seeded:
        failed_start = failed_start | ~jnp.isfinite(evidence)
    if settings.seeded:
        evidence = jnp.where(first, -jnp.inf, evidence)
    bad = ~finite | ~proper
    if settings.monotone:
        # Close to the optimum evidence is lost with the square of the distance: an extrapolation may dip a little.
        dip = jnp.where(carry.accelerated, jnp.minimum(carry.good_residual, 0.3) ** 2, 0.0)
        slack = 1e-10 * (1.0 + jnp.abs(carry.good_evidence)) + dip
        # A plain sweep that moves less than the tolerance loses no evidence but for rounding: of huge parts, say.
        loses = (evidence < carry.good_evidence - slack) & (carry.accelerated | (residual > settings.tolerance))
        bad = bad | loses | ~jnp.isfinite(evidence)
    else:
        # Below one standard deviation a rising residual is news that arrives late, not divergence.
        bad = bad | (carry.accelerated & (residual > 2.0 * jnp.maximum(carry.good_residual, settings.tolerance)))
        bad = bad | (residual > 1e6 * jnp.maximum(carry.good_residual, 1.0))
    # Minus infinity is the evidence of a contradiction; infinity and what is no number are those of no state at all.
    number = number | (not settings.with_evidence)
    whole = jnp.where(first, finite & proper, ~bad) & number
    sound = whole | (begun & number & ~carry.found)  # a sound state that leads nowhere is better than none
    bad = jnp.where(first, failed_start, bad)
    # A small step is not a small distance: with contraction rate q what is left is about q / (1 - q) steps, q seen over
    # one and two sweeps.
    ratio = residual / jnp.maximum(carry.good_residual, 1e-300)
    ratio_two = jnp.sqrt(residual / jnp.maximum(carry.older_residual, 1e-300))
    rate = jnp.clip(jnp.maximum(ratio, ratio_two), 0.0, 0.99)
    error = residual / (1.0 - rate)
    plain_failure = bad & ~carry.accelerated
    ceiling = jnp.where(plain_failure, 0.8 * carry.step, jnp.where(bad, carry.ceiling, 1.02 * carry.ceiling))
    ceiling = jnp.minimum(1.0, ceiling)
    grown = jnp.minimum(ceiling, 1.15 * carry.step)
    step = jnp.where(plain_failure, 0.4 * carry.step, jnp.where(bad, carry.step, grown))
    improved = ~bad & (residual < carry.best_residual)
    best_at = jnp.where(improved, carry.iteration, carry.best_at)
    stuck = carry.iteration - best_at > 25
    step = jnp.where(stuck, 0.5 * step, step)
    best_at = jnp.where(stuck, carry.iteration, best_at)
    carry, accelerated_x, history = _extrapolate(carry, y, settings)
    # Where the plain map leads away from a fixed point (a saddle), the extrapolation would lead back to it.
    plain = history == 0
    if settings.monotone:
        plain = plain | (residual > carry.good_residual)
    lost = bad & carry.accelerated
    ridge = jnp.where(lost, 100.0 * jnp.maximum(carry.ridge, 1e-10), jnp.maximum(0.1 * carry.ridge, SMALLEST_RIDGE))
    # What a sweep told about the map stays true when the sweep is rejected, unless its numbers are unsound.
    reset = plain_failure | stuck | (bad & (~finite | ~proper))
    # An extrapolation that failed falls back to the plain sweep it came from; a plain sweep that failed to where that
    # sweep began, with a smaller step.
    x = jnp.where(bad, jnp.where(carry.accelerated, carry.good, carry.base), jnp.where(stuck | plain, y, accelerated_x))
    within = ~bad & ~first & (error <= settings.tolerance)
    closing = within & ~carry.closing & settings.with_evidence
    done = ~bad & carry.closing | within & ~closing
    x = jnp.where(closing, y, x)
    failed = plain_failure & (step < SMALLEST_STEP)
    # Where nothing but the start ever succeeded, the start is at fault, not the step.
    narrow = (bad & first | failed & (carry.accepted == 1)) & (carry.narrowed < NARROWEST)
    x = jax.lax.cond(narrow, lambda: start(carry.narrowed + 1), lambda: x)
    again = jnp.where(first, 1.0, 0.5 ** (carry.narrowed + 1.0))
    step, ceiling = jnp.where(narrow, again, step), jnp.where(narrow, again, ceiling)
    failed = failed & ~narrow
    iteration = carry.iteration + 1
    last = iteration >= settings.max_iterations
    code = jnp.where(
        done & whole, CONVERGED, jnp.where(failed | done, DIVERGED, jnp.where(last, _why(carry, residual), RUNNING))
    ).astype(jnp.int32)
    return carry._replace(
        x=x,
        base=jnp.where(narrow, x, jnp.where(bad, carry.base, carry.x)),
        good=jnp.where(bad, carry.good, y),
        rest=jax.tree.map(lambda new, old: jnp.where(sound, new, old), rest, carry.rest),
        good_residual=jnp.where(bad, carry.good_residual, residual),
        older_residual=jnp.where(bad, carry.older_residual, carry.good_residual),
        good_evidence=jnp.where(bad, carry.good_evidence, evidence),
        best_residual=jnp.where(narrow, jnp.inf, jnp.where(improved, residual, carry.best_residual)),
        best_at=best_at,
        history=jnp.where(reset, -1, history),  # the next difference still spans the reset
        accelerated=~bad & ~stuck & ~plain & ~closing,
        step=step,
        ceiling=ceiling,
        ridge=jnp.where(bad | (history > 0), jnp.minimum(ridge, 1.0), carry.ridge),
        iteration=iteration,
        rejected=carry.rejected + (bad & carry.accelerated),
        damped=carry.damped + (plain_failure & ~narrow | stuck),
        floored=jax.tree.map(lambda a, b: a + b.astype(a.dtype), carry.floored, floored),
        code=code,
        accepted=jnp.where(narrow, 0, carry.accepted + ~bad),
        narrowed=carry.narrowed + narrow,
        sound=jnp.where(sound, carry.x, carry.sound),
        found=carry.found | sound,
        closing=closing,
        parts=jax.tree.map(lambda new, old: jnp.where(sound, new, old), parts, carry.parts),
        error=jnp.where(bad | carry.closing, carry.error, error),
        residuals=carry.residuals.at[carry.iteration].set(residual),
        evidences=carry.evidences.at[carry.iteration].set(jnp.where(bad | ~jnp.isfinite(evidence), jnp.nan, evidence)),
    )


def preferred(code: Any, found: Any, evidence: Any, monotone: bool) -> Any:
    """The position of the best of several runs: the best evidence among those of the best rank.

    Without convergence the evidence of EP means little, and that of a run that diverged nothing.
    """
    rank = jnp.where(found, jnp.asarray(RANKS[monotone])[code], UNSOUND)
    return jnp.lexsort((-evidence, rank))[0]


def _why(carry: Carry, residual: Any) -> Any:
    """Out of iterations: oscillating when damping was needed again and again, else slow."""
    return jnp.where((carry.damped > 3) & (residual > 10.0 * carry.best_residual), OSCILLATING, SLOW)


def _extrapolate(carry: Carry, y: Any, settings: Settings) -> tuple[Carry, Any, Any]:
    """Anderson's combination of the last results.

    The residual's best approximation by its own differences is subtracted.
    """
    if settings.depth == 0:
        return carry, y, jnp.zeros((), jnp.int32)
    r = (y - carry.x) / carry.step
    slot = jnp.mod(carry.iteration, settings.depth)
    usable = (carry.iteration > 0) & jnp.all(jnp.isfinite(y))
    dx = jnp.where(
        usable,
        jax.lax.dynamic_update_index_in_dim(carry.differences_x, carry.x - carry.last_x, slot, 0),
        carry.differences_x,
    )
    dr = jnp.where(
        usable, jax.lax.dynamic_update_index_in_dim(carry.differences_r, r - carry.last_r, slot, 0), carry.differences_r
    )
    history = jnp.where(usable, jnp.minimum(carry.history + 1, settings.depth), 0)
    age = jnp.mod(slot - jnp.arange(settings.depth), settings.depth)
    active = age < history
    gram = jnp.where(active[:, None] & active[None, :], dr @ dr.T, 0.0)
    scale = jnp.maximum(jnp.max(jnp.diagonal(gram)), 1e-300)
    gram = gram / scale + jnp.diag(jnp.where(active, carry.ridge, 1.0))
    right = jnp.where(active, dr @ r, 0.0) / scale
    weights = jnp.linalg.solve(gram, right)
    candidate = y - weights @ jnp.where(active[:, None], dx + carry.step * dr, 0.0)
    sound = jnp.all(jnp.isfinite(candidate))
    return (
        carry._replace(differences_x=dx, differences_r=dr, last_x=carry.x, last_r=r),
        jnp.where(sound, candidate, y),
        jnp.where(sound, history, 0),
    )
