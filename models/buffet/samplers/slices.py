"""The slice sampler on the weights of features, for every likelihood: no births one row at a time.

The weights of the process are the points of a Poisson process on (0, 1), infinitely many. A uniform level below the
least weight in use says which of them matter: those above the level, a finite number, in each of which every row may
come to take part; below it no row can. So given weights and level all entries are drawn from a finite matrix, also the
first ones of new features, in several rows at once. Weights and level are drawn anew in each sweep, given the matrix
alone, and then forgotten.

Weights of features in use are independent beta variables given the matrix, and those that no row has are a Poisson
process of intensity `mass c x^-1 (1 - x)^(rows + c - 1)`, c the concentration. Its points above the level are drawn by
thinning, exactly: points of `mass c / x`, which are equally dense in `-log x`, each kept with probability
`(1 - x)^(rows + c - 1)`. From above to below these are the sticks of the semi-ordered construction for c = 1, and the
process of two parameters is served by the same lines. Source: teh2007stick, thibaux2007hierarchical.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ..likelihoods.contract import Likelihood, Rows
from .law import Law
from .state import Outcome, State
from .uncollapsed import Row, drawn_given_matrix, log_density, own_total


class Sticks(NamedTuple):
    """The weights that a sweep draws entries from.

    Attributes:
        log_odds: (P,) of each feature's weight, minus infinity in places that hold none.
        log_weight: (P,) its logarithm.
        fits: () whether all weights above the level found places.
    """

    log_odds: Array
    log_weight: Array
    fits: Array


def slices(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """One sweep over weights, all entries given these, values, the numbers of the likelihood and those of the prior.

    Under the finite prior there is no level: all weights are drawn, `Beta(m_k + mass / features, rows - m_k + 1)`.

    Raises:
        UnsupportedError: a law with a discount.
    """
    if law.discount:
        raise UnsupportedError(
            f"slices draws the weights of processes without a discount; found {law.discount}. The sampler "
            "`uncollapsed` needs no weights, and takes it."
        )
    keys, owners, rows_there = jax.random.split(key, 6), jnp.sum(state.active, axis=0), state.active.shape[0]
    if law.features is not None:
        every = jnp.ones(owners.shape, bool)
        sticks = weights_in_use(keys[0], owners, rows_there, state.mass / law.features, jnp.ones(()), every)
    else:
        used = owners > 0
        sticks = weights_in_use(keys[0], owners, rows_there, jnp.zeros(()), state.concentration, used)
        sticks = with_new(keys[1], sticks, used, rows_there, state, level_below(keys[5], sticks, used))
        state = _with_values(keys[2], state, used, likelihood)
    state = draw_entries(keys[3], rows, state, sticks, likelihood, law)
    none = jnp.zeros((), int)
    state = drawn_given_matrix(jax.random.split(keys[4]), rows, state, likelihood, law)
    return Outcome(state, sticks.fits, none, none)


def weights_in_use(key: Key, owners: Array, rows: int, more: Array, concentration: Array, used: Array) -> Sticks:
    """`Beta(m_k + more, rows - m_k + concentration)` of features in use, from two gamma numbers each."""
    shapes = jnp.stack([owners + more, rows - owners + concentration], axis=1)
    logs = draws.log_gamma(key, jnp.where(used[:, None], shapes, 1.0))
    log_odds = jnp.where(used, logs[:, 0] - logs[:, 1], -jnp.inf)
    return Sticks(log_odds, jax.nn.log_sigmoid(log_odds), jnp.bool_(True))


def with_new(key: Key, sticks: Sticks, used: Array, rows: int, state: State, level: Array) -> Sticks:
    """Joined by the weights of no row that lie above the level, given by its logarithm, in the empty places one after
    the other; `rows` may be more than those of the state."""
    places = len(used)
    rate = state.mass * state.concentration
    empty, room = jnp.argsort(used, stable=True), places - jnp.sum(used)

    def point(carry: tuple) -> tuple:
        tried, depth, number, found = carry
        u = draws.uniform(jax.random.fold_in(key, tried), (2,))
        # (1 - x) of the point that is due, and the gap to the next one.
        kept = jnp.log(u[0]) < (rows + state.concentration - 1.0) * jnp.log(-jnp.expm1(-depth))
        at = jnp.where(kept & (number < room), empty[jnp.minimum(number, places - 1)], places)
        return tried + 1, depth - jnp.log(u[1]) / rate, number + kept, found.at[at].set(depth, mode="drop")

    first = -jnp.log(draws.uniform(jax.random.fold_in(key, 0))) / rate
    start = jnp.ones((), int), first, jnp.zeros((), int), jnp.zeros(places)
    _, _, number, depth = jax.lax.while_loop(lambda carry: carry[1] < -level, point, start)
    new = depth > 0.0
    log_odds = jnp.where(new, -jnp.log(jnp.expm1(jnp.where(new, depth, 1.0))), sticks.log_odds)
    return Sticks(log_odds, jnp.where(new, -depth, sticks.log_weight), number <= room)


def level_below(key: Key, sticks: Sticks, used: Array) -> Array:
    """Logarithm of a uniform number below the least weight in use, or below one."""
    return jnp.min(jnp.where(used, sticks.log_weight, 0.0)) + jnp.log(draws.uniform(key))


def _with_values(key: Key, state: State, used: Array, likelihood: Likelihood) -> State:
    """Values, and weights of rows, from the prior in all places that no row has."""
    keys = jax.random.split(key)
    places, dimensions = state.values.shape
    values = likelihood.draw_values(keys[0], state.numbers, places, dimensions)
    state = state._replace(values=jnp.where(used[:, None], state.values, values))
    if not likelihood.weighted:
        return state
    weights = likelihood.draw_weights(keys[1], state.numbers, (places, state.active.shape[0])).T
    return state._replace(weights=jnp.where(used, state.weights, weights))


def draw_entries(
    key: Key,
    rows: Rows,
    state: State,
    sticks: Sticks,
    likelihood: Likelihood,
    law: Law,
    count: Array | int | None = None,
    sweeps: int = 1,
) -> State:
    """Every entry given all others and the weights, row by row.

    The order is that of weights, not of places: which places new weights are in depends on the entries, and a scan
    whose order depends on what it draws does not leave the law as it is (one row without data had 7 % too many
    features).

    Args:
        count: how many of the rows there are, where others are padding.
        sweeps: over these rows.
    """
    weights, values = state.weights, state.values
    every = state.active.shape[0] if count is None else count
    order = jnp.argsort(-sticks.log_odds)  # places that hold none come last
    held = jnp.sum(~jnp.isneginf(sticks.log_odds))

    def one(step: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        (active, owners), n = carry, step % every
        weight = weights[n] if weights.size else jnp.zeros(0)
        own = jnp.where(active[n], weight, 0.0) if weights.size else active[n].astype(float)
        row = Row(rows.values[n], rows.seen[n], active[n], weight, own @ values, owners - active[n], values)
        row = _draw_row(jax.random.fold_in(key, step), row, order, held, state, sticks, likelihood, law)
        return jnp.asarray(active).at[n].set(row.active), row.others + row.active

    start = state.active, jnp.sum(state.active, axis=0)
    active, _ = jax.lax.fori_loop(0, sweeps * every, one, start)
    return state._replace(active=active)


def _draw_row(
    key: Key, row: Row, order: Array, held: Array, state: State, sticks: Sticks, likelihood: Likelihood, law: Law
) -> Row:
    """The entries of one row, of the first `held` places in the order, by the odds of the weights, of the level and of
    the likelihood."""
    u = draws.uniform(key, row.active.shape)
    threshold = jnp.log(u) - jnp.log1p(-u)

    def one(i: Array, now: Row) -> Row:
        place = order[i]
        own = own_total(now, place)
        without = now.total - now.active[place] * own
        gain = log_density(now, without + own, state, likelihood) - log_density(now, without, state, likelihood)
        if law.features is None:
            gain += _gain_of_level(place, now, sticks)
        drawn = threshold[place] < sticks.log_odds[place] + gain
        return now._replace(active=jnp.asarray(now.active).at[place].set(drawn), total=without + drawn * own)

    return jax.lax.fori_loop(0, held, one, row)


def _gain_of_level(place: Array, row: Row, sticks: Sticks) -> Array:
    """How much likelier the level is where the row has this feature, in logs.

    The level is uniform below the least weight in use, of density one over it. So the first row to have a feature of
    less weight than all in use makes it likelier, by the ratio of the two weights.
    """
    used = (row.others > 0) | jnp.asarray(row.active).at[place].set(False)
    least = jnp.min(jnp.where(used, sticks.log_weight, 0.0))
    return jnp.maximum(least - sticks.log_weight[place], 0.0)
