"""Chains by workers: each chain is a job of its own, in whichever process does it."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ...factors.arrays import Key
from ...factors.switches import double_precision
from ..cluster.parcels import Parcel
from ..cluster.workers import Job, Workers, gathered, pool_of
from ..files.archive import check_folder
from .bar import progress_bar
from .kernel import Kernel
from .keys import words_of
from .run import Chains, check_plan, run, stacked


def run_apart(
    make: Callable[..., Callable[[float | None], Kernel]],
    arguments: tuple[Any, ...],
    key: Key,
    draws: int,
    *,
    workers: Workers,
    **asked: Any,
) -> Chains:
    """The chains of `each_apart`, which is asked for the same, as long as the shortest that time has ended."""
    return joined(each_apart(make, arguments, key, draws, workers=workers, **asked))


def each_apart(
    make: Callable[..., Callable[[float | None], Kernel]],
    arguments: tuple[Any, ...],
    key: Key,
    draws: int,
    *,
    workers: Workers,
    chains: int = 4,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
    **asked: Any,
) -> list[Chains]:
    """`run` of the kernel that `make(*arguments)(seconds)` gives, by workers: a job for each chain.

    `make` prepares for any number of chains, once in each worker; what it returns gives the kernel of one chain, which
    has so many seconds, or any.

    The draws are the same however many workers there are and whichever are lost: a chain whose worker is lost goes on
    from its checkpoint where another worker sees that file, else it begins again. Chains that step one by one have
    those of `run`; where `run` steps all at once they differ as rounding does.

    `checkpoint` is the beginning of the names of one file for each chain. Where there are fewer workers than chains,
    `max_seconds` is divided among those that wait for each other, and a worker that starts takes seconds beside it.
    Raises ModelError for what cannot go to other processes, LostError for a chain that was lost too often.
    """
    check_plan(draws, chains, max_seconds=max_seconds, **asked)
    check_folder(checkpoint)
    words, form = words_of(key), str(jax.random.key_impl(key))
    sent = Parcel((make, arguments), "A model with its data")
    with tempfile.TemporaryDirectory(prefix="cavity-") as place:
        stem = os.path.join(place, "chain") if checkpoint is None else os.path.abspath(checkpoint)

        def job(chain: int, seconds: float | None) -> Job:
            own = {**asked, "max_seconds": seconds, "checkpoint": f"{stem}-{chain}"}
            return _chain, (sent, words, form, draws, own, chain)

        return jobs_apart(job, chains, workers, max_seconds, progress, "chain")


def jobs_apart(
    job: Callable[[int, float | None], Job],
    number: int,
    workers: Workers,
    max_seconds: float | None,
    progress: bool | Callable[[int, int], None] | None,
    unit: str,
) -> list[Any]:
    """What `job(k, seconds)` of each k below `number` returns; those that wait for each other share the seconds."""
    with progress_bar(progress, unit) as show:
        pool = pool_of(workers, number)
        share = None if max_seconds is None else max_seconds / math.ceil(number / pool.workers)
        return gathered([job(k, share) for k in range(number)], pool, show=show)


def _chain(sent: Parcel, words: np.ndarray, form: str, draws: int, asked: dict[str, Any], chain: int) -> Chains:
    """What a worker does."""
    begin, seconds = time.monotonic(), asked["max_seconds"]
    with double_precision():
        key = jax.random.wrap_key_data(jax.numpy.asarray(words), impl=form)
        os.makedirs(os.path.dirname(asked["checkpoint"]), exist_ok=True)  # another machine has none yet
        kernel_in = sent.made()
        left = None if seconds is None else max(1e-3, seconds - (time.monotonic() - begin))
        return run(kernel_in(left), key, draws, chains=1, first=chain, progress=False, **asked)


def joined(found: list[Chains]) -> Chains:
    """All chains in one, as long as the shortest that time has ended."""
    least = min(one.seconds.shape[1] for one in found)
    draws = {name: stacked([one[name][0, :least] for one in found], pad=True) for name in found[0].draws}
    states = tuple(state for one in found for state in one.states)
    seconds = np.concatenate([one.seconds[:, :least] for one in found])
    return Chains(draws, states, seconds, tuple(total for one in found for total in one.totals))
