"""Markov chains: a driver for any kernel, with several chains, thinning, checkpoints and ArviZ.

Draw i of chain c uses the key folded with c and then i and nothing else, so that a chain that stopped goes on to the
same draws, and a longer run starts with those of a shorter one.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Float

from ...factors.arrays import Key
from ...factors.errors import DataError, ModelError
from ..answers.arviz import as_arviz
from ..files.archive import DAMAGED, check_folder, opened, write_archive
from ..support.asked_arguments import MOST, check_seconds
from ..support.forked import check_not_forked
from .bar import Show, progress_bar
from .checkpoint import Plan, Progress, Unfit, kept_after, restored
from .kernel import Kernel, Keys, State, Totals
from .keys import words_of

FORMAT, VERSION = "cavity chains", 1

KeyOf: TypeAlias = Callable[[int | EllipsisType], Key]  # of a chain, or `...` for those of all
# Of several processes that run one chain in step: makes of whether it is time to write, and to end, what all do. The
# file before the last then stays, as one may be lost before it has written; an interruption writes nothing.
Agree: TypeAlias = Callable[[bool, bool], tuple[bool, bool]]


@dataclasses.dataclass(frozen=True)
class Chains:
    """The draws of several chains.

    Attributes:
        draws: {name: (chains, draws, ...)}.
        states: the last state of each chain.
        seconds: (chains, draws) CPU seconds that each chain had used by each draw, without the other chains; chains
            that step together have equal shares.
        totals: {name: array} of each chain, where the kernel has any.
    """

    draws: dict[str, np.ndarray]
    states: tuple[State, ...]
    seconds: Float[np.ndarray, "chains draws"]
    totals: tuple[Totals, ...] = ()

    def __getitem__(self, name: str) -> np.ndarray:
        return self.draws[name]

    def to_arviz(self) -> Any:
        """An ArviZ DataTree or, before ArviZ 1, InferenceData: R-hat, effective sizes and plots are ArviZ's.

        Raises:
            UnsupportedError: ArviZ is not installed.
        """
        return as_arviz({"posterior": self.draws}, {}, "Markov chain Monte Carlo")


def run(
    kernel: Kernel,
    key: Key,
    draws: int,
    *,
    chains: int = 4,
    warmup: int = 0,
    thin: int = 1,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
    max_seconds: float | None = None,
    first: int = 0,
    agree: Agree | None = None,
) -> Chains:
    """Run chains, a draw of each at a time.

    Args:
        kernel: what to run.
        key: a key of `jax.random`; the same key gives the same draws.
        draws: how many to keep of each chain.
        chains: how many, from independent starts.
        warmup: transitions before the first kept one.
        thin: transitions per kept draw.
        progress: True shows a bar (of tqdm or rich where installed), False none, None one on a terminal; or a function
            that is called with the number of sweeps done and their total.
        checkpoint: a file that is written now and then, and that a run with the same key, chains, warmup and thin
            goes on from; `draws` may be larger than when it was written. It holds arrays, nothing that runs. It is
            also written when the run is interrupted, as by Ctrl-C.
        every: seconds between two checkpoints.
        max_seconds: of wall clock, after which no further transition begins; at least one is made.
        first: the number of the first chain, where others are run elsewhere.
        agree: of processes that run a chain in step, has them write and end together; see `Agree`.

    Returns:
        The draws of all chains: the first ones of those asked for, where time was over before.

    Raises:
        ModelError: a count out of range, or a key that is none.
        DataError: a checkpoint of another run.
    """
    check_plan(draws, chains, warmup, thin, every, max_seconds)
    check_folder(checkpoint)
    check_not_forked("A chain")
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    plan: Plan = {
        "key": words_of(key).tolist(),
        "chains": int(chains),
        "warmup": int(warmup),
        "thin": int(thin),
        "identity": kernel.identity,
        "first": int(first),
    }
    # Keys 0 are for the starts; transition i has key i + 1.
    keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(np.arange(first, first + chains))
    total = warmup + thin * draws
    now = _begun(kernel, keys, plan, checkpoint, total)
    with progress_bar(progress, "sweep") as show:
        now = _walked(kernel, keys, plan, now, total, end, checkpoint, every, show, not callable(progress), agree)
    return _chains(now, draws, kernel.grows)


def check_plan(
    draws: Any, chains: Any, warmup: Any = 0, thin: Any = 1, every: Any = 60.0, max_seconds: Any = None
) -> None:
    """ModelError for what is no number of the right size."""
    check_seconds("run", max_seconds)
    for name, value, least in (("draws", draws, 1), ("chains", chains, 1), ("warmup", warmup, 0), ("thin", thin, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= MOST:
            raise ModelError(f"{name}= is a whole number of at least {least}, and at most {MOST:,}; found {value!r}.")
    if isinstance(every, bool) or not isinstance(every, (int, float, np.number)) or not every >= 0.0:
        raise ModelError(f"every= is a number of seconds, 0 or more; found {every!r}.")


def _begun(kernel: Kernel, keys: Keys, plan: Plan, checkpoint: str | os.PathLike[str] | None, total: int) -> Progress:
    """Where a run of so many transitions begins: at new starts, or where its checkpoint ends."""
    goes_on = checkpoint is not None and os.path.exists(checkpoint)
    begin = kernel.blank if goes_on and kernel.blank is not None else kernel.init
    starts = [begin(jax.random.fold_in(keys[chain], 0)) for chain in range(plan["chains"])]
    now = Progress(0, starts, [[] for _ in starts], [{} for _ in starts], [])
    if checkpoint is not None and goes_on:
        now = _read(checkpoint, plan, starts, kernel)
    if kernel.reduce is not None and now.done > total:
        raise DataError(
            f"The checkpoint '{os.fspath(checkpoint or '')}' has gone {now.done} transitions, and {total} are asked "
            "for: totals over draws cannot be taken back. Ask for as many draws or more, or name another file."
        )
    return now


def _walked(
    kernel: Kernel,
    keys: Keys,
    plan: Plan,
    now: Progress,
    total: int,
    end: float,
    checkpoint: str | os.PathLike[str] | None,
    every: float,
    show: Show,
    noted: bool,
    agree: Agree | None,
) -> Progress:
    """The run after `total` transitions, or when time ends, with a checkpoint every so many seconds and then."""
    saved = time.monotonic()
    used = now.seconds[-1].copy() if now.seconds else np.zeros(plan["chains"])
    walk = _walk(kernel, now.states, used)
    try:
        for i, key_of in zip(range(now.done, total), _folded(keys, now.done), strict=False):
            walk.step(key_of)
            clock = time.monotonic()
            due, over = clock - saved > every, clock >= end
            if agree is not None:
                due, over = agree(due, over)
            last = i + 1 == total or over
            kept = i >= plan["warmup"] and (i - plan["warmup"] + 1) % plan["thin"] == 0
            write = checkpoint is not None and (due or last)
            if kept or write:
                now = _at(kernel, now, i + 1, walk.states(), used if kept else None)
            if kernel.note is None or not noted:
                show(i + 1, total)
            else:
                show(i + 1, total, kernel.note(walk.states()))
            if checkpoint is not None and write:
                if agree is not None and os.path.exists(checkpoint):
                    os.replace(checkpoint, before(checkpoint))
                _write(checkpoint, plan, now)
                saved = clock
            if last:
                break
    except BaseException:  # Ctrl-C among them
        if checkpoint is not None and now.done and agree is None:
            _write(checkpoint, plan, now)
        raise
    return now


def _chains(now: Progress, draws: int, grows: bool) -> Chains:
    """The first `draws` draws of each chain, or all where these are fewer, stacked."""
    chains, draws = len(now.kept), min(draws, len(now.seconds))
    names = now.kept[0][0] if draws else ()
    found = {name: stacked([d[name] for chain in now.kept for d in chain[:draws]], grows) for name in names}
    shaped = {name: array.reshape(chains, draws, *array.shape[1:]) for name, array in found.items()}
    return Chains(shaped, tuple(now.states), np.array(now.seconds[:draws]).T, tuple(filter(None, now.totals)))


class _Walk(NamedTuple):
    """A transition of every chain, and where they are."""

    step: Callable[[KeyOf], None]
    states: Callable[[], list[State]]


def _walk(kernel: Kernel, states: list[State], used: Float[np.ndarray, " chains"]) -> _Walk:
    """All chains, one after the other or at once; adds their CPU seconds to `used`."""
    together = kernel.together
    if together is None:
        now = list(states)

        def step(key_of: KeyOf) -> None:
            for chain, own in enumerate(now):
                clock = time.process_time()
                now[chain] = jax.block_until_ready(kernel.step(key_of(chain), own))  # the clock is to see its work
                used[chain] += time.process_time() - clock

        return _Walk(step, lambda: list(now))
    batch = together.join(states)

    def step_at_once(key_of: KeyOf) -> None:
        nonlocal batch
        clock = time.process_time()
        batch = jax.block_until_ready(together.step(key_of(...), batch))
        used[:] += (time.process_time() - clock) / len(used)

    return _Walk(step_at_once, lambda: together.split(batch))


def _at(kernel: Kernel, now: Progress, done: int, states: list[State], used: np.ndarray | None) -> Progress:
    """The run after `done` transitions; `used` are the CPU seconds of each chain where the states are recorded.

    What is recorded counts once `done` says so: an interruption in between leaves the run as it was.
    """
    totals = list(now.totals)
    if used is not None:
        now.seconds.append(used.copy())
        for chain, state in enumerate(states):
            recorded = kernel.record(state)
            if kernel.reduce is not None:
                totals[chain], recorded = kernel.reduce(totals[chain] or None, recorded)
            now.kept[chain].append({name: np.asarray(value) for name, value in recorded.items()})
    return now._replace(done=done, states=states, totals=totals)


def stacked(arrays: list[np.ndarray], pad: bool) -> np.ndarray:
    """The arrays in one; where shapes may differ, shorter ones padded with zeros."""
    if not pad or len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    shape = np.max([array.shape for array in arrays], axis=0)
    found = np.zeros((len(arrays), *shape), np.result_type(*arrays))
    for place, array in zip(found, arrays, strict=True):
        place[tuple(slice(length) for length in array.shape)] = array
    return found


def _folded(keys: Keys, start: int) -> Iterator[KeyOf]:
    """For each transition from `start` on, `key_of(chains)`: keys of one chain by its number, or of all by `...`."""
    form = jax.random.key_impl(keys)
    fold = jax.vmap(lambda number: jax.vmap(lambda key: jax.random.fold_in(key, number))(keys))
    while True:
        for data in np.asarray(jax.random.key_data(fold(np.arange(start + 1, start + 257)))):
            yield lambda chains, data=data: jax.random.wrap_key_data(data[chains], impl=form)
        start += 256


# checkpoints ----------------------------------------------------------------------------------------------------------


def before(path: str | os.PathLike[str]) -> str:
    """The file that was written before the last, of a chain that several processes run in step."""
    return f"{os.fspath(path)}.before"


def _write(path: str | os.PathLike[str], plan: Plan, now: Progress) -> None:
    """The file is replaced as a whole or not at all."""
    arrays, count = {}, kept_after(plan, now.done)
    for chain, (state, kept, totals) in enumerate(zip(now.states, now.kept, now.totals, strict=True)):
        arrays |= {f"state/{chain}/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
        arrays |= {f"total/{chain}/{name}": np.asarray(value) for name, value in totals.items()}
        if count:
            arrays |= {f"draws/{chain}/{name}": stacked([d[name] for d in kept[:count]], True) for name in kept[0]}
    if count:
        arrays["seconds"] = np.array(now.seconds[:count])
    meta = {"format": FORMAT, "version": VERSION, "plan": plan, "done": now.done, "arrays": list(arrays)}
    write_archive(path, json.dumps(meta), arrays.values())


def _read(path: str | os.PathLike[str], plan: Plan, states: list[State], kernel: Kernel) -> Progress:
    where = f"The checkpoint '{os.fspath(path)}'"
    try:
        with opened(path) as archive:
            meta = archive.meta
            if not isinstance(meta, dict) or meta.get("format") != FORMAT or meta.get("version") != VERSION:
                raise DataError(f"{where} is no file of chains that this cavity reads. Give the path of another file.")
            archive.verify()
            found = {str(name): archive.array(number) for number, name in enumerate(meta["arrays"])}
            theirs, done = {"identity": "", "first": 0, **meta["plan"]}, meta["done"]
    except DataError:
        raise
    except DAMAGED as problem:
        raise DataError(
            f"{where} is damaged or is none ({type(problem).__name__}: {problem}). Remove it to start again."
        ) from None
    if theirs != plan:
        words = {"identity": "data or model", "first": "number of its chain"}
        other = [words.get(name, name) for name in plan if plan[name] != theirs.get(name)]
        raise DataError(
            f"{where} is of a run with another {' and '.join(other)}: going on from it would not give the draws asked "
            "for. Remove the file, name another one, or ask for what it was made with."
        )
    try:
        return restored(found, done, plan, states, kernel)
    except Unfit as problem:
        raise DataError(f"{where} {problem} Remove the file to start again, or name another one.") from None
