"""Counter-based random numbers: each is a function of the sweep's seed, its stream, its place and its index alone.

So a draw belongs to a factor and a row, however many places of factors there are, and is made where it is used. The
numbers are those of `factors/draws.py`, at addresses.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ....factors.draws import ROUNDS as ROUNDS
from ....factors.draws import normal_of as normal_of
from ....factors.draws import numbers_at
from ....factors.draws import seed_of as seed_of
from ....factors.draws import whole as whole

STREAMS = (
    "active", "inactive", "precision", "precision_rate", "noise", "noise_rate", "mass", "concentration", "element",
    "other element", "open", "switch", "loading", "rows", "birth", "born", "born element", "born loading",
    "factor", "missing", "urn", "shared", "shared score", "shared loading", "shared row",
)  # fmt: skip


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
    return numbers_at(seed, *jnp.broadcast_arrays((number << 26) + (again << 18) + place, index))


def normals(seed: Any, stream: Any, place: Any, index: Any, again: Any = 0) -> Any:
    """Standard normal numbers; arguments as for `uniforms`."""
    return normal_of(uniforms(seed, stream, place, index, again))
