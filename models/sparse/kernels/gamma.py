"""Gamma variables of many shapes at once: one loop for all that a sweep draws."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ....factors.draws import log_gamma_of
from .bits import STREAMS, uniforms, whole


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
    drawn = log_gamma_of(lambda again: uniforms(seed, streams, places, indices, again), flat)
    found, start = {}, 0
    for stream, shape in shapes.items():
        found[stream] = drawn[start : start + shape.size].reshape(shape.shape)
        start += shape.size
    return found
