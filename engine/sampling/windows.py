"""Stan's windows of warming up: a fast one, slow ones that double, a fast one. Source: carpenter2017stan."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

FIRST, LAST, SLOW = 75, 50, 25


class Windows(NamedTuple):
    """For each transition of the warm-up whether its window learns the spread, and whether it is the last of one."""

    slow: Bool[jax.Array, " warmup"]
    closes: Bool[jax.Array, " warmup"]


def windows(warmup: int) -> Windows:
    """The windows of so many transitions; short ones keep the shares of the long."""
    slow, closes = np.zeros(warmup, bool), np.zeros(warmup, bool)
    first, last, width = FIRST, LAST, SLOW
    if warmup < FIRST + LAST + SLOW:
        first, last = int(0.15 * warmup), int(0.1 * warmup)
        width = warmup - first - last
    if warmup >= 20:
        begin, end = first, warmup - last
        slow[begin:end] = True
        while begin < end:
            close = begin + width if begin + 3 * width <= end else end
            closes[close - 1] = True
            begin, width = close, 2 * width
    return Windows(jnp.asarray(slow), jnp.asarray(closes))
