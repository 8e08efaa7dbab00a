"""Counter-based random numbers: each is a function of the sweep's seed, its stream, its place and its index alone.

So a draw belongs to a factor and a row, however many places of factors there are, and is made where it is used. The
function is Threefry-2x32 with 20 rounds, the one behind `jax.random`, written out so that it fuses with what reads it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

STREAMS = (
    "active", "inactive", "precision", "precision_rate", "noise", "noise_rate", "mass", "concentration", "element",
    "other element", "open", "switch", "loading", "rows", "birth", "born", "born element", "born loading",
    "factor", "missing",
)  # fmt: skip
ROUNDS = 255  # the last of the draws that one address has
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def whole(number: int) -> int:
    """The next multiple of 8: only loops over such numbers of entries are vectorised by XLA's CPU compiler."""
    return -(-number // 8) * 8


def seed_of(key: Any) -> Any:
    """(2,) uint32 of a key of `jax.random`."""
    return jax.random.bits(key, (2,), jnp.uint32)


def uniforms(seed: Any, stream: Any, place: Any, index: Any, again: Any = 0) -> Any:
    """Uniform numbers in (0, 1), neither end included.

    Args:
        seed: (2,) from `seed_of`.
        stream: one of STREAMS, what the numbers are for, or an array of their numbers.
        place: whole numbers below 2^18, such as factors.
        index: whole numbers, such as rows; broadcast with `place`.
        again: at most ROUNDS: which of the draws of the same address.
    """
    place, index, again = (jnp.asarray(each).astype(jnp.uint32) for each in (place, index, again))
    number = jnp.uint32(STREAMS.index(stream)) if isinstance(stream, str) else stream
    return _uniform(seed, (number << 26) + (again << 18) + place, index)


def normals(seed: Any, stream: Any, place: Any, index: Any, again: Any = 0) -> Any:
    """Standard normal numbers; arguments as for `uniforms`."""
    return normal_of(uniforms(seed, stream, place, index, again))


def normal_of(uniform: Any) -> Any:
    """The standard normal number at this quantile."""
    return jnp.sqrt(2.0) * lax.erf_inv(2.0 * uniform - 1.0)


def _uniform(seed: Any, high: Any, low: Any) -> Any:
    high, low = _threefry(seed[0], seed[1], *jnp.broadcast_arrays(high, low))
    # 52 bits and a half: no 0, no 1, and never exactly the middle, where a normal number would be 0.
    number = (high >> 6).astype(jnp.float64) * 2.0**26 + (low >> 6).astype(jnp.float64)
    return (number + 0.5) * 2.0**-52


def _threefry(one: Any, two: Any, high: Any, low: Any) -> tuple[Any, Any]:
    keys = (one, two, one ^ two ^ jnp.uint32(0x1BD11BDA))
    high, low = high + keys[0], low + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            high = high + low
            low = high ^ ((low << rotation) | (low >> (32 - rotation)))
        high, low = high + keys[(group + 1) % 3], low + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return high, low
