"""The residual of a sweep: the largest change of a belief, in its standard deviations."""

from __future__ import annotations

from collections.abc import Iterable

import jax.numpy as jnp
from jaxtyping import Float

from ...compiler.graph import Plan
from ...factors.arrays import Array
from ..values.first_beliefs import stats_from_moments
from ..values.naturals import Naturals
from .bound_plan import Moments


def distance(
    graph: Plan, before: Naturals, after: Naturals, seen: Moments, found: Moments, names: Iterable[str]
) -> Float[Array, ""]:
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
