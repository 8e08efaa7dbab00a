"""`cv.search`: the best structure that moves find, by the log evidence of all that is integrated and its prior.

Simulated annealing from several starts at once: worse structures are taken ever more rarely as time runs out. Source:
kirkpatrick1983optimization.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...compiler.language.model import Model
from ...factors.arrays import Array, Key
from ...factors.errors import ModelError
from ..mcmc.bar import progress_bar
from ..mcmc.structure import Asked
from ..sampling.choose import NOT_WARMING, starter
from ..sampling.joint import Joint, Values
from ..sampling.move import Move, swept
from ..sampling.restructure import moved
from ..sampling.sample import joint_of, plan_around
from ..support.asked_arguments import check_counts

BLOCK = 10  # sweeps between two looks at the clock, at most
LOOK = 0.01  # of the time that a block takes at most
LAST = 2**31  # of a key, for what is drawn in the end
HOT, COLD = 2.0, 0.05  # temperatures at the beginning and the end


@dataclasses.dataclass(frozen=True, repr=False)
class Found(Mapping[str, np.ndarray]):
    """What `cv.search` found; `found["active"]` is an array of the best structure.

    Attributes:
        structure: its arrays by name: give them to `cv.infer` or `cv.sample` among the data.
        score: log of the joint density of data, structure and all variables that were not collapsed, its prior among
            it: the log evidence and log prior where all were. Up to the constant of the prior of the move.
        others: draws of all other variables given the best structure.
        trace: the score of each start after each block of sweeps, (blocks, starts).
        sweeps: that each start made.
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


class _Clock(NamedTuple):
    """When a search began, the seconds that it may take, and after how many sweeps it ends before."""

    begin: float
    seconds: float
    sweeps: int | None

    def share(self, done: int) -> float:
        """How much of the search is done."""
        spent = (time.monotonic() - self.begin) / self.seconds
        if self.sweeps is None or spent >= 1.0:
            return min(1.0, spent)
        return min(1.0, done / self.sweeps)


class _Start(NamedTuple):
    """The state of one start: where it is, what its moves learned, and the best so far with its score."""

    values: Values
    learned: tuple
    here: Array
    best: Values
    score: Array


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
) -> Found:
    """The structure of highest score that the moves of `cv.sample` find in so many seconds.

    Args:
        model: the model; `data`, `sizes`, `moves` and `collapse` as of `sample`: what is collapsed is integrated out of
            the score, the others are drawn beside the structure.
        max_seconds: of wall clock. The program is compiled first, whose time counts, and at least one block of sweeps
            is made.
        seed: decides all random choices; with `sweeps` the result too, whatever the machine.
        starts: how many, side by side.
        sweeps: of each start, if these end it before the time does.
        progress: True shows a bar, False none, None one on a terminal; a function is called with per cent done and 100.

    Returns:
        `Found`: the arrays of the best structure, its score, the other variables, and the trace.

    Raises:
        DataError: data that do not fit.
        ModelError: arguments out of range, or no moves.
        UnsupportedError: a model without a joint density, or a part of it that no move reaches.
    """
    begin = time.monotonic()
    check_counts("search", starts=starts, sweeps=1 if sweeps is None else sweeps)
    if isinstance(max_seconds, bool) or not isinstance(max_seconds, (int, float)) or not max_seconds > 0.0:
        raise ModelError(f"search(max_seconds={max_seconds!r}): give a positive number of seconds.")
    if not moves:
        raise ModelError("search(moves={}): there is no structure to search. Give moves, as {'z': cv.moves.splits()}.")
    joint = joint_of(model, data, sizes, moves, seed)
    with jax.enable_x64(True):
        left, others = plan_around(joint, seed, collapse)
        last = [move for move in others if set(move.names) & set(collapse)]
        clock = _Clock(begin, float(max_seconds), sweeps)
        return _searched(joint, left, others, last, clock, seed, starts, progress)


def _searched(
    joint: Joint,
    left: Joint,
    others: tuple[Move, ...],
    last: Sequence[Move],
    clock: _Clock,
    seed: int,
    starts: int,
    progress: bool | Callable[[int, int], None] | None,
) -> Found:
    step = jax.jit(jax.vmap(_block(left, others), in_axes=(0, 0, None, None, None)))
    keys = jax.random.split(jax.random.key(seed), starts + 1)
    now = _begun(joint, left, others, keys[1:])
    done, count, trace, share = 0, 1, [], 0.0
    with progress_bar(progress, "per cent") as show:
        while share < 1.0:
            count = count if clock.sweeps is None else min(count, clock.sweeps - done)
            temperature = HOT * (COLD / HOT) ** share
            own = jax.random.split(jax.random.fold_in(keys[0], done), starts)
            before = time.monotonic()
            now = jax.block_until_ready(step(own, now, temperature, count, joint.arrays))
            done += count
            trace.append(np.asarray(now.here))
            quick = time.monotonic() - before < 0.5 * LOOK * clock.seconds
            count = min(2 * count, BLOCK) if quick or clock.sweeps is not None else count
            share = clock.share(done)
            show(int(100 * share), 100)
    best = int(np.argmax(now.score))
    values = jax.tree.map(lambda array: array[best], now.best)
    for i, move in enumerate(last):  # what was integrated out
        state = move.init(values, joint.arrays)
        values, _ = move.step(jax.random.fold_in(keys[0], LAST + i), values, state, joint.arrays, NOT_WARMING)
    values = jax.tree.map(np.asarray, values)
    names = [name for one in joint.structures for name in one.names]
    return Found(
        {name: values[name] for name in names},
        float(now.score[best]),
        {name: values[name] for name in joint.variables},
        np.array(trace),
        done,
        time.monotonic() - clock.begin,
    )


def _total(left: Joint, values: Values, data: Any) -> Array:
    """The log joint density of all that is not collapsed, priors of structures among it."""
    priors = sum(one.log_prior(values[one.own]) for one in left.structures)
    found = left.total(tuple(left.factors), values, data) + priors
    return jnp.where(jnp.isnan(found), -jnp.inf, found)


def _begun(joint: Joint, left: Joint, others: tuple[Move, ...], keys: Key) -> _Start:
    start_of = starter(joint, others)
    total = jax.jit(lambda values, data: _total(left, values, data))
    found = []
    for key in keys:
        values = start_of(key)
        learned = tuple(move.init(values, joint.arrays) for move in others)
        score = total(values, joint.arrays)
        found.append(_Start(values, learned, score, values, score))
    return jax.tree.map(lambda *each: jnp.stack(each), *found)


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
        return _Start(drawn, learned, here, best, jnp.maximum(here, now.score))

    def block(key: Key, now: _Start, temperature: Array, count: int, data: Any) -> _Start:
        return jax.lax.fori_loop(
            0, count, lambda i, now: sweep(jax.random.fold_in(key, i), now, temperature, data), now
        )

    return block
