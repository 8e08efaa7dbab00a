"""A sweep as a Markov chain for the driver of chains: compiled once, padded in the number of features.

The number of places grows by doubling. A sweep that did not fit is repeated from the same state, padded, with the same
key. Places become fewer when three quarters of them are empty; both rules look at the state alone, so that a chain that
stopped goes on as it was.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from ....engine.mcmc.kernel import Kernel
from ....engine.support import machine_code
from ....factors.arrays import Key
from ....factors.switches import double_precision
from ..likelihoods.contract import Likelihood, Numbers, Rows, WholeRows, totals
from ..likelihoods.gaussian_noise import GaussianNoise
from ..likelihoods.learned import LEAST, mean_square
from ..prior import BetaBernoulli, IndianBuffet
from ..sample import sample_finite, sample_restaurant
from .law import Law
from .over_ones import OverOnes, over_ones
from .state import Outcome, State
from .sweeps import OtherLaw, Sweep, name_of

SMALLEST = 8  # places for features
LOUD = 80.0  # times the noise variance that likelihoods begin with, for chains from the prior
QUIETER, SWEEPS = 1.1, 100  # where it is given, it falls to that by such factors, in at most so many sweeps


@runtime_checkable
class Start(Protocol):
    """Where chains begin, such as what `fit_variational` gives."""

    def draw(self, key: Key) -> tuple[np.ndarray, np.ndarray, Numbers]:
        """(rows, features) booleans, (features, dimensions) values and the numbers of the likelihood."""
        ...


@functools.cache
def compiled(sweep: Sweep, likelihood: Likelihood, law: Law | OtherLaw) -> machine_code.Kernel:
    """`sweep(key, rows, state) -> Outcome`; likelihoods and laws that are equal share it."""

    def one(key: Key, rows: Rows, state: State) -> Outcome:
        outcome = sweep(key, rows, state, likelihood, law)  # pyright: ignore[reportArgumentType]
        same = jax.tree.map(lambda new, old: new.astype(old.dtype), outcome.state, state)
        return outcome._replace(state=same)

    return machine_code.Kernel(one)


@functools.cache
def _starts(likelihood: Likelihood, law: Law | OtherLaw, places: int) -> machine_code.Kernel:
    """Values and weights of a matrix, given the numbers that chains begin with."""

    def start(key: Key, rows: Rows, state: State) -> State:
        keys = jax.random.split(key, 3)
        values = likelihood.draw_values(keys[0], state.numbers, places, rows.values.shape[1])
        weights = state.weights
        if likelihood.weighted:
            weights = likelihood.draw_weights(keys[1], state.numbers, (places, rows.values.shape[0])).T
        return state._replace(values=values, weights=weights)

    return machine_code.Kernel(start)


class Sampler:
    """Transitions of a model of binary features; `kernel()` is what `engine.mcmc.run.run` takes.

    Args:
        rows: the data.
        likelihood: what rows show of their features.
        law: the prior of the matrix.
        sweep: one transition.
        keep: names of what is recorded beside numbers: "active", "values", "fit" (the expected entries) and "entries"
            (log densities of the entries of `truth`), or none of them.
        truth: (rows, dimensions) the data with what is not seen; those of `rows` by default.
        start: where chains begin, by default at a draw from the prior, or where it has come to in at most 100 sweeps
            with more noise, where less is given.
    """

    def __init__(
        self,
        rows: Rows,
        likelihood: Likelihood,
        law: Law | OtherLaw,
        sweep: Sweep,
        keep: tuple[str, ...] = ("active", "values"),
        truth: np.ndarray | None = None,
        start: Start | None = None,
    ) -> None:
        values, seen = np.asarray(rows.values, float), np.asarray(rows.seen, bool)
        self.rows = WholeRows(values, seen) if seen.all() else Rows(values, seen)
        self.likelihood, self.law, self.sweep, self.keep = likelihood, law, sweep, keep
        self.truth = self.rows.values if truth is None else truth
        self.start = start
        self._resident = machine_code.resident(self.rows)

    def kernel(self) -> Kernel:
        """Of these transitions, one chain after the other."""
        asked = {"grows": True, "note": _note, "identity": self.identity, "blank": self._first}
        return Kernel(self.init, self.step, self.record, **asked)

    @functools.cached_property
    def identity(self) -> str:
        """A fingerprint of data, model and sampler."""
        words = repr((self.likelihood, self.law, name_of(self.sweep), self.keep)).encode()
        parts = [words, np.where(self.rows.seen, self.rows.values, 0.0).tobytes(), self.rows.seen.tobytes()]
        parts += [array.tobytes() for array in arrays_of(self.law)]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    @functools.cached_property
    def _over_ones(self) -> OverOnes | None:
        """The same transitions at the cost of the ones of large data, where there are such."""
        return over_ones(self.rows, self.likelihood, self.law, self.sweep)

    def init(self, key: Key) -> State:
        """A matrix from the prior and values of its features, after some sweeps with more noise where less is given; or
        a draw of what was given."""
        first = self._first(key)
        return first if self.start is not None else self._quieted(jax.random.fold_in(key, 2), first)

    def _first(self, key: Key) -> State:
        """The same without these sweeps."""
        if self.start is not None:
            return self._drawn(key, self.start)
        keys = jax.random.split(key)  # of the key's parts two; `init` takes the third
        rows = self.rows.values.shape[0]
        with double_precision():
            mass, concentration = (float(number) for number in self.law.first())
            first = loud(self.likelihood, self.likelihood.first_numbers(self.rows))
            numbers: Numbers = {name: np.asarray(value) for name, value in first.items()}
        if self.law.features is None:
            matrix = sample_restaurant(IndianBuffet(mass, concentration), rows, keys[0])
            places = bucket(matrix.shape[1])
        else:
            places = self.law.features
            matrix = sample_finite(BetaBernoulli(mass, places), rows, keys[0]).matrix
        active = np.pad(matrix, [(0, 0), (0, places - matrix.shape[1])])
        empty = np.zeros((0, 0))
        state = State(active, np.zeros((0, 0)), empty, numbers, np.asarray(mass), np.asarray(concentration))
        return _starts(self.likelihood, self.law, places)(keys[1], self._resident, state)

    def _quieted(self, key: Key, state: State) -> State:
        """After sweeps with as much noise as features leave, which falls slowly, where the noise is given and less: a
        first sweep with that would take every accident for a feature, and rows hardly ever give features up again."""
        if not isinstance(self.likelihood, GaussianNoise) or isinstance(self.likelihood.noise_precision, tuple):
            return state
        given, first = float(self.likelihood.noise_precision), 4.0 / LOUD / max(mean_square(self.rows), LEAST)
        for number in range(SWEEPS):
            with double_precision():
                left = self.rows.values - np.asarray(totals(state.point))
            left = max(mean_square(self.rows._replace(values=left)), LEAST)
            now = min(1.0 / left, first * QUIETER**number)
            if now >= given:
                break
            state = state._replace(numbers={**state.numbers, "noise_precision": np.asarray(now)})
            state = self.step(jax.random.fold_in(key, number), state)
        return state

    def _drawn(self, key: Key, start: Start) -> State:
        active, values, numbers = start.draw(key)
        used = active.any(axis=0) if self.law.features is None else np.ones(active.shape[1], bool)
        with double_precision():
            mass, concentration = (np.asarray(number) for number in self.law.first())
        empty = np.zeros((0, 0))
        state = State(active[:, used], np.asarray(values)[used], empty, numbers, mass, concentration)
        return state if self.law.features is not None else padded(state, bucket(int(used.sum())))

    def step(self, key: Key, state: State) -> State:
        """One sweep."""
        sweep = self._over_ones or compiled(self.sweep, self.likelihood, self.law)
        while True:
            outcome = sweep(key, self._resident, state)
            if outcome.fits:
                return self._trimmed(outcome.state)
            state = padded(state, 2 * state.values.shape[0])

    def _trimmed(self, state: State) -> State:
        """With the features in the first places, and as many places as they need."""
        if self.law.features is not None:
            return state
        used = np.atleast_1d(np.any(state.active, axis=0))
        count, places = int(used.sum()), len(used)
        if not used[:count].all():
            order = np.argsort(~used, kind="stable")
            weights = state.weights[:, order] if state.weights.size else state.weights
            state = state._replace(active=state.active[:, order], values=state.values[order], weights=weights)
        if places == SMALLEST or 4 * count > places:
            return state
        return padded(state, bucket(2 * count))

    def record(self, state: State) -> dict[str, Any]:
        """A draw without padding."""
        used = state.active.any(axis=0)
        if self.law.features is not None:
            used = np.ones_like(used)
        kept = {"active": state.active[:, used], "values": state.values[used]}
        if state.weights.size:
            kept["weights"] = state.weights[:, used]
        kept = {name: value for name, value in kept.items() if name in self.keep}
        found, log_likelihood = self._entries(state)
        owners = state.active.sum(axis=0)
        numbers = {name: np.asarray(value) for name, value in state.numbers.items()}
        numbers |= {
            "mass": np.asarray(state.mass),
            "concentration": np.asarray(state.concentration),
            "number_of_features": np.array((owners > 0).sum()),
            "log_likelihood": np.array(log_likelihood),
        }
        return numbers | kept | found

    def _entries(self, state: State) -> tuple[dict[str, np.ndarray], float]:
        """What is kept of single entries, and the log density of all that are seen."""
        names = [name for name in ("fit", "entries") if name in self.keep]
        if not names and self._over_ones is not None:  # no table of the size of the data
            return {}, self._over_ones.log_likelihood(state)
        with double_precision():
            total = np.asarray(totals(state.point))
            entries = np.asarray(self.likelihood.log_entry(self.truth, total, state.numbers))
            found = {"entries": entries}
            if "fit" in names:
                found["fit"] = np.asarray(self.likelihood.mean_entry(total, state.numbers))
        return {name: found[name] for name in names}, entries[self.rows.seen].sum()


def arrays_of(law: Law | OtherLaw) -> list[np.ndarray]:
    """Those that a law is made of, such as the parents and depths of a tree, which its words leave out."""
    if not dataclasses.is_dataclass(law):
        return []
    return [each for each in jax.tree.leaves(dataclasses.asdict(law)) if isinstance(each, np.ndarray)]


def loud(likelihood: Likelihood, numbers: Numbers) -> Numbers:
    """With more noise than data, where it is learned: from a draw of the prior, features that explain nothing yet, a
    first sweep with little noise takes every accident for a feature, and rows hardly ever give features up again."""
    if not isinstance(likelihood, GaussianNoise) or not isinstance(likelihood.noise_precision, tuple):
        return numbers
    return {**numbers, "noise_precision": numbers["noise_precision"] / LOUD}


def _note(states: list[State]) -> str:
    """For the progress bar: the numbers of features."""
    counts = [int(state.active.any(axis=0).sum()) for state in states]
    return f"K {min(counts)}" if min(counts) == max(counts) else f"K {min(counts)}-{max(counts)}"


def bucket(count: int) -> int:
    """The least of 8, 16, 32, ... that is not below the count."""
    return max(SMALLEST, 1 << max(int(count) - 1, 0).bit_length())


def padded(state: State, places: int) -> State:
    """The same state with another number of places, those left out empty."""
    now = state.values.shape[0]
    more = max(places - now, 0)
    weights = state.weights
    if weights.size:
        weights = np.pad(weights, [(0, 0), (0, more)])[:, :places]
    return state._replace(
        active=np.pad(state.active, [(0, 0), (0, more)])[:, :places],
        values=np.pad(state.values, [(0, more), (0, 0)])[:places],
        weights=weights,
    )
