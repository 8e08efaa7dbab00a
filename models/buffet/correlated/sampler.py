"""Sweeps of correlated features as a Markov chain for the driver of chains, and starts that are states of other models.

Places for categories and for features grow by doubling: a sweep that did not fit is repeated from the same state,
padded, with the same key. They become fewer when three quarters are empty; both rules look at the state alone.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.mcmc.kernel import Kernel
from ....engine.support import machine_code
from ....factors.arrays import Key
from ....factors.errors import DataError, UnsupportedError
from ....factors.switches import double_precision
from ..likelihoods.contract import Likelihood, Rows, totals
from ..samplers.sampler import SMALLEST, bucket
from ..samplers.state import State as Features
from .framework import Framework, doubles, sweep
from .state import State, Step

REFRESHED = 5  # times that values are drawn given a partition, before a chain starts there


@functools.cache
def compiled(likelihood: Likelihood, law: Framework) -> machine_code.Kernel:
    """`sweep(key, rows, state) -> Step`; likelihoods and laws that are equal share it."""

    def one(key: Key, rows: Rows, state: State) -> Step:
        step = sweep(key, rows, state, likelihood, law)
        same = jax.tree.map(lambda new, old: new.astype(old.dtype), step.state, state)
        return step._replace(state=same)

    return machine_code.Kernel(one)


@functools.cache
def _values(likelihood: Likelihood) -> machine_code.Kernel:
    """The state with values of features from their prior."""

    def one(key: Key, state: State) -> State:
        places, dimensions = state.values.shape
        values = likelihood.draw_values(key, state.numbers, places, dimensions)
        return state._replace(values=values * jnp.any(state.menu, axis=0)[:, None])

    return machine_code.Kernel(one)


@functools.cache
def _refreshed(likelihood: Likelihood) -> machine_code.Kernel:
    """The state with values and numbers drawn given the features of rows, a few times."""

    def one(key: Key, rows: Rows, state: State) -> State:
        def again(i: Any, now: State) -> State:
            point = likelihood.update(jax.random.fold_in(key, i), rows, now.point)
            found = now._replace(values=point.values, numbers=point.numbers)
            return jax.tree.map(lambda new, old: new.astype(old.dtype), found, now)

        state = jax.lax.fori_loop(0, REFRESHED, again, state)
        return state._replace(values=state.values * jnp.any(state.menu, axis=0)[:, None])

    return machine_code.Kernel(one)


class Correlated:
    """Transitions of a model of correlated features; `kernel()` is what `engine.mcmc.run.run` takes.

    Args:
        rows: the data.
        likelihood: what rows show of their features.
        law: the prior of choices and menus: `Partition`, `DpIbp`, `IbpIbp` or `NoisyOrIbp`.
        start: None, for a draw of the prior, or a state to start all chains from, as of a chain of another of these
            models; `of_partition` makes one of labels.
        keep: names of what is recorded beside numbers: "choice", "menu", "active", "values", "fit" or none of them.

    Raises:
        UnsupportedError: a likelihood with weights.
        DataError: a start that is not of these rows, or not possible under the law.

    Source: doshivelez2009correlated.
    """

    def __init__(
        self,
        rows: Rows,
        likelihood: Likelihood,
        law: Framework,
        start: State | None = None,
        keep: tuple[str, ...] = ("choice", "menu", "values"),
    ) -> None:
        if likelihood.weighted:
            raise UnsupportedError(
                f"{type(likelihood).__name__} has a weight for each row and feature; correlated features have none. "
                "Use a likelihood without weights."
            )
        self.rows = Rows(np.asarray(rows.values, float), np.asarray(rows.seen, bool))
        likelihood.check(self.rows.values, self.rows.seen)
        self.likelihood, self.law, self.keep = likelihood, law, keep
        self.start = None if start is None else law.taken_over(self._checked(start))
        self._resident = machine_code.resident(self.rows)

    def kernel(self) -> Kernel:
        """Of these transitions, one chain after the other."""
        return Kernel(self.init, self.step, self.record, grows=True, note=_note, identity=self.identity)

    @functools.cached_property
    def identity(self) -> str:
        """A fingerprint of data, model and start."""
        words = repr((self.likelihood, self.law, self.keep)).encode()
        parts = [words, np.where(self.rows.seen, self.rows.values, 0.0).tobytes(), self.rows.seen.tobytes()]
        parts += [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(self.start)]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def init(self, key: Key) -> State:
        """Choices, menus and values from the prior, or the start that was given."""
        if self.start is not None:
            return self.start
        keys = jax.random.split(key)
        prior = doubles(self.law.first())
        choice, menu, fired = self.law.generate(keys[0], prior, len(self.rows.values))
        numbers = doubles(self.likelihood.first_numbers(self.rows))
        values = np.zeros((menu.shape[1], self.rows.values.shape[1]))
        state = padded(State(choice, menu, fired, values, numbers, prior), *map(bucket, menu.shape))
        return _values(self.likelihood)(keys[1], state)

    def step(self, key: Key, state: State) -> State:
        """One sweep."""
        one = compiled(self.likelihood, self.law)
        while True:
            step = one(key, self._resident, state)
            if step.fits:
                return trimmed(step.state)
            state = padded(state, *(2 * size for size in state.menu.shape))

    def record(self, state: State) -> dict[str, Any]:
        """A draw without padding."""
        categories, features = state.choice.any(axis=0), state.menu.any(axis=0)
        with double_precision():
            total = np.asarray(totals(state.point))
            fit = np.asarray(self.likelihood.mean_entry(total, state.numbers))
            entries = np.asarray(self.likelihood.log_entry(self.rows.values, total, state.numbers))
        found = {name: np.asarray(value) for name, value in (state.numbers | state.prior).items()}
        found |= {
            "number_of_categories": np.array(categories.sum()),
            "number_of_features": np.array(features.sum()),
            "number_of_menus": np.array(len(np.unique(state.menu[categories], axis=0))),
            "log_likelihood": np.array(entries[self.rows.seen].sum()),
        }
        kept = {
            "choice": state.choice[:, categories],
            "menu": state.menu[np.ix_(categories, features)],
            "active": np.asarray(state.active)[:, features],
            "values": state.values[features],
            "fit": fit,
        }
        return found | {name: value for name, value in kept.items() if name in self.keep}

    def _checked(self, start: State) -> State:
        """The start, with its own places."""
        rows, dimensions = self.rows.values.shape
        if start.choice.shape[0] != rows or start.values.shape[1] != dimensions:
            raise DataError(
                f"Correlated(start=): of {start.choice.shape[0]} rows and {start.values.shape[1]} dimensions, and the "
                f"data have {rows} and {dimensions}. Start from a state of the same data."
            )
        if set(start.numbers) != set(self.likelihood.first_numbers(self.rows)):
            raise DataError(
                f"Correlated(start=): of a likelihood with the numbers {sorted(start.numbers)}, other than those of "
                f"{type(self.likelihood).__name__}. Start from a state of the same likelihood."
            )
        return trimmed(padded(jax.tree.map(np.asarray, start), *map(bucket, start.menu.shape)))


def of_partition(labels: Any, rows: Rows, likelihood: Likelihood, key: Key) -> State:
    """A state with one category of its own feature for each label, as a start.

    Args:
        labels: (rows,) of whole numbers, as of a mixture.
        rows: the data.
        likelihood: what rows show of their features.
        key: a key of `jax.random`, for values and numbers given the labels.

    Returns:
        A state of `Partition`, from which all other models can start.

    Raises:
        DataError: another number of labels than rows.
    """
    labels = np.asarray(labels)
    if labels.shape != rows.values.shape[:1]:
        raise DataError(f"Give one label for each of {len(rows.values)} rows; found labels of shape {labels.shape}.")
    _, place = np.unique(labels, return_inverse=True)
    choice = np.eye(place.max() + 1, dtype=bool)[place]
    menu = np.eye(choice.shape[1], dtype=bool)
    numbers = doubles(likelihood.first_numbers(rows))
    values = np.zeros((len(menu), rows.values.shape[1]))
    state = State(choice, menu, choice[:, :, None] & menu, values, numbers, {"concentration": np.asarray(1.0)})
    state = padded(state, *map(bucket, menu.shape))
    keys = jax.random.split(key)
    return _refreshed(likelihood)(keys[1], rows, _values(likelihood)(keys[0], state))


def as_features(state: State, mass: float = 1.0, concentration: float = 1.0) -> Features:
    """The features of rows alone, as a state of the samplers of the Indian buffet process; without empty ones."""
    active = np.asarray(state.active)
    order = np.argsort(~active.any(axis=0), kind="stable")
    values = np.where(np.any(active, axis=0)[:, None], state.values, 0.0)
    active, values = active[:, order], values[order]
    numbers, empty = dict(state.numbers), np.zeros((0, 0))
    return Features(active, values, empty, numbers, np.asarray(float(mass)), np.asarray(float(concentration)))


def _note(states: list[State]) -> str:
    """For the progress bar: the numbers of categories and features."""
    words = []
    for name, table in (("L", "choice"), ("K", "menu")):
        counts = [int(np.asarray(getattr(state, table)).any(axis=0).sum()) for state in states]
        words.append(f"{name} {min(counts)}" if min(counts) == max(counts) else f"{name} {min(counts)}-{max(counts)}")
    return ", ".join(words)


def padded(state: State, categories: int, places: int) -> State:
    """The same state with other numbers of places, those left out empty."""
    more = max(categories - state.menu.shape[0], 0), max(places - state.menu.shape[1], 0)
    own, also = (0, more[0]), (0, more[1])
    return state._replace(
        choice=np.pad(state.choice, [(0, 0), own])[:, :categories],
        menu=np.pad(state.menu, [own, also])[:categories, :places],
        fired=np.pad(state.fired, [(0, 0), own, also])[:, :categories, :places],
        values=np.pad(state.values, [also, (0, 0)])[:places],
    )


def trimmed(state: State) -> State:
    """With categories and features in the first places, and fewer places where three quarters are empty."""
    used = np.any(state.choice, axis=0), np.any(state.menu, axis=0)
    if not all(np.all(each[: each.sum()]) for each in used):
        own, also = (np.argsort(~each, kind="stable") for each in used)
        state = state._replace(
            choice=state.choice[:, own],
            menu=state.menu[np.ix_(own, also)],
            fired=state.fired[:, own][:, :, also],
            values=state.values[also],
        )
    sizes = (
        places if places == SMALLEST or 4 * each.sum() > places else bucket(2 * int(each.sum()))
        for each, places in zip(used, state.menu.shape, strict=True)
    )
    return padded(state, *sizes)
