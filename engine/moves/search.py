"""`cv.search`: the best structure that moves find, by the log evidence of all that is integrated and its prior.

Simulated annealing from several starts at once: worse structures are taken ever more rarely as time runs out. Source:
kirkpatrick1983optimization.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...compiler.language.model import Model
from ...factors.arrays import Array, Key
from ...factors.calls import call_checked, methods_checked
from ...factors.errors import ModelError
from ...factors.switches import double_precision
from ..cluster.workers import Workers, check_workers
from ..mcmc.apart import each_apart
from ..mcmc.bar import progress_bar
from ..mcmc.kernel import Kernel, Together
from ..mcmc.run import run
from ..mcmc.structure import Asked
from ..options import seed_of
from ..sampling.choose import NOT_WARMING, starter
from ..sampling.joint import Joint, Values
from ..sampling.move import Move, swept
from ..sampling.restructure import moved
from ..sampling.sample import identity_of, joint_of, plan_around
from ..support.asked_arguments import check_counts, check_seconds, list_of_names

BLOCK = 10  # sweeps between two looks at the clock, at most
LOOK = 0.01  # of the time that a block takes at most
MOST_BLOCKS = 10**9  # of a search that time ends
LAST = 2**31  # of a key, for what is drawn in the end
HOT, COLD = 2.0, 0.05  # temperatures at the beginning and the end


@methods_checked("found")
@dataclasses.dataclass(frozen=True, repr=False)
class Found(Mapping[str, np.ndarray]):
    """What `cv.search` found; `found["active"]` is an array of the best structure.

    Attributes:
        structure: its arrays by name: give them to `cv.infer` or `cv.sample` among the data.
        score: log of the joint density of data, structure and all variables that were not collapsed, its prior among
            it: the log evidence and log prior where all were. Up to the constant of the prior of the move.
        others: draws of all other variables given the best structure.
        trace: the score of each start after each block of sweeps, (blocks, starts); by workers NaN after its last.
        sweeps: that the best start made: as many as all others, unless each had a worker and a time of its own.
        seconds: of wall clock, compiling among it.
    """

    structure: dict[str, np.ndarray]
    score: float
    others: dict[str, np.ndarray]
    trace: Float[np.ndarray, "blocks starts"]
    sweeps: int
    seconds: float

    def __getitem__(self, name: str) -> np.ndarray:
        return self.structure[name]

    def __iter__(self):
        return iter(self.structure)

    def __len__(self) -> int:
        return len(self.structure)

    def __repr__(self) -> str:
        names = ", ".join(self.structure)
        return f"<{names} of score {self.score:.3f}, after {self.sweeps} sweeps of {self.trace.shape[1]} starts>"


class _Clock:
    """How far a search is, from the sweeps it is to make or from the time it has, and of how many the next block is."""

    def __init__(self, seconds: float, sweeps: int | None) -> None:
        self.begin, self.seconds, self.sweeps = time.monotonic(), seconds, sweeps
        self.count = 1  # of sweeps in a block of a search that time ends

    def share(self, done: int) -> float:
        """How much of the search is done."""
        spent = (time.monotonic() - self.begin) / self.seconds
        return min(1.0, spent if self.sweeps is None else done / self.sweeps)

    def block(self, done: int) -> int:
        """Sweeps of the next block."""
        return self.count if self.sweeps is None else min(BLOCK, self.sweeps - done)

    def took(self, seconds: float) -> None:
        """Looks at how long a block took: small ones are joined."""
        if seconds < 0.5 * LOOK * self.seconds:
            self.count = min(2 * self.count, BLOCK)


class _Start(NamedTuple):
    """The state of one start: where it is, what its moves learned, the best so far with its score, and sweeps done."""

    values: Values
    learned: tuple
    here: Array
    best: Values
    score: Array
    done: Array


@call_checked
def search(
    model: Model,
    data: Mapping[str, Any],
    moves: Asked,
    max_seconds: float = 10.0,
    seed: int = 0,
    *,
    starts: int = 4,
    sweeps: int | None = None,
    collapse: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    workers: Workers = None,
) -> Found:
    """The structure of highest score that the moves of `cv.sample` find in so many seconds.

    Args:
        model: the model; `data`, `sizes`, `moves` and `collapse` as of `sample`: what is collapsed is integrated out of
            the score, the others are drawn beside the structure.
        max_seconds: of wall clock, compiling among them; at least one block of sweeps is made.
        seed: decides all random choices; with `sweeps` the result too. Without, a search that goes on begins hot again.
        starts: how many, side by side.
        sweeps: of each start, if these end it before the time does.
        progress: True shows a bar, False none, None one on a terminal; a function is told per cent done and 100, or by
            workers starts done and all.
        checkpoint: a file that a search with the same arguments goes on from: with `sweeps` to the same result. It is
            written each minute, in the end, and when the search is interrupted, as by Ctrl-C.
        workers: how many processes have a start each at a time, or a pool as of `program.map`; see `run_apart`.

    Returns:
        `Found`: the arrays of the best structure, its score, the other variables, and the trace.

    Raises:
        DataError: data that do not fit, or a checkpoint of another search.
        ModelError: arguments out of range, or no moves.
        UnsupportedError: a model without a joint density, or a part of it that no move reaches.
    """
    begin = time.monotonic()
    check_counts("search", starts=starts, sweeps=1 if sweeps is None else sweeps)
    check_seconds("search", float("nan") if max_seconds is None else max_seconds)
    check_workers(workers)
    if not moves:
        raise ModelError("search(moves={}): there is no structure to search. Give moves, as {'z': cv.moves.splits()}.")
    call = _Call(model, data, sizes, moves, seed_of(seed), list_of_names(collapse, "collapse="), sweeps)
    with double_precision():
        ready = _prepared(call)
        clock = _Clock(max(1e-3, max_seconds - (time.monotonic() - begin)), sweeps)
        asked = {"progress": progress, "chains": starts, "checkpoint": checkpoint, "max_seconds": clock.seconds}
        states, trace = _searched(ready, clock, call, workers, asked)
        best = max(states, key=lambda state: float(state.score))
        values = _completed(ready, collapse, best.best, call.seed)
    return Found(
        {name: values[name] for one in ready.joint.structures for name in one.names},
        float(best.score),
        {name: values[name] for name in ready.joint.variables},
        trace,
        int(best.done),
        time.monotonic() - begin,
    )


class _Call(NamedTuple):
    """What a search is made of, here or by a worker: arguments of `search`."""

    model: Model
    data: Mapping[str, Any]
    sizes: Mapping[str, int] | None
    moves: Asked
    seed: int
    collapse: Sequence[str]
    sweeps: int | None

    @property
    def blocks(self) -> int:
        """Of sweeps, at most."""
        return MOST_BLOCKS if self.sweeps is None else -(-self.sweeps // BLOCK)


class _Ready(NamedTuple):
    """What searches, whenever its time begins: moves of all but structures, what begins a start, blocks of sweeps."""

    joint: Joint
    others: tuple[Move, ...]
    init: Callable[[Key], _Start]
    step: Callable[..., _Start]
    identity: str


def _prepared(call: _Call) -> _Ready:
    joint = joint_of(call.model, call.data, call.sizes, call.moves, call.seed)
    left, others = plan_around(joint, call.seed, call.collapse)
    step = jax.jit(jax.vmap(_block(left, others), in_axes=(0, 0, None, None, None)))
    identity = identity_of(joint, "search", call.sweeps, list(call.collapse))
    return _Ready(joint, others, _init(joint, left, others), step, identity)


def _made(call: _Call) -> Callable[[float | None], Kernel]:
    """What a worker makes kernels of, whose time begins when one is made."""
    ready = _prepared(call)

    def kernel(seconds: float | None) -> Kernel:
        assert seconds is not None  # every search has a time
        return _kernel(ready, _Clock(seconds, call.sweeps))

    return kernel


def _searched(
    ready: _Ready, clock: _Clock, call: _Call, workers: Workers, asked: dict[str, Any]
) -> tuple[list[_Start], Float[np.ndarray, "blocks starts"]]:
    """Where all starts end, and their scores: side by side in this process, or each by a worker."""
    key = jax.random.key(call.seed)
    if workers is not None:
        found = each_apart(_made, (call,), key, call.blocks, workers=workers, **asked)
        scores = [one["score"][0] for one in found]
        trace = np.full((max(map(len, scores)), len(found)), np.nan)
        for start, own in enumerate(scores):
            trace[: len(own), start] = own
        return [one.states[0] for one in found], trace
    with progress_bar(asked["progress"], "per cent") as show:
        asked = {**asked, "progress": lambda done, most: show(_per_cent(clock, done), 100)}
        chains = run(_kernel(ready, clock), key, call.blocks, **asked)
    return list(chains.states), chains.draws["score"].T


def _completed(ready: _Ready, collapse: Sequence[str], best: Values, seed: int) -> dict[str, np.ndarray]:
    """The values of the best structure, with draws of what was integrated out."""
    values, joint = jax.tree.map(jnp.asarray, best), ready.joint
    for i, move in enumerate(move for move in ready.others if set(move.names) & set(collapse)):
        key = jax.random.fold_in(jax.random.key(seed), LAST + i)
        values, _ = move.step(key, values, move.init(values, joint.arrays), joint.arrays, NOT_WARMING)
    return jax.tree.map(np.asarray, values)


def _per_cent(clock: _Clock, blocks: int) -> int:
    return int(100 * clock.share(BLOCK * blocks))


def _kernel(ready: _Ready, clock: _Clock) -> Kernel:
    """A transition is a block of sweeps of all starts at the temperature of its time; the scores are recorded."""

    def together(keys: Key, now: _Start) -> _Start:
        done, begin = int(now.done[0]), time.monotonic()
        temperature = HOT * (COLD / HOT) ** clock.share(done)
        now = jax.block_until_ready(ready.step(keys, now, temperature, clock.block(done), ready.joint.arrays))
        clock.took(time.monotonic() - begin)
        return now

    def join(states: list[_Start]) -> _Start:
        return jax.tree.map(lambda *each: jnp.stack(each), *states)

    def split(batch: _Start) -> list[_Start]:
        arrays = jax.device_get(batch)
        return [jax.tree.map(lambda a, c=c: a[c], arrays) for c in range(len(arrays.done))]

    def alone(key: Key, now: _Start) -> _Start:
        return split(together(key[None], join([now])))[0]

    return Kernel(
        ready.init,
        alone,
        lambda state: {"score": np.asarray(state.here)},
        together=Together(join, together, split),
        identity=ready.identity,
    )


def _total(left: Joint, values: Values, data: Any) -> Array:
    """The log joint density of all that is not collapsed, priors of structures among it."""
    priors = sum(one.log_prior(values[one.own]) for one in left.structures)
    found = left.total(tuple(left.factors), values, data) + priors
    return jnp.where(jnp.isnan(found), -jnp.inf, found)


def _init(joint: Joint, left: Joint, others: tuple[Move, ...]) -> Callable[[Key], _Start]:
    """Where a start begins."""
    start_of = starter(joint, others)
    total = jax.jit(lambda values, data: _total(left, values, data))

    def init(key: Key) -> _Start:
        values = start_of(key)
        learned = tuple(move.init(values, joint.arrays) for move in others)
        score = total(values, joint.arrays)
        return _Start(values, learned, score, values, score, jnp.zeros((), int))

    return init


def _block(left: Joint, others: tuple[Move, ...]) -> Callable[..., _Start]:
    """Some sweeps of a start at one temperature."""

    def sweep(key: Key, now: _Start, temperature: Array, data: Any) -> _Start:
        values = now.values
        for i, one in enumerate(left.structures):
            own = jax.random.fold_in(jax.random.fold_in(key, len(others)), i)
            values = moved(left, one, own, values, data, temperature)
        here = _total(left, values, data)
        drawn, learned = swept(key, others, values, now.learned, data, NOT_WARMING)
        better = here > now.score
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), values, now.best)
        return _Start(drawn, learned, here, best, jnp.maximum(here, now.score), now.done + 1)

    def block(key: Key, now: _Start, temperature: Array, count: int, data: Any) -> _Start:
        return jax.lax.fori_loop(
            0, count, lambda i, now: sweep(jax.random.fold_in(key, i), now, temperature, data), now
        )

    return block
