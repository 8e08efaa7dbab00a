"""The residual of a sweep, in standard deviations of the beliefs, and how far a step of NCVMP may go."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...compiler.graph import Plan
from ..values.first_beliefs import stats_from_moments
from ..values.naturals import Naturals


def distance(
    graph: Plan, before: Naturals, after: Naturals, seen: dict[str, Any], found: dict[str, Any], names: list[str]
) -> Any:
    """The largest change of a belief in its own standard deviations, `seen` and `found` being its moments.

    That is the square root of the symmetric divergence (new - old) . (E new - E old).
    """
    worst = jnp.zeros(())
    for name in names:
        plates = len(graph.latent[name].plates)
        total = 0.0
        for a, b, s, t in zip(
            before[name], after[name], stats_from_moments(seen[name]), stats_from_moments(found[name]), strict=True
        ):
            product = (b - a) * (t - s)
            total = total + product.sum(axis=tuple(range(plates, product.ndim)))
        worst = jnp.maximum(worst, jnp.max(jnp.where(jnp.isfinite(total), jnp.abs(total), jnp.inf)))
    return jnp.sqrt(worst)


def trust_in(kind: str, belief: tuple[Any, ...], target: tuple[Any, ...], current: tuple[Any, ...]) -> Any:
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
