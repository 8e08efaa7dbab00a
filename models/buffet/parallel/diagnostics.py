"""Whether a chain has forgotten where it began, and how many independent draws it is worth."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ....factors.errors import DataError


class Hairiness(NamedTuple):
    """How often the path of cumulative sums of a trace turns, and where that lies if draws are independent.

    Attributes:
        index: (draws - 1,) the share of turns among the first 1, 2, ... steps.
        lower, upper: (draws - 1,) bounds of 95 in 100 such shares, for each number of steps.
    """

    index: Float[np.ndarray, " step"]
    lower: Float[np.ndarray, " step"]
    upper: Float[np.ndarray, " step"]

    @property
    def inside(self) -> float:
        """The share of steps at which the index lies within the bounds."""
        return float(np.mean((self.lower <= self.index) & (self.index <= self.upper)))


def hairiness(trace: Any) -> Hairiness:
    """How often the path of sums `s_t = sum_{i <= t} (x_i - mean)` turns: `D_t = 1/t sum_{i <= t} d_i`.

    `d_i` is 1 where the path goes up and then down, or down and then up. Of independent draws, symmetric about their
    mean, each is so with probability a half, and D_t lies within `1/2 +- 1.96 sqrt(1 / 4t)` 95 times in a hundred. A
    path that turns less often is smooth, and the chain slow.

    Args:
        trace: (draws,) numbers, such as a parameter after warmup and thinning; three or more that are not all alike.

    Returns:
        Index and bounds.

    Raises:
        DataError: no such numbers.

    Source: brooks1998convergence.
    """
    values = np.asarray(trace, float)
    if values.ndim != 1 or values.size < 3 or not np.all(np.isfinite(values)) or np.ptp(values) == 0.0:
        raise DataError(f"hairiness: give three or more finite numbers, not all alike; found an array {values.shape}.")
    up = values > values.mean()
    turns = up[1:] != up[:-1]
    steps = np.arange(1, turns.size + 1)
    half = 1.96 * np.sqrt(0.25 / steps)
    return Hairiness(np.cumsum(turns) / steps, 0.5 - half, 0.5 + half)


def effective_draws(traces: Any) -> float:
    """How many independent draws the mean of chains is worth, `draws / (1 + 2 sum of autocorrelations)`, by ArviZ.

    Args:
        traces: (draws,) numbers of a chain, or (chains, draws); four draws or more.

    Returns:
        The bulk effective sample size.

    Raises:
        DataError: too few numbers, or ones that are not finite.
        ImportError: without ArviZ, the extra `arviz`.

    Source: vehtari2021rhat.
    """
    values = np.atleast_2d(np.asarray(traces, float))
    if values.ndim != 2 or values.shape[1] < 4 or not np.all(np.isfinite(values)):
        raise DataError(f"effective_draws: give four or more finite draws of each chain; found shape {values.shape}.")
    try:
        arviz = importlib.import_module("arviz")
    except ImportError:
        raise ImportError("effective_draws needs ArviZ, which is not installed: pip install 'cavity[arviz]'.") from None
    return float(arviz.ess(values))
