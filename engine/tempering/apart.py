"""`cv.evidence` by workers: each copy of the ladder is a job of its own, which adapts it for itself."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..cluster.parcels import Parcel
from ..cluster.workers import Job, Workers
from ..mcmc.apart import jobs_apart
from .estimators import Estimate
from .found import Evidence


def by_workers(
    make: Callable[..., Any],
    arguments: tuple[Any, ...],
    run: Callable[..., Evidence],
    copies: int,
    max_seconds: float | None,
    workers: Workers,
    progress: bool | Callable[[int, int], None] | None,
) -> Evidence:
    """The mean of what `run(make(*arguments), number, seconds)` finds for each copy, in so many seconds or any.

    `make` prepares for any number of copies, once in each worker. The answer is the same however many workers there
    are. Raises ModelError for what cannot go to other processes, LostError for a copy that was lost too often.
    """
    sent = Parcel((make, arguments), "A model with its data")

    def job(number: int, seconds: float | None) -> Job:
        return _copy, (sent, run, number, seconds)

    return combined(jobs_apart(job, copies, workers, max_seconds, progress, "copy"))


def _copy(sent: Parcel, run: Callable[..., Evidence], number: int, seconds: float | None) -> Evidence:
    """What a worker does. Moves hold functions, which stay where they are."""
    return dataclasses.replace(run(sent.made(), number, seconds), moves=())


def combined(found: Sequence[Evidence]) -> Evidence:
    """The mean of copies that were made apart; ladder and rejections are those of the first."""
    names = [name for name in found[0].estimates if all(name in one.estimates for one in found)]
    told = {name: _mean([one.estimates[name] for one in found]) for name in names}
    best = told[names[0]]
    return dataclasses.replace(
        found[0],
        log_evidence=best.value,
        standard_error=best.error,
        estimates=told,
        round_trips=sum(one.round_trips for one in found),
        barrier=float(np.mean([one.barrier for one in found])),
        sweeps=min(one.sweeps for one in found),
        copies=len(found),
        orders=float(np.mean([one.orders for one in found])),
    )


def _mean(found: Sequence[Estimate]) -> Estimate:
    """With the larger of the error that each copy tells and of how far they differ."""
    values = np.array([one.value for one in found])
    told = math.sqrt(sum(one.error**2 for one in found)) / len(found)
    differ = float(values.std(ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else 0.0
    return Estimate(float(values.mean()), max(told, differ))
