"""A move: how some variables are drawn anew given all others, as two pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
from jaxtyping import Bool, PyTree

from ...factors.arrays import Array, Key
from .joint import Data, Values

State: TypeAlias = PyTree[Array]  # what a move learns while chains warm up


class Stage(NamedTuple):
    """Where a transition is in the windows of warming up."""

    warming: Bool[Array, ""]  # whether moves may still learn
    slow: Bool[Array, ""]  # in a window that learns the spread
    closes: Bool[Array, ""]  # the last one of such a window
    ends: Bool[Array, ""]  # the last one that learns


class Move(NamedTuple):
    """One of the steps of a sweep.

    Attributes:
        names: the variables that it draws.
        how: in a few words.
        exact: whether the draw is from the conditional itself, whatever the state was.
        init: `init(values, data) -> state`.
        searches: whether it finds its way out of where the density is zero.
        step: `step(key, values, state, data, stage) -> (values, state)`.
        records: names of numbers that it leaves among the values, which are kept beside the draws.
        proposes: of what kind its proposals are, where `records` begins with whether one was taken.
    """

    names: tuple[str, ...]
    how: str
    exact: bool
    init: Callable[[Values, Data], State]
    step: Callable[[Key, Values, State, Data, Stage], tuple[Values, State]]
    searches: bool = False
    records: tuple[str, ...] = ()
    proposes: str = ""


def swept(
    key: Key, moves: Sequence[Move], values: Values, learned: Sequence[State], data: Data, stage: Stage
) -> tuple[Values, tuple[State, ...]]:
    """One sweep: the values after all moves in their order, and what each has learned then."""
    found = []
    for i, (move, state) in enumerate(zip(moves, learned, strict=True)):
        values, state = move.step(jax.random.fold_in(key, i), values, state, data, stage)
        found.append(state)
    return values, tuple(found)


def stateless(
    names: tuple[str, ...], how: str, draw: Callable[[Key, Values, Data], Values], exact: bool = True
) -> Move:
    """A move that has nothing to learn."""

    def step(key: Key, values: Values, state: Any, data: Data, stage: Stage) -> tuple[Values, Any]:
        return {**values, **draw(key, values, data)}, state

    return Move(names, how, exact, lambda values, data: (), step)
