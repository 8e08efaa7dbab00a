"""Parallel tempering: replicas at all inverse temperatures, in several copies of the ladder, as one program.

After each sweep neighbours may exchange their states. Even and odd pairs take turns: a replica that was exchanged goes
on in its direction, so that it crosses a ladder of any length in a number of sweeps of its order, where exchanges of
one pair chosen at random make a slow walk of it. Source: geyer1991mcmc, okabe2001replica, syed2022nonreversible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PyTree

from ...factors.arrays import Array, Key
from ...factors.errors import UnsupportedError
from ..sampling.choose import starter
from ..sampling.joint import Data, Values
from ..sampling.move import Move, Stage, swept
from .path import INVERSE, Path

BLOCK = 16  # sweeps between two looks at the clock
LEAST = 2  # blocks of a round

Ladder = Float[np.ndarray, " rung"]  # inverse temperatures, from zero to one
Flag = Bool[np.ndarray, ""] | bool


class Replicas(NamedTuple):
    """The states of all replicas, (copies, rungs, ...): values, what moves have learned, and which replica it is."""

    values: Values
    learned: tuple[PyTree, ...]
    label: Int[Array, "copies rungs"]


class Trace(NamedTuple):
    """What is kept of each sweep: the log ratio of posterior and reference by rung, and which replica was there.

    `named` is what each component adds to the log density of the reference under each name, where that was asked for.
    """

    log_ratio: Float[np.ndarray, "sweep copy rung"]
    label: Int[np.ndarray, "sweep copy rung"]
    named: Float[np.ndarray, "sweep copy rung component name"] | None


class Program(NamedTuple):
    """A path made ready: `block` makes so many sweeps with exchanges, `anneal` one sweep at given temperatures."""

    path: Path
    moves: tuple[Move, ...]
    exact: bool  # whether the reference has independent draws
    block: Callable[..., tuple[Replicas, tuple[Array, Array, tuple]]]
    sweep: Callable[..., tuple[Values, tuple[PyTree, ...]]]


def program(
    path: Path, moves: tuple[Move, ...], one_pair: bool, named: Callable[[Values], Array] | None = None
) -> Program:
    """What is compiled once for each number of copies and rungs; `named` is told of every state, see `orders`."""
    exact = _has_draws(path)

    def at(inverse: Array, data: Data) -> Data:
        return {**data, INVERSE: inverse}

    def one(key: Key, values: Values, learned: tuple, inverse: Array, data: Data, stage: Stage) -> tuple[Values, tuple]:
        values, learned = swept(key, moves, values, learned, at(inverse, data), stage)
        return {name: values[name] for name in path.variables}, learned

    sweep = _over_all(one)

    def block(
        key: Key, now: Replicas, ladder: Array, first: Array, stages: Stage, data: Data
    ) -> tuple[Replicas, tuple[Array, Array, tuple]]:
        shape = now.label.shape

        def again(now: Replicas, each: tuple[Array, Stage]) -> tuple[Replicas, tuple[Array, Array, tuple]]:
            number, stage = each
            own = jax.random.split(jax.random.fold_in(key, number), 3)
            values, learned = sweep(
                jax.random.split(own[0], shape), now.values, now.learned, jnp.broadcast_to(ladder, shape), data, stage
            )
            if exact:
                fresh = jax.vmap(lambda k: path.drawn(k, data))(jax.random.split(own[1], shape[0]))
                values = {name: values[name].at[:, 0].set(fresh[name]) for name in values}
            ratio = jax.vmap(jax.vmap(lambda x: path.log_ratio(x, data)))(values)
            told = () if named is None else (jax.vmap(jax.vmap(named))(values),)
            order = _exchanged(own[2], ratio, ladder, number, one_pair)
            values = jax.tree.map(lambda x: jax.vmap(lambda a, i: a[i])(x, order), values)
            label = jnp.take_along_axis(now.label, order, axis=1)
            return Replicas(values, learned, label), (ratio, label, told)

        return jax.lax.scan(again, now, (first + jnp.arange(BLOCK), stages))

    return Program(path, moves, exact, jax.jit(block), jax.jit(sweep))


def _over_all(one: Callable) -> Callable:
    """Over copies and rungs; data and stage are those of all."""
    axes = (0, 0, 0, 0, None, None)
    return jax.vmap(jax.vmap(one, in_axes=axes), in_axes=axes)


def _has_draws(path: Path) -> bool:
    """Whether every variable has independent draws from the reference."""
    try:
        jax.eval_shape(path.drawn, jax.random.key(0), path.arrays)
    except UnsupportedError:
        return False
    return True


def _exchanged(key: Key, ratio: Array, ladder: Array, number: Array, one_pair: bool) -> Array:
    """From which rung each rung gets its state, by copy."""
    copies, rungs = ratio.shape
    pair, own = jnp.arange(rungs - 1), jax.random.split(key)
    if one_pair:
        active = pair == jax.random.randint(own[1], (copies, 1), 0, rungs - 1)
    else:
        active = jnp.broadcast_to(pair % 2 == number % 2, (copies, rungs - 1))
    log_accept = (ladder[1:] - ladder[:-1]) * (ratio[:, :-1] - ratio[:, 1:])
    swap = active & (-jax.random.exponential(own[0], log_accept.shape) < jnp.nan_to_num(log_accept, nan=-jnp.inf))
    up = jnp.pad(swap, ((0, 0), (0, 1)))
    down = jnp.pad(swap, ((0, 0), (1, 0)))
    return jnp.arange(rungs) + up - down


def begun(prepared: Program, key: Key, copies: int, rungs: int) -> Replicas:
    """Replicas at draws from the reference, or at starts of positive density where it has none."""
    path = prepared.path
    find = starter(path, prepared.moves)
    if prepared.exact:
        drawn = jax.jit(lambda keys: jax.vmap(lambda k: path.drawn(k, path.arrays))(keys))
        flat = drawn(jax.random.split(key, copies * rungs))
        ratio = jax.jit(jax.vmap(lambda x: path.log_ratio(x, path.arrays)))(flat)
        if not np.all(np.isfinite(np.asarray(ratio))):
            flat = _several(find, key, copies, rungs)
    else:
        flat = _several(find, key, copies, rungs)
    values = {name: flat[name].reshape((copies, rungs, *flat[name].shape[1:])) for name in path.variables}
    learned = tuple(jax.vmap(jax.vmap(lambda x, m=move: m.init(x, path.arrays)))(values) for move in prepared.moves)
    return Replicas(values, learned, jnp.broadcast_to(jnp.arange(rungs), (copies, rungs)))


def _several(find: Callable[[Key], Values], key: Key, copies: int, rungs: int) -> dict[str, Any]:
    """A start for each copy, the same on all of its rungs."""
    starts = [find(jax.random.fold_in(key, copy)) for copy in range(copies)]
    stacked = jax.tree.map(lambda *each: jnp.stack([jnp.asarray(x) for x in each]), *starts)
    return jax.tree.map(lambda x: jnp.repeat(x, rungs, axis=0), stacked)


def resized(now: Replicas, rungs: int) -> Replicas:
    """The replicas on a ladder of another number of rungs: each begins where the nearest one is.

    None begins where that of the reference is: it may be at a draw that is impossible above, which no move leaves.
    """
    nearest = np.rint(np.linspace(0, now.label.shape[1] - 1, rungs)).astype(int)
    nearest[1:] = np.maximum(nearest[1:], 1)
    values, learned = jax.tree.map(lambda x: x[:, nearest], (now.values, now.learned))
    return Replicas(values, learned, jnp.broadcast_to(jnp.arange(rungs), (now.label.shape[0], rungs)))


def run(
    prepared: Program,
    key: Key,
    now: Replicas,
    ladder: Ladder,
    sweeps: int,
    first: int,
    learning: tuple[bool, bool],
    show: Callable[[int], None],
    end: float = math.inf,
) -> tuple[Replicas, Trace]:
    """A round of sweeps on a ladder, the first of which has the number `first`.

    `learning` tells whether moves learn, and whether this is the last round in which they do. After `end`, on the clock
    of `time.monotonic`, no further block of sweeps begins; LEAST of them are made in any case.
    """
    ratios, labels, names = [], [], []
    blocks = -(-sweeps // BLOCK)
    for number in range(blocks):
        last = np.arange(BLOCK) == BLOCK - 1 if number == blocks - 1 else np.zeros(BLOCK, bool)
        warming = np.full(BLOCK, learning[0])
        stages = Stage(*map(jnp.asarray, (warming, warming, last & warming, last & learning[1])))
        start = jnp.asarray(first + number * BLOCK)
        now, (ratio, label, told) = prepared.block(key, now, jnp.asarray(ladder), start, stages, prepared.path.arrays)
        ratios.append(np.asarray(ratio))
        labels.append(np.asarray(label))
        names += [np.asarray(each) for each in told]
        show(BLOCK)
        if number + 1 >= LEAST and time.monotonic() >= end:
            break
    named = np.concatenate(names) if names else None
    return now, Trace(np.concatenate(ratios), np.concatenate(labels), named)


def round_trips(label: Int[np.ndarray, "sweep copy rung"]) -> int:
    """How often a replica went from the reference to the posterior and came back, in all copies together."""
    total = 0
    for copy in range(label.shape[1]):
        for replica in range(label.shape[2]):
            ends = np.where(label[:, copy, 0] == replica, 0, np.where(label[:, copy, -1] == replica, 1, -1))
            visits = ends[ends >= 0]
            total += int(np.count_nonzero(np.diff(visits))) // 2
    return total
