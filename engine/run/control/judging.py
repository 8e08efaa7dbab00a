"""What a sweep's result is worth: whether it is sound, whether it failed, whether it is better, and how far is left."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....factors.arrays import Array
from ...support.computed_once import computed_once
from ...support.concrete import all_finite
from .carry import Carry, Parts, Settings, Swept

PATIENCE = 25  # sweeps without a better residual


class Judgement(NamedTuple):
    """What is thought of a sweep from x to y."""

    residual: Float[Array, ""]  # of an undamped sweep
    evidence: Float[Array, ""]  # of x
    parts: Parts
    first: Bool[Array, ""]  # since the start
    fit: Bool[Array, ""]  # y has numbers, and its beliefs are proper
    bad: Bool[Array, ""]  # the sweep failed: the run does not go on from y
    plain_failure: Bool[Array, ""]  # and x was no extrapolation that could be blamed
    whole: Bool[Array, ""]  # x is sound, and leads on
    sound: Bool[Array, ""]  # x may be returned
    error: Float[Array, ""]  # estimated distance of y from the fixed point, in standard deviations
    improved: Bool[Array, ""]
    stuck: Bool[Array, ""]  # no better residual for long
    closing: Bool[Array, ""]  # converged: one more sweep evaluates the evidence of y
    done: Bool[Array, ""]  # nothing is left to do


def judge(swept: Swept, carry: Carry, settings: Settings) -> Judgement:
    """What a sweep from `carry.x` is worth."""
    first = carry.tally.accepted == 0
    residual, parts, begun, proper = computed_once(
        (swept.residual, swept.parts, swept.begun, swept.proper), carry.pace.step > 0
    )
    evidence = sum(parts.values(), jnp.zeros(())) if settings.with_evidence else jnp.asarray(jnp.nan)
    residual = residual / carry.pace.step
    finite = all_finite(swept.y) & ~jnp.isnan(residual)
    # Minus infinity is the evidence of a contradiction; infinity and what is no number are those of no state at all.
    number = (evidence < jnp.inf) | (not settings.with_evidence)
    # The very first sweep may start from beliefs that are still improper, but must make numbers of them.
    failed_start = ~finite
    if settings.monotone and not settings.seeded:
        failed_start = failed_start | ~jnp.isfinite(evidence)
    if settings.seeded:
        evidence = jnp.where(first, -jnp.inf, evidence)
    fit = finite & proper
    failed = ~fit | (_loses if settings.monotone else _runs_away)(residual, evidence, carry, settings)
    if settings.climbs:  # an extrapolation would lead back to a saddle that plain sweeps lead away from
        failed = failed | (carry.accelerated & _loses(residual, evidence, carry, settings))
    whole = jnp.where(first, fit, ~failed) & number
    bad = jnp.where(first, failed_start, failed)
    error = distance_left(residual, carry)
    improved = ~bad & (residual < carry.best.residual)
    within = ~bad & ~first & (error <= settings.tolerance)
    closing = within & ~carry.closing & settings.with_evidence
    return Judgement(
        residual=residual,
        evidence=evidence,
        parts=parts,
        first=first,
        fit=fit,
        bad=bad,
        plain_failure=bad & ~carry.accelerated,
        whole=whole,
        sound=whole | (begun & number & ~carry.sound.found),  # one that leads nowhere is better than none
        error=error,
        improved=improved,
        stuck=carry.iteration - jnp.where(improved, carry.iteration, carry.best.at) > PATIENCE,
        closing=closing,
        done=~bad & carry.closing | within & ~closing,
    )


def _loses(residual: Float[Array, ""], evidence: Float[Array, ""], carry: Carry, settings: Settings) -> Bool[Array, ""]:
    """Whether evidence is lost where every sweep must raise it."""
    # Close to the optimum evidence is lost with the square of the distance: an extrapolation may dip a little.
    dip = jnp.where(carry.accelerated, jnp.minimum(carry.good.residual, 0.3) ** 2, 0.0)
    slack = 1e-10 * (1.0 + jnp.abs(carry.good.evidence)) + dip
    # A plain sweep that moves less than the tolerance loses no evidence but for rounding: of huge parts, say.
    lost = (evidence < carry.good.evidence - slack) & (carry.accelerated | (residual > settings.tolerance))
    return lost | ~jnp.isfinite(evidence)


def _runs_away(
    residual: Float[Array, ""], evidence: Float[Array, ""], carry: Carry, settings: Settings
) -> Bool[Array, ""]:
    """Whether the residual rises too far, where the evidence is no bound."""
    # Below one standard deviation a rising residual is news that arrives late, not divergence.
    doubled = carry.accelerated & (residual > 2.0 * jnp.maximum(carry.good.residual, settings.tolerance))
    return doubled | (residual > 1e6 * jnp.maximum(carry.good.residual, 1.0))


def distance_left(residual: Float[Array, ""], carry: Carry) -> Float[Array, ""]:
    """The estimated distance from the fixed point, in standard deviations.

    A small step is not a small distance: with contraction rate q what is left is about q / (1 - q) steps, q seen over
    one and two sweeps.
    """
    ratio = residual / jnp.maximum(carry.good.residual, 1e-300)
    ratio_two = jnp.sqrt(residual / jnp.maximum(carry.good.older_residual, 1e-300))
    rate = jnp.clip(jnp.maximum(ratio, ratio_two), 0.0, 0.99)
    return residual / (1.0 - rate)
