"""Where damping is decided: the step of the next sweep with its ceiling, and by element how far a step of NCVMP goes.

A plain sweep that fails is tried again with a smaller step, which grows with each sweep that succeeds, up to a ceiling
below the step that last failed. A run that gets no better for long is damped too.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ....factors.arrays import Array
from .carry import Pace
from .judging import Judgement

SMALLEST_STEP = 1e-4  # a run whose plain sweeps fail below this has diverged


def damped(pace: Pace, judged: Judgement, longest: float) -> Pace:
    """The step of the next sweep, and what it may grow to, at most the `longest` that was asked for."""
    lowered = jnp.where(judged.plain_failure, 0.8 * pace.step, jnp.where(judged.bad, pace.ceiling, 1.02 * pace.ceiling))
    ceiling = jnp.minimum(longest, lowered)
    grown = jnp.minimum(ceiling, 1.15 * pace.step)
    step = jnp.where(judged.plain_failure, 0.4 * pace.step, jnp.where(judged.bad, pace.step, grown))
    return Pace(jnp.where(judged.stuck, 0.5 * step, step), ceiling)


def undamped(pace: Pace, judged: Judgement, narrow: Bool[Array, ""], narrowed: Int[Array, ""], longest: float) -> Pace:
    """The pace from a narrower start, where `narrow`: a full step, but a smaller one each time that steps failed."""
    again = jnp.where(judged.first, longest, longest * 0.5 ** (narrowed + 1.0))
    return Pace(jnp.where(narrow, again, pace.step), jnp.where(narrow, again, pace.ceiling))


def trust_in(
    kind: str, belief: tuple[Array, ...], target: tuple[Array, ...], current: tuple[Array, ...]
) -> Float[Array, "*plates"] | float:
    """By element, the part of an NCVMP step that multiplies no precision, nor shape of a Gamma, by more than a million.

    The start may be so vague that the full step is meaningless.
    """
    if kind not in ("real", "vector", "positive"):
        return 1.0
    old, change = -belief[1], current[1] - target[1]
    if kind == "positive":
        old, change = belief[1] + 1.0, -change
    if kind == "vector":
        old, change = (jnp.diagonal(matrix, axis1=-2, axis2=-1) for matrix in (old, change))
    growth = change / jnp.where(old > 0, old, 1.0)
    growth = growth.max(-1) if kind == "vector" else growth
    return jnp.minimum(1.0, 1e6 / jnp.maximum(growth, 1e-300))
