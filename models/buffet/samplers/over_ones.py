"""Sweeps given values over the ones of large data: those of `uncollapsed` and of `given_rows`, at the cost of the ones.

Of booleans by a noisy-or most are zeros, and of zeros a sweep needs counts alone. Random numbers are those of the
general sweeps, so that both draw the same but for rounding. Data are held as the places of what is one and of what is
missing; what is not a loop over them is the general code, given sums over entries. For where numba is installed.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.support import machine_code
from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.noisy_or import NoisyOr
from .births import TIMES, given_rows
from .law import Law
from .passes import MOST, births_of
from .split_merge import WithSplitMerge
from .state import Outcome, State, cleared
from .uncollapsed import uncollapsed

LEAST = 100_000  # entries of the data from which a sampler uses these sweeps
SWEEPS = (uncollapsed, given_rows)  # those that are written here

Places: TypeAlias = tuple[np.ndarray, np.ndarray]  # (rows + 1,) where rows begin, and columns one row after the other


class Prepared(NamedTuple):
    """What a pass over the rows is given.

    Attributes:
        odds: (rows,) log odds of an entry by how many other rows have the feature.
        births: (MOST + 1,) log weights of the number of features of a row alone, or (0,).
        rate: () expected number of features of a row alone.
        seeds: (rows, kinds, 2) of the random numbers of rows.
    """

    odds: Array
    births: Array
    rate: Array
    seeds: Array


class OverOnes:
    """Sweeps over these data, called as `compiled` ones are.

    Args:
        rows: the data.
        likelihood: of booleans.
        law: the prior of the matrix.
        sweep: `uncollapsed` or `given_rows`, alone or with moves that split and merge.
    """

    def __init__(self, rows: Rows, likelihood: NoisyOr, law: Law, sweep: object) -> None:
        values, seen = np.asarray(rows.values) > 0.5, np.asarray(rows.seen)
        self.ones, self.gaps = _places(values & seen), _places(~seen)
        self.likelihood, self.law = likelihood, law
        self.moves = sweep if isinstance(sweep, WithSplitMerge) else None
        self.by_row = (self.moves.sweep if self.moves else sweep) is given_rows
        self.seen = int(seen.sum())

    def __call__(self, key: Key, rows: Rows, state: State) -> Outcome:
        """One sweep; the rows are those of this object, as moves that split and merge need them."""
        keys = jax.random.split(key) if self.moves else [key]
        outcome = self._swept(keys[0], state)
        if self.moves is None or not outcome.fits:
            return outcome
        return _moved(self.moves, self.likelihood, self.law)(keys[1], rows, outcome)

    def _swept(self, key: Key, state: State) -> Outcome:
        from ..numba_kernels import noisy_or as loops

        keys = jax.random.split(key, 3)
        active, calls = np.array(state.active), np.asarray(state.values) > 0.5
        counts = active.sum(axis=0)
        given = _prepared(self.law, self.by_row)(keys[0], state)
        log_one, log_attenuation = _logs(state.numbers, len(calls))
        birth = np.array([self.by_row, float(state.numbers["share"]), float(given.rate)])
        data = self.ones, self.gaps
        tables = given.odds, log_one, log_attenuation, given.births, birth, given.seeds
        fits, proposed, accepted = loops.over_rows(active, calls, counts, *data, *tables)
        state = state._replace(active=active, values=calls.astype(float))
        if not fits:
            return Outcome(state, np.asarray(False), np.asarray(proposed), np.asarray(accepted))
        reasons = np.zeros(len(self.ones[1]), np.int64)
        loops.count_at_ones(active, calls, *self.ones, reasons)
        sums = self._sums(active, calls, reasons)
        numbers, thresholds = _numbers(self.likelihood)(keys[1], counts, calls.astype(float), state.numbers, sums)
        log_one, log_attenuation = _logs(numbers, len(calls))
        share = float(numbers["share"])
        before = np.log(share) - np.log1p(-share)
        loops.over_values(active, calls, reasons, *data, thresholds, before, log_one, log_attenuation)
        state = state._replace(values=calls.astype(float), numbers=numbers)
        state = _prior(self.law)(keys[2], state)
        return Outcome(state, np.asarray(True), np.asarray(proposed), np.asarray(accepted))

    def _sums(self, active: np.ndarray, calls: np.ndarray, reasons: np.ndarray) -> tuple[np.ndarray, ...]:
        """Of the entries that are seen: (most,) how many ones have so many reasons, the number of zeros, and all their
        reasons together."""
        starts, columns = self.gaps
        missing = np.repeat(np.arange(len(active)), np.diff(starts))
        hidden = sum(int((active[missing, k] & calls[k, columns]).sum()) for k in range(len(calls)))
        every = int(active.sum(axis=0) @ calls.sum(axis=1)) - hidden
        histogram = np.bincount(reasons, minlength=len(calls) + 1).astype(float)
        return histogram, np.asarray(float(self.seen - len(reasons))), np.asarray(float(every - reasons.sum()))

    def log_likelihood(self, state: State) -> float:
        """Of the entries that are seen."""
        from ..numba_kernels import noisy_or as loops

        active, calls = np.array(state.active), np.asarray(state.values) > 0.5
        reasons = np.zeros(len(self.ones[1]), np.int64)
        loops.count_at_ones(active, calls, *self.ones, reasons)
        histogram, zeros, total = self._sums(active, calls, reasons)
        log_one, log_attenuation = _logs(state.numbers, len(calls))
        of_zeros = zeros * np.log(float(state.numbers["quiet"])) + total * log_attenuation
        return float(histogram @ log_one[: len(histogram)] + of_zeros)


def over_ones(rows: Rows, likelihood: Likelihood, law: object, sweep: object, least: int = LEAST) -> OverOnes | None:
    """The same transitions over the ones of these data; None where they are small, or of another kind."""
    inner = sweep.sweep if isinstance(sweep, WithSplitMerge) else sweep
    known = isinstance(likelihood, NoisyOr) and any(inner is each for each in SWEEPS)
    if (
        not known
        or not isinstance(law, Law)
        or np.size(rows.values) < least
        or importlib.util.find_spec("numba") is None
    ):
        return None
    return OverOnes(rows, likelihood, law, sweep)  # pyright: ignore[reportArgumentType]


def _places(mask: np.ndarray) -> Places:
    starts = np.append(0, np.cumsum(mask.sum(axis=1)))
    return starts, np.nonzero(mask)[1]


def _logs(numbers: Numbers, places: int) -> tuple[np.ndarray, float]:
    """Log probabilities of a one with 0, 1, ... reasons, and what each reason adds to that of a zero."""
    log_attenuation = float(np.log(numbers["attenuation"]))
    reasons = np.arange(places + MOST + 2)
    return np.log(-np.expm1(float(np.log(numbers["quiet"])) + reasons * log_attenuation)), log_attenuation


@functools.cache
def _prepared(law: Law, by_row: bool) -> machine_code.Kernel:
    """`prepared(key, state)`, with the keys of the general sweep over rows."""

    def one(key: Key, state: State) -> Prepared:
        rows = state.active.shape[0]

        def seeds(n: Array) -> Array:
            keys = jax.random.split(jax.random.fold_in(key, n), 3)
            if not by_row:
                return jnp.concatenate([keys[:1], jax.random.split(keys[1], 4)[jnp.array([0, 1, 3])]])
            several = jax.vmap(lambda i: jax.random.split(jax.random.fold_in(keys[1], i), 4))(jnp.arange(TIMES))
            return jnp.concatenate([keys[:1], several.reshape(-1)])

        keys: Any = jax.vmap(seeds)(jnp.arange(rows))
        found = jax.vmap(jax.vmap(draws.seed_of))(keys)
        odds = law.log_odds(jnp.arange(rows, dtype=float), rows, state)
        births = births_of(law, rows, state) if law.features is None else jnp.zeros(0)
        return Prepared(odds, births, law.rate_alone(rows, state), found)

    return machine_code.Kernel(one)


@functools.cache
def _numbers(likelihood: NoisyOr) -> machine_code.Kernel:
    """`numbers(key, owners, values, numbers, sums)`: those drawn anew, and thresholds of the log odds of values."""

    def one(
        key: Key, owners: Array, values: Array, numbers: Numbers, sums: tuple[Array, ...]
    ) -> tuple[Numbers, jax.Array]:
        keys = jax.random.split(key, 4)
        histogram, zeros, total = sums

        def log_likelihood(numbers: Numbers) -> Array:
            of_ones = likelihood.log_entry(jnp.ones(()), jnp.arange(len(histogram)), numbers)
            return (
                jnp.sum(jnp.where(histogram > 0, histogram * of_ones, 0.0))
                + zeros * jnp.log(numbers["quiet"])
                + total * jnp.log(numbers["attenuation"])
            )

        found = likelihood.numbers_given(keys, owners > 0, values, numbers, log_likelihood)
        u = draws.uniform(keys[3], values.shape)
        return found, jnp.log(u) - jnp.log1p(-u)

    return machine_code.Kernel(one)


@functools.cache
def _prior(law: Law) -> machine_code.Kernel:
    """The state with empty places cleared, and the prior's own numbers drawn anew."""

    def one(key: Key, state: State) -> State:
        found = law.update(key, cleared(state) if law.features is None else state)
        return jax.tree.map(lambda new, old: new.astype(old.dtype), found, state)

    return machine_code.Kernel(one)


@functools.cache
def _moved(moves: WithSplitMerge, likelihood: Likelihood, law: Law) -> machine_code.Kernel:
    """The moves alone."""

    def one(key: Key, rows: Rows, before: Outcome) -> Outcome:
        found = moves.moved(key, rows, before, likelihood, law)
        return jax.tree.map(lambda new, old: new.astype(old.dtype), found, before)

    return machine_code.Kernel(one)
