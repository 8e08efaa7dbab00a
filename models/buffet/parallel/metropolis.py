"""Exact moves from inexact sweeps of shards, by a seed: what a sweep with given random numbers makes of a matrix is a
function of it, and a proposal about that can be weighed both ways.

All shards draw a few of their rows at once, as if the rows of others stayed as they are, with random numbers that do
not depend on the matrix. What comes of that, each entry of these rows changed with a small probability, is proposed.
The same sweep from the proposal says how probable the way back is. So whatever sweeps ignore, the law is kept; but all
must wait for each decision, and the more rows there are, the fewer proposals are accepted.

A matrix has no order of columns and no end of them. So its columns are dealt out among a number of places that is up to
`SPARE` more than there are columns, and within these places entries are proposed: a decision compares the probabilities
that the matrices were dealt out so, and more columns than places, or fewer than `SPARE` less, are refused.

Source: doshivelez2009large.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError, UnsupportedError
from ....factors.special import lgamma
from ..likelihoods.contract import Likelihood, Rows
from ..likelihoods.linear_gaussian import log_marginal, of_values, sums_of
from ..samplers.accelerated import pass_from
from ..samplers.beliefs import beliefs_of
from ..samplers.law import Law
from ..samplers.passes import Chances, Tables, chances_of, required, tables_of
from ..samplers.state import Outcome, State, cleared

SPARE = 4  # more places than columns, at most


class Moved(NamedTuple):
    """What a seeded sweep makes of a matrix.

    Attributes:
        active: (rows, places) booleans.
        fits: () whether there were places for all new features.
    """

    active: Bool[Array, "row place"]
    fits: Array


class Seed(NamedTuple):
    """All random numbers of a seeded sweep, and what else does not change with the matrix.

    Attributes:
        chosen: (shards, changed) which rows are drawn.
        chances: of the sweeps, with axes for sweeps and shards before those of a pass.
        tables: of the prior.
        room: (places,) booleans, places that may be proposed.
    """

    chosen: Array
    chances: Chances
    tables: Tables
    room: Array


@dataclasses.dataclass(frozen=True)
class SeededShards:
    """A sweep, for `sample_features(sweep=)`: accepted with `min(1, p(Z') q(Z' to Z) / (p(Z) q(Z to Z')))`.

    `q(Z to Z')` is the product over entries that may change of 1 - fuzz where Z' has what the seeded sweep makes of Z,
    and fuzz where not; `p(Z)` the probability of the matrix times that of the data, values integrated out.

    Args:
        shards: among which rows are dealt in turn; at most as many as there are rows.
        changed: rows of each shard that a move changes, drawn at random.
        inner: sweeps over these rows.
        moves: moves of a sweep, before values and numbers are drawn.
        fuzz: the probability that an entry is proposed that the sweep did not make, below a half.

    Raises:
        ModelError: numbers out of range.

    Source: doshivelez2009large.
    """

    shards: int = 2
    changed: int = 1
    inner: int = 1
    moves: int = 1
    fuzz: float = 0.01

    def __post_init__(self) -> None:
        for name in ("shards", "changed", "inner", "moves"):
            if isinstance(value := getattr(self, name), bool) or not isinstance(value, int) or value < 1:
                raise ModelError(f"SeededShards({name}=): give a whole number of at least 1; found {value!r}.")
        if not 0.0 < self.fuzz < 0.5:
            raise ModelError(f"SeededShards(fuzz=): give a probability above 0 and below 0.5; found {self.fuzz!r}.")

    def __call__(self, key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
        """One sweep.

        Raises:
            UnsupportedError: another likelihood than `LinearGaussian`, or the finite prior.
            ModelError: fewer rows than are to be changed.
        """
        gaussian = required(likelihood)
        if law.features is not None:
            raise UnsupportedError(f"SeededShards is for the process; found {law.features} features.")
        if self.shards * self.changed > rows.values.shape[0]:
            raise ModelError(
                f"{self.shards} shards of {self.changed} rows are more than the {len(rows.values)} there are."
            )
        keys = jax.random.split(key, 6)
        full = gaussian.filled(keys[0], rows, state.point)

        def move(i: Array, carry: tuple) -> tuple:
            state, fits, accepted = carry
            state, fitted, taken = _move(self, jax.random.fold_in(keys[1], i), full, state, law)
            return state, fits & fitted, accepted + taken

        start = state, jnp.bool_(True), jnp.zeros((), int)
        state, fits, accepted = jax.lax.fori_loop(0, self.moves, move, start)
        state = state._replace(values=of_values(full, state.active, state.numbers).draw(keys[2]))
        state = cleared(state._replace(numbers=gaussian.numbers_given(keys[3], keys[4], rows, state.point)))
        return Outcome(law.update(keys[5], state), fits, jnp.asarray(self.moves), accepted)


def _move(how: SeededShards, key: Key, full: Array, state: State, law: Law) -> tuple[State, Array, Array]:
    """One proposal and its decision."""
    keys = jax.random.split(key, 4)
    active, room = dealt(keys[0], state.active)
    seed = _seed(how, keys[1], room, state, law)
    there = seeded(how, active, full, seed, state)
    may = jnp.zeros(active.shape, bool).at[seed.chosen.ravel()].set(room)
    fuzzy = how.fuzz > draws.uniform(keys[2], active.shape[::-1]).T
    proposed = jnp.where(may, there.active ^ fuzzy, active)
    back = seeded(how, proposed, full, seed, state)

    def log_way(made: Array, to: Array) -> Array:
        changed = jnp.sum((made ^ to) & may)
        return changed * jnp.log(how.fuzz) + (jnp.sum(may) - changed) * jnp.log1p(-how.fuzz)

    def log_density(active: Array) -> Array:
        owners, number = jnp.sum(active, axis=0), jnp.sum(room)
        spare = number - jnp.sum(owners > 0)
        matrix = law.log_probability(owners, active.shape[0], state) - _log_ways(number, spare)
        possible = (spare >= 0) & (spare <= SPARE)
        return jnp.where(possible, matrix + log_marginal(full, active, state.numbers), -jnp.inf)

    after, before = jax.lax.map(log_density, jnp.stack([proposed, active]))  # one after the other, lest XLA wait
    log_ratio = after - before + log_way(back.active, active) - log_way(there.active, proposed)
    taken = jnp.log(draws.uniform(keys[3])) < log_ratio
    fits = there.fits & back.fits & (jnp.sum(jnp.any(state.active, axis=0)) + SPARE <= len(room))
    return state._replace(active=jnp.where(taken, proposed, active)), fits, taken


def _log_ways(places: Array, empty: Array) -> Array:
    """Logarithm of in how many ways some of the places are empty."""
    full, spare = jnp.maximum(places - empty, 0), jnp.maximum(empty, 0)
    return lgamma(places + 1.0) - lgamma(full + 1.0) - lgamma(spare + 1.0)


def dealt(key: Key, active: Array) -> tuple[jax.Array, Array]:
    """The columns at random in up to `SPARE` more places than there are columns, and which places these are."""
    keys = jax.random.split(key)
    used = jnp.any(active, axis=0)
    number = jnp.sum(used) + (draws.uniform(keys[0]) * (SPARE + 1)).astype(int)
    room = jnp.arange(len(used)) < number
    order = jnp.argsort(jnp.where(room, draws.uniform(keys[1], used.shape), 2.0), stable=True)
    columns = jnp.argsort(~used, stable=True)
    packed = jnp.asarray(active)[:, columns]
    return jnp.zeros_like(packed).at[:, order].set(packed), room


def _seed(how: SeededShards, key: Key, room: Array, state: State, law: Law) -> Seed:
    keys = jax.random.split(key)
    rows, places = state.active.shape
    each = -(-rows // how.shards)
    scores = jnp.append(draws.uniform(keys[0], (rows,)), jnp.full(each * how.shards - rows, 2.0))
    first = jnp.argsort(scores.reshape((each, how.shards)), axis=0)[: how.changed]
    chosen = (first * how.shards + jnp.arange(how.shards)).T

    def chances(number: Array) -> Chances:
        return chances_of(jax.random.fold_in(keys[1], number), how.changed, places)

    found = jax.vmap(chances)(jnp.arange(how.inner * how.shards))
    shape = how.inner, how.shards
    apart = jax.tree.map(lambda array: array.reshape((*shape, *array.shape[1:])), found)
    return Seed(chosen, apart, tables_of(law, rows, state), room)


def seeded(how: SeededShards, active: Array, full: Array, seed: Seed, state: State) -> Moved:
    """What the sweep makes of the matrix: a function of that alone, for a given seed.

    Each shard starts from what is believed given all rows as they are. New features in one place by several shards are
    one, and those beyond the places that may be proposed are none: the decision weighs what comes of it.
    """
    beliefs = beliefs_of(sums_of(full, active), state.numbers)

    def shard(given: tuple[Array, Chances]) -> Moved:
        chosen, chances = given

        def once(i: Array, carry: tuple) -> tuple:
            beliefs, some, fits = carry
            now = jax.tree.map(lambda array: array[i], chances)
            beliefs, found = pass_from(beliefs, some, full[chosen], state.numbers, seed.tables, now)
            return beliefs, found.active, fits & found.fits

        start = beliefs, jnp.asarray(active)[chosen], jnp.bool_(True)
        _, some, fits = jax.lax.fori_loop(0, how.inner, once, start)
        return Moved(some & seed.room, fits)

    by_shard = jax.tree.map(lambda array: jnp.moveaxis(array, 1, 0), seed.chances)
    found = jax.lax.map(shard, (seed.chosen, by_shard))
    some = found.active.reshape((-1, active.shape[1]))
    return Moved(jnp.asarray(active).at[seed.chosen.ravel()].set(some), jnp.all(found.fits))
