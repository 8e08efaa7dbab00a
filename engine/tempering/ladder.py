"""Ladders of inverse temperatures: how often exchanges are rejected, and where rungs make that equal everywhere.

The rejections, added up along the ladder, estimate the communication barrier, which belongs to the path and hardly
depends on the rungs. Source: syed2022nonreversible.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator

from .replicas import Ladder

APART = 0.99  # rejection of a pair across which nothing is known
ENOUGH, AMPLE = 2.0, 3.0  # times the barrier: rungs that serve, and how many are taken where there are fewer
MOST_RUNGS = 80
LEAST = 1e-3  # rejection of a pair that is reckoned with, so that no two rungs fall on one
NARROWEST, WIDEST = 1e-12, 0.5  # of the first step of the first ladder

Rejections = Float[np.ndarray, " pair"]


def first_ladder(log_ratio: Float[np.ndarray, " draw"], rungs: int) -> Ladder:
    """Geometric, from where the log ratio of draws from the reference, times the first step, varies by about one."""
    finite = log_ratio[np.isfinite(log_ratio)]
    spread = np.subtract(*np.quantile(finite, [0.75, 0.25])) if len(finite) > 3 else 1.0
    step = float(np.clip(1.0 / max(spread, 1e-300), NARROWEST, WIDEST))
    return np.concatenate([[0.0], np.geomspace(step, 1.0, rungs - 1)]) if rungs > 2 else np.array([0.0, 1.0])


def rejections(log_ratio: Float[np.ndarray, "sweep copy rung"], ladder: Ladder) -> Rejections:
    """How often the exchange of each pair of neighbours is rejected: the expectation at every sweep."""
    with np.errstate(invalid="ignore"):
        log_accept = np.diff(ladder) * (log_ratio[..., :-1] - log_ratio[..., 1:])
    accept = np.exp(np.minimum(np.nan_to_num(log_accept, nan=-np.inf), 0.0))
    return 1.0 - accept.mean((0, 1))


def equalised(ladder: Ladder, rejected: Rejections, rungs: int) -> Ladder:
    """The ladder of so many rungs on which all pairs are expected to be rejected equally often."""
    barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rejected, LEAST))])
    found = PchipInterpolator(barrier, ladder)(np.linspace(0.0, barrier[-1], rungs))
    found[0], found[-1] = 0.0, 1.0
    return found


def rungs_for(rejected: Rejections, least: int) -> int:
    """How many rungs a barrier asks for: as many as there are where they serve, ample ones otherwise."""
    barrier, count = rejected.sum(), len(rejected) + 1
    wanted = int(np.clip(np.ceil(AMPLE * barrier) + 1, least, MOST_RUNGS))
    return wanted if count < ENOUGH * barrier + 1 else count


def gap_of(rejected: Rejections, ladder: Ladder) -> str | None:
    """Which neighbours have hardly a state in common, as a sentence; None where all have.

    No estimate of the evidence, nor its error, knows of what lies between.
    """
    worst = int(np.argmax(rejected))
    if not rejected[worst] > APART:
        return None
    return (
        f"Replicas at the inverse temperatures {ladder[worst]:.3g} and {ladder[worst + 1]:.3g} have hardly a state in "
        f"common ({rejected[worst]:.1%} of their exchanges are rejected), so the log evidence may be off by more than "
        "its standard error says."
    )
