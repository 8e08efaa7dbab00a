"""Values that are 0 or 1: each drawn given all others, those of one feature at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from .contract import Likelihood, Point, Rows, totals


def update_binary(key: Key, likelihood: Likelihood, rows: Rows, point: Point, share: Array) -> Point:
    """The point with all values drawn anew, of prior probability `share`; a feature's given those of all others.

    Given the others, the entries of dimension d depend on a_kd alone, so that all dimensions are drawn together.
    """
    u = draws.uniform(key, point.values.shape)
    threshold = jnp.log(u) - jnp.log1p(-u)

    def one(place: Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        values, total = carry
        has = point.active[:, place][:, None]
        without = total - has * values[place]
        gain = likelihood.log_entry(rows.values, without + 1.0, point.numbers) - likelihood.log_entry(
            rows.values, without, point.numbers
        )
        odds = jnp.log(share) - jnp.log1p(-share) + jnp.sum(gain, axis=0, where=rows.seen & has)
        drawn = (threshold[place] < odds).astype(values.dtype)
        return values.at[place].set(drawn), without + has * drawn

    values, _ = jax.lax.fori_loop(0, point.values.shape[0], one, (point.values, totals(point)))
    return point._replace(values=values)
