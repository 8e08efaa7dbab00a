"""Slice sampling of numbers, many independent ones at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STEPS = 32  # of stepping out, both sides together


def slice_draw(
    log_density: Callable[[np.ndarray], np.ndarray], x: np.ndarray, random: np.random.Generator, width: float = 1.0
) -> np.ndarray:
    """One transition of a slice sampler with stepping out, for K numbers that are independent of each other.

    Args:
        log_density: `(K,) -> (K,)`, each number's log density up to a constant; called for all of them at once.
        x: (K,) where they are; of positive density.
        random: the generator.
        width: of the first interval, about the spread of the distribution.

    Returns:
        (K,) where they are next.

    Source: neal2003slice.
    """
    x = np.asarray(x, dtype=np.float64)
    level = log_density(x) - random.standard_exponential(x.shape)
    low = x - width * random.random(x.shape)
    high = low + width
    left = np.floor(STEPS * random.random(x.shape))  # the steps that remain are shared at random: else not reversible
    right = STEPS - 1 - left
    while (out := (left > 0) & (log_density(low) > level)).any():
        low, left = np.where(out, low - width, low), np.where(out, left - 1, 0)
    while (out := (right > 0) & (log_density(high) > level)).any():
        high, right = np.where(out, high + width, high), np.where(out, right - 1, 0)
    found = x.copy()
    waiting = np.ones(x.shape, dtype=bool)
    while waiting.any():
        proposal = low + (high - low) * random.random(x.shape)
        trial = np.where(waiting, proposal, found)
        good = log_density(trial) >= level
        # An interval that has shrunk to where it started, to rounding, stays there.
        good |= waiting & (high - low <= 1e-14 * (1.0 + np.abs(x)))
        found = np.where(waiting & good, trial, found)
        waiting &= ~good
        low = np.where(waiting & (proposal < x), proposal, low)
        high = np.where(waiting & (proposal >= x), proposal, high)
    return found
