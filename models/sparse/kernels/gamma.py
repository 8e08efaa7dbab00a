"""Gamma variables of many shapes at once: one loop for all that a sweep draws."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from .bits import ROUNDS, STREAMS, normal_of, uniforms, whole


def log_gammas(seed: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    """Logarithms of independent `Gamma(shape, rate 1)` variables, by Marsaglia and Tsang's rejection.

    Shapes below 1 are drawn one higher and multiplied by `uniform^(1 / shape)`; as logarithms they do not underflow.

    Args:
        seed: (2,) from `bits.seed_of`.
        shapes: for each stream of random numbers an array of positive shapes, (places,) or (places, indices); draws
            belong to their stream, place and index.

    Returns:
        For each stream an array like its shapes.

    Source: marsaglia2000simple.
    """
    if not shapes:
        return {}
    streams, places, indices, flat = [], [], [], []
    for stream, shape in shapes.items():
        table = shape if shape.ndim == 2 else shape[:, None]
        place, index = (lax.broadcasted_iota(jnp.uint32, table.shape, axis) for axis in (0, 1))
        streams.append(jnp.full(table.size, STREAMS.index(stream), jnp.uint32))
        places.append(place.ravel())
        indices.append(index.ravel())
        flat.append(table.ravel())
    size = sum(shape.size for shape in flat)
    streams, places, indices, flat = (
        jnp.pad(jnp.concatenate(each), (0, whole(size) - size), constant_values=1)
        for each in (streams, places, indices, flat)
    )
    drawn = _log_gammas(seed, (streams, places, indices), flat)
    found, start = {}, 0
    for stream, shape in shapes.items():
        found[stream] = drawn[start : start + shape.size].reshape(shape.shape)
        start += shape.size
    return found


def _log_gammas(seed: Any, address: tuple[Any, Any, Any], shape: Any) -> Any:
    small = shape < 1.0
    d = jnp.where(small, shape + 1.0, shape) - 1.0 / 3.0
    c = lax.rsqrt(9.0 * d)

    def body(carry: Any) -> Any:
        again, value = carry
        x = normal_of(uniforms(seed, *address, again))
        u = uniforms(seed, *address, again + 1)
        root = 1.0 + c * x
        v = jnp.where(root > 0.0, root, 1.0) ** 3
        log_v = jnp.log(v)
        good = (root > 0.0) & (jnp.log(u) < 0.5 * x * x + d * (1.0 - v + log_v))
        return again + 2, jnp.where(jnp.isnan(value) & good, log_v, value)

    # What waits is NaN: one array, so that one fused loop computes it. At least 95 % of the candidates are accepted:
    # no more than a handful of rounds ever run.
    start = (jnp.uint32(0), jnp.full_like(shape, jnp.nan))
    _, value = lax.while_loop(lambda carry: jnp.isnan(carry[1]).any() & (carry[0] < ROUNDS - 1), body, start)
    boost = jnp.log(uniforms(seed, *address, ROUNDS)) / jnp.where(small, shape, 1.0)
    return value + jnp.log(d) + jnp.where(small, boost, 0.0)
