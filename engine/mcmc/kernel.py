"""A Markov chain as two pure functions of a random key and a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import PyTree

from ...factors.arrays import Array, Key

Keys: TypeAlias = jax.Array  # one key for each chain
State: TypeAlias = PyTree[Array]  # of one chain, in the form of its kernel
Batch: TypeAlias = PyTree[Array]  # the states of all chains at once, in a form of the kernel's own
Record: TypeAlias = dict[str, Any]  # what is kept of a state, by name: arrays, or what becomes one
Totals: TypeAlias = dict[str, np.ndarray]


class Together(NamedTuple):
    """How all chains make a transition in one call.

    Attributes:
        join: `join(states) -> batch`, of a list of states.
        step: `step(keys, batch) -> batch`; keys is an array of keys, one for each chain.
        split: `split(batch) -> states`.
    """

    join: Callable[[list[State]], Batch]
    step: Callable[[Keys, Batch], Batch]
    split: Callable[[Batch], list[State]]


class Kernel(NamedTuple):
    """A Markov chain.

    Attributes:
        init: `init(key) -> state`, a state to start from. States are pytrees of arrays.
        step: `step(key, state) -> state`, one transition; everything random comes from the key.
        record: `record(state) -> {name: array}`, what is kept of a state.
        reduce: None, or `reduce(totals, recorded) -> (totals, kept)`: what of a record goes into running totals,
            {name: array} or None before the first draw, and what is kept as it is.
        together: None, or how all chains step at once.
        grows: whether the shapes of states and records change. Records are then padded with zeros at the ends of axes.
        note: None, or `note(states) -> str`, a word for the progress bar.
        identity: of the data and the model, in any words: a checkpoint of another one is refused.
        blank: None, or a state of the same form as `init` gives one, where that takes long: a checkpoint is read by it.
    """

    init: Callable[[Key], State]
    step: Callable[[Key, State], State]
    record: Callable[[State], Record]
    reduce: Callable[[Totals | None, Record], tuple[Totals, Record]] | None = None
    together: Together | None = None
    grows: bool = False
    note: Callable[[list[State]], str] | None = None
    identity: str = ""
    blank: Callable[[Key], State] | None = None
