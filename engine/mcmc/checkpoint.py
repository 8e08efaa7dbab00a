"""What a checkpoint of chains holds, compared with what a run of its plan would hold at that transition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

import jax
import numpy as np
from jaxtyping import Float

from .kernel import Kernel, State, Totals


class Plan(TypedDict):
    """What a run that goes on from a checkpoint must have in common with the one that wrote it."""

    key: list[int]
    chains: int
    warmup: int
    thin: int
    identity: str  # of the data and the model
    first: int  # number of a chain


class Progress(NamedTuple):
    """How far a run is: transitions done; states, kept draws and totals of each chain; CPU seconds at each draw."""

    done: int
    states: list[State]
    kept: list[list[dict[str, np.ndarray]]]
    totals: list[Totals]
    seconds: list[Float[np.ndarray, " chains"]]


class Unfit(Exception):
    """The checkpoint does not fit; the message goes on from its name."""


def kept_after(plan: Plan, done: int) -> int:
    """How many draws of each chain are kept after `done` transitions."""
    return max(0, done - plan["warmup"]) // plan["thin"]


def restored(found: Mapping[str, np.ndarray], done: Any, plan: Plan, starts: list[State], kernel: Kernel) -> Progress:
    """The run of `plan` after `done` transitions from the arrays of a checkpoint.

    `starts` are states to start from: what is restored has the form of these, and of what is recorded of them. Raises
    Unfit for states of another form or NaN, and for numbers of draws, totals and times that `done` transitions do not
    give.
    """
    if isinstance(done, bool) or not isinstance(done, int) or done < 0:
        raise Unfit(f"says that {done!r} transitions were made.")
    count = kept_after(plan, done)
    expected, states, kept, totals = {"seconds"} if count else set(), [], [], []
    for chain, start in enumerate(starts):
        leaves, form = jax.tree.flatten(start)
        wanted = {f"state/{chain}/{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        for name, leaf in wanted.items():
            _check(found, name, leaf, (), kernel.grows)
        states.append(jax.tree.unflatten(form, [found[name] for name in wanted]))
        expected |= wanted.keys()
        recorded, sums = _recorded(start, kernel) if count else ({}, {})
        for name, entry in recorded.items():
            _check(found, f"draws/{chain}/{name}", entry, (count,), kernel.grows)
        for name, entry in sums.items():
            _check(found, f"total/{chain}/{name}", entry, (), kernel.grows)
        kept.append([{name: found[f"draws/{chain}/{name}"][i] for name in recorded} for i in range(count)])
        totals.append({name: found[f"total/{chain}/{name}"] for name in sums})
        expected |= {f"draws/{chain}/{name}" for name in recorded} | {f"total/{chain}/{name}" for name in sums}
    if count:
        _check(found, "seconds", np.zeros(len(starts)), (count,), False)
        if (np.diff(found["seconds"], axis=0, prepend=0.0) < 0.0).any():
            raise Unfit("has times that go backwards.")
    if extra := sorted(found.keys() - expected):
        raise Unfit(f"holds '{extra[0]}', which a run after {done} transitions does not: it holds states of another "
                    "form than this kernel's, or was changed.")  # fmt: skip
    return Progress(done, states, kept, totals, list(found["seconds"]) if count else [])


def _recorded(start: State, kernel: Kernel) -> tuple[dict[str, np.ndarray], Totals]:
    """What is kept of one state, and the totals after it."""
    kept, totals = kernel.record(start), {}
    if kernel.reduce is not None:
        totals, kept = kernel.reduce(None, kept)
    return ({n: np.asarray(v) for n, v in kept.items()}, {n: np.asarray(v) for n, v in totals.items()})


def _check(found: Mapping[str, np.ndarray], name: str, like: np.ndarray, more: tuple[int, ...], grows: bool) -> None:
    """One array of the file: as `like` behind further axes, of other lengths where the kernel's states grow."""
    array = found.get(name)
    shape = (*more, *like.shape)
    if array is None or array.dtype != like.dtype or array.ndim != len(shape):
        fits = False
    else:
        fits = array.shape == shape or (grows and array.shape[: len(more)] == more)
    if array is None or not fits:
        there = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
        raise Unfit(
            f"has {there} as '{name}', where {like.dtype} of shape {shape} belongs: it holds states of another form "
            "than this kernel's, or another number of draws than the transitions it was written after."
        )
    if array.dtype.kind == "f" and np.isnan(array).any() and not np.isnan(like).any():
        raise Unfit(f"has NaN in '{name}'.")
