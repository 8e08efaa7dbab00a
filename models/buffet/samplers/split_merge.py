"""Moves that change a feature of many rows at once: split and merge, create and destroy; for every likelihood.

Steps of one entry do not get from one feature to two that share its rows: what lies between is improbable. These moves
go there at once, as a reversible jump. To split, each row that has the feature keeps it, exchanges it for a second one,
or has both, by how well it explains the row; to merge, rows of either of two have the first. To create is to split from
a feature without any effect that all rows have; to destroy is the way back. The first feature keeps its values, and
the second has its own from the prior, by which they cancel from the ratio: what remains is the probability of the
matrix and of the data, over that of how rows were dealt out.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError
from ..likelihoods.contract import Likelihood, Rows, totals
from .law import Law
from .state import Outcome, State, cleared
from .sweeps import Sweep, name_of

KEEP, CHANGE, BOTH = range(3)  # what a row does when its feature is split


class Pair(NamedTuple):
    """Two features of a move, or one, its place for a second, and what chose them.

    Attributes:
        apart: () whether the move goes from one to two.
        creates: () whether the first is the feature without effect.
        first, second: () places.
        possible: () whether there were such features.
        fits: () whether there was a place for the second.
    """

    apart: Array
    creates: Array
    first: Array
    second: Array
    possible: Array
    fits: Array


class Dealt(NamedTuple):
    """Which rows have which of two features.

    Attributes:
        whole: (rows,) booleans, of the first where there is no second.
        first, second: (rows,) booleans, of the two.
        log_choice: () log probability that rows were dealt out so.
        log_ratio: () log density of the data with two, less that with one.
    """

    whole: Array
    first: Array
    second: Array
    log_choice: Array
    log_ratio: Array


@dataclasses.dataclass(frozen=True, repr=False)
class WithSplitMerge:
    """See `with_split_merge`; a value, so that it travels to workers."""

    sweep: Sweep
    moves: int

    def __repr__(self) -> str:
        return f"with_split_merge({name_of(self.sweep)}, {self.moves})"

    def __call__(self, key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
        keys = jax.random.split(key)
        return self.moved(keys[1], rows, self.sweep(keys[0], rows, state, likelihood, law), likelihood, law)

    def moved(self, key: Key, rows: Rows, before: Outcome, likelihood: Likelihood, law: Law) -> Outcome:
        """The moves alone, after a sweep."""
        columns = log_columns(before.state, law)

        def move(i: Array, now: Outcome) -> Outcome:
            return jump(jax.random.fold_in(key, i), rows, now, columns, likelihood, law)

        after = jax.lax.fori_loop(0, self.moves, move, before)
        return after._replace(state=cleared(after.state)) if law.features is None else after


def with_split_merge(sweep: Sweep, moves: int = 4) -> Sweep:
    """The sweep followed by moves that split, merge, create or destroy a feature, each kind as often as the others.

    Each is accepted with the probability of a reversible jump, `p(Z', x | A') / p(Z, x | A)` over the ratio of choices.

    Args:
        sweep: one that leaves the posterior of all that a state holds as it is.
        moves: how many follow each sweep, a whole number of at least 1.

    Returns:
        A sweep; `proposed` and `accepted` count these moves too.

    Raises:
        ModelError: a number of moves that is none.

    Source: green1995reversible, jain2004split.
    """
    check_moves("with_split_merge", moves)
    return WithSplitMerge(sweep, moves)


def check_moves(call: str, moves: int) -> None:
    """ModelError unless it is a whole number of at least 1."""
    if not isinstance(moves, int) or moves < 1:
        raise ModelError(f"{call}(moves=): give a whole number of at least 1; found {moves!r}.")


def jump(key: Key, rows: Rows, now: Outcome, columns: Array, likelihood: Likelihood, law: Law) -> Outcome:
    """One move.

    With two features instead of one the matrix is likelier by `columns[m_1] + columns[m_2] - columns[m]`.
    That there are K of them then, of which any two may merge, and K - 1 before, of which any one may split, leaves a
    factor: `1 / K`, for columns in an order that means nothing; under the finite prior E / K, of E empty features
    that the second may become.
    """
    keys = jax.random.split(key, 4)
    pair = choose(keys[0], now.state, law)
    # A second feature that comes has values from the prior, and so has a place of the finite prior that one leaves.
    fresh = _fresh(keys[1], pair.second, now.state, likelihood)
    begin = jax.tree.map(lambda new, old: jnp.where(pair.apart, new, old), fresh, now.state)
    dealt = deal(keys[2], rows, pair, begin, likelihood)
    number = jnp.sum(jnp.any(now.state.active, axis=0)) + pair.apart
    factor = -jnp.log(number)
    if law.features is not None:
        factor += jnp.log(jnp.maximum(law.features - number + 1, 1))
    first, second, whole = (columns[jnp.sum(each)] for each in (dealt.first, dealt.second, dealt.whole))
    ratio = first + second - whole + factor + dealt.log_ratio - dealt.log_choice
    possible = pair.possible & jnp.any(dealt.first) & jnp.any(dealt.second)
    accepted = possible & (jnp.log(draws.uniform(keys[3])) < jnp.where(pair.apart, ratio, -ratio))
    active = jnp.asarray(now.state.active)
    whole = jnp.where(pair.creates, active[:, pair.first], jnp.where(pair.apart, dealt.first, dealt.whole))
    active = active.at[:, pair.first].set(whole).at[:, pair.second].set(pair.apart & dealt.second)
    after = fresh._replace(active=active)
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), after, now.state)
    fits = now.fits & (pair.fits | ~pair.possible)
    return Outcome(state, fits, now.proposed + possible, now.accepted + accepted)


def log_columns(state: State, law: Law) -> Array:
    """(rows + 1,) what a column of so many ones adds to the log probability of a matrix, over what an empty one does.

    A column grows by one row after the other: the first has it alone, and each other has it by the odds of an entry.
    """
    rows = state.active.shape[0]
    steps = jnp.asarray(law.log_odds(jnp.arange(rows), rows, state))
    if law.features is None:
        steps = steps.at[0].set(jnp.log(law.rate_alone(rows, state)))
    return jnp.concatenate([jnp.zeros(1), jnp.cumsum(steps)])


def choose(key: Key, state: State, law: Law) -> Pair:
    """The kind of move and its features: of those in use, and of empty places, each is as likely as another."""
    keys = jax.random.split(key, 3)
    kind = draws.uniform(keys[0], (2,)) < 0.5
    apart, creates = kind[0], kind[1]
    used = jnp.any(state.active, axis=0)
    number, places = jnp.sum(used), used.shape[0]
    first = _one_of(keys[1], used)
    rest = used & (creates | (jnp.arange(places) != first))
    # Under the process a place means nothing: the first that is empty, whatever the number of places.
    empty = jnp.argmin(used) if law.features is None else _one_of(keys[2], ~used)
    second = jnp.where(apart, empty, _one_of(keys[2], rest))
    room = number < places
    needed = jnp.where(creates, 1, 2) - apart
    possible = number >= needed
    if law.features is None:
        return Pair(apart, creates, first, second, possible, room | ~apart)
    return Pair(apart, creates, first, second, possible & (room | ~apart), jnp.bool_(True))


def _one_of(key: Key, mask: Array) -> Array:
    """One of the places, each as likely as another; any where there is none."""
    order = jnp.cumsum(mask)
    return jnp.argmax(order > jnp.floor(draws.uniform(key) * order[-1]))


def _fresh(key: Key, place: Array, state: State, likelihood: Likelihood) -> State:
    """The state with values, and weights of rows, from the prior in one place."""
    keys = jax.random.split(key)
    values = likelihood.draw_values(keys[0], state.numbers, 1, state.values.shape[1])[0]
    state = state._replace(values=jnp.asarray(state.values).at[place].set(values))
    if not likelihood.weighted:
        return state
    weights = likelihood.draw_weights(keys[1], state.numbers, (1, state.active.shape[0]))[0]
    return state._replace(weights=jnp.asarray(state.weights).at[:, place].set(weights))


def deal(key: Key, rows: Rows, pair: Pair, state: State, likelihood: Likelihood) -> Dealt:
    """Rows dealt out to two features by the likelihood, or found as they are, with the probability of it."""

    def effect(place: Array) -> Array:
        weight = state.weights[:, place, None] if state.weights.size else jnp.ones((state.active.shape[0], 1))
        return weight * state.values[place]

    one, two = jnp.where(pair.creates, 0.0, effect(pair.first)), effect(pair.second)
    has_one = pair.creates | state.active[:, pair.first]
    has_two = ~pair.apart & state.active[:, pair.second]
    rest = totals(state.point) - has_one[:, None] * one - has_two[:, None] * two

    def log_density(total: Array) -> Array:
        return jnp.sum(likelihood.log_entry(rows.values, total, state.numbers), axis=1, where=rows.seen)

    options = jnp.stack([log_density(rest + one), log_density(rest + two), log_density(rest + one + two)], axis=1)
    logits = options.at[:, CHANGE].set(jnp.where(pair.creates, -jnp.inf, options[:, CHANGE]))
    found = jnp.where(has_two, jnp.where(has_one, BOTH, CHANGE), KEEP)
    option = jnp.where(pair.apart, draws.categorical(key, logits), found)
    whole = has_one | has_two

    def chosen(table: Array) -> Array:
        return jnp.sum(jnp.take_along_axis(table, option[:, None], axis=1)[:, 0], where=whole)

    log_ratio = chosen(options) - jnp.sum(options[:, KEEP], where=whole)
    log_choice = chosen(jax.nn.log_softmax(logits, axis=1))
    return Dealt(whole, whole & (option != CHANGE), whole & (option != KEEP), log_choice, log_ratio)
