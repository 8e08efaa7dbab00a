"""Gibbs steps given the values of features, and births from the prior: for every likelihood.

A feature that a row has alone is no matter of one entry: switched off by its own conditional it would be gone with its
values, and no step would bring it back at the same rate. So entries are drawn for features that other rows have, and
the features that the row has alone are replaced by others, their number and values from the prior, and accepted by
their likelihood. Source: meeds2007modeling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Rows
from .law import Law, RowPrior
from .passes import MOST, births_of
from .state import Outcome, State, cleared


class Row(NamedTuple):
    """One row in the course of a sweep.

    Attributes:
        value, seen: (dimensions,) its entries.
        active: (P,) booleans.
        weight: (P,), or (0,) where the likelihood has none.
        total: (dimensions,) what it shows of its features.
        others: (P,) how many other rows have each feature.
        values: (P, dimensions) of features, which a birth changes.
    """

    value: Array
    seen: Array
    active: Array
    weight: Array
    total: Array
    others: Array
    values: Array


class Births(NamedTuple):
    """What became of the features that a row has alone."""

    row: Row
    fits: Array
    proposed: Array
    accepted: Array


Birth: TypeAlias = Callable[[Key, Row, State, Likelihood, RowPrior], Births]


def log_density(row: Row, total: Array, state: State, likelihood: Likelihood) -> Array:
    """Of a row's entries, were this their total."""
    return jnp.sum(likelihood.log_entry(row.value, total, state.numbers), where=row.seen)


def own_total(row: Row, place: Array) -> Array:
    """(dimensions,) what one feature adds."""
    return row.values[place] * (row.weight[place] if row.weight.size else 1.0)


def draw_entries(key: Key, row: Row, state: State, likelihood: Likelihood, law: RowPrior) -> Row:
    """Each entry of a row given all others, for features that the prior lets it share."""
    rows, places = state.active.shape
    odds = law.log_odds(row.others, rows, state)
    u = draws.uniform(key, (places,))
    threshold = jnp.log(u) - jnp.log1p(-u)

    def one(place: Array, now: Row) -> Row:
        own = own_total(now, place)
        without = now.total - now.active[place] * own
        gain = log_density(now, without + own, state, likelihood) - log_density(now, without, state, likelihood)
        drawn = jnp.where(jnp.isneginf(odds[place]), now.active[place], threshold[place] < odds[place] + gain)
        return now._replace(active=jnp.asarray(now.active).at[place].set(drawn), total=without + drawn * own)

    return jax.lax.fori_loop(0, places, one, row)


def births_of_prior(key: Key, row: Row, state: State, likelihood: Likelihood, law: RowPrior) -> Births:
    """The features that the row has alone replaced by a draw of the prior, accepted by the likelihood."""
    rows, places = state.active.shape
    keys = jax.random.split(key, 4)
    alone = row.active & (row.others == 0)
    number = draws.state_at(draws.uniform(keys[0]), births_of(law, rows, state))
    values = likelihood.draw_values(keys[1], state.numbers, MOST, row.total.shape[0])
    weights = jnp.ones(MOST)
    if likelihood.weighted:
        weights = likelihood.draw_weights(keys[2], state.numbers, (MOST, 1))[:, 0]
    born = jnp.arange(MOST) < number
    worth = row.weight if row.weight.size else jnp.ones(places)
    lost = jnp.where(alone, worth, 0.0) @ row.values
    total = row.total - lost + jnp.where(born, weights, 0.0) @ values
    gain = log_density(row, total, state, likelihood) - log_density(row, row.total, state, likelihood)
    before = jnp.sum(alone)
    # More than can be proposed stay as they are: no move would lead back.
    accepted = (jnp.log(draws.uniform(keys[3])) < gain) & (before <= MOST)
    found, fits = placed(row, alone, born, values, weights, total)
    changes = (before > 0) | (number > 0)
    row = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), found, row)
    return Births(row, fits | ~accepted, changes & (before <= MOST), changes & accepted)


def placed(row: Row, alone: Array, born: Array, values: Array, weights: Array, total: Array) -> tuple[Row, Array]:
    """The row with others in place of the features that it has alone, and whether there were places for them."""
    empty = row.others == 0
    order = jnp.argsort(~empty, stable=True)  # empty places first
    at = order[jnp.minimum(jnp.arange(len(born)), len(order) - 1)]
    fits = jnp.sum(born) <= jnp.sum(empty)
    room = jnp.where(born & (jnp.arange(len(born)) < jnp.sum(empty)), at, len(order))  # beyond the end: left out
    active = jnp.asarray(row.active & ~alone).at[room].set(True, mode="drop")
    table = jnp.asarray(row.values).at[room].set(values, mode="drop")
    weight = jnp.asarray(row.weight)
    if weight.size:
        weight = weight.at[room].set(weights, mode="drop")
    return row._replace(active=active, values=table, weight=weight, total=total), fits


class OfRows(Protocol):
    """The prior of a matrix, as a prior of each row given the others."""

    @property
    def features(self) -> int | None:
        """As of `RowPrior`."""
        ...

    def of_row(self, row: Array, active: Array, state: State) -> RowPrior:
        """Of this row given all others."""
        ...


def sweep_rows(
    key: Key,
    rows: Rows,
    state: State,
    likelihood: Likelihood,
    law: OfRows,
    birth: Birth,
    elsewhere: Array | int = 0,
    count: Array | int | None = None,
) -> Outcome:
    """All rows, one after the other, given the values of features.

    Args:
        elsewhere: (places,) how many rows of other shards have each feature.
        count: how many of the rows there are, where others are padding.
    """
    every, places = state.active.shape
    counts = jnp.sum(state.active, axis=0) + elsewhere

    def one(n: Array, carry: tuple) -> tuple:
        active, values, weights, counts, fits, proposed, accepted = carry
        keys = jax.random.split(jax.random.fold_in(key, n), 3)
        weight = jnp.zeros(0)
        if likelihood.weighted and not likelihood.apart:
            weight = weights[n]
        elif likelihood.weighted:  # those of what the row has not are of their prior, of features born since too
            prior = likelihood.draw_weights(keys[2], state.numbers, (places, 1))[:, 0]
            weight = jnp.where(active[n], weights[n], prior)
        own = jnp.where(active[n], weight, 0.0) if weights.size else active[n].astype(float)
        row = Row(rows.values[n], rows.seen[n], active[n], weight, own @ values, counts - active[n], values)
        prior_of_row = law.of_row(n, active, state)
        row = draw_entries(keys[0], row, state, likelihood, prior_of_row)
        found = Births(row, jnp.bool_(True), jnp.bool_(False), jnp.bool_(False))
        if law.features is None:
            found = birth(keys[1], row, state, likelihood, prior_of_row)
        row = found.row
        return (
            active.at[n].set(row.active), row.values, weights.at[n].set(row.weight) if weights.size else weights,
            row.others + row.active, fits & found.fits, proposed + found.proposed, accepted + found.accepted,
        )  # fmt: skip

    none = jnp.zeros((), int)
    start = state.active, state.values, state.weights, counts, jnp.bool_(True), none, none
    active, values, weights, _, fits, proposed, accepted = jax.lax.fori_loop(
        0, every if count is None else count, one, start
    )
    return Outcome(state._replace(active=active, values=values, weights=weights), fits, proposed, accepted)


def sweep_with(birth: Birth, key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """One sweep over rows with these births, values, the numbers of the likelihood and those of the prior."""
    keys = jax.random.split(key, 3)
    outcome = sweep_rows(keys[0], rows, state, likelihood, law, birth)
    return outcome._replace(state=drawn_given_matrix(keys[1:], rows, outcome.state, likelihood, law))


def uncollapsed(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """One sweep with births from the prior."""
    return sweep_with(births_of_prior, key, rows, state, likelihood, law)


def drawn_given_matrix(keys: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> State:
    """Values, weights and all numbers given the matrix."""
    point = likelihood.update(keys[0], rows, state.point)
    state = state._replace(values=point.values, weights=point.weights, numbers=point.numbers)
    if law.features is None:
        state = cleared(state)
    return law.update(keys[1], state)
