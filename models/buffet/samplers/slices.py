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
    keys = jax.random.split(key, 5)
    if law.features is not None:
        sticks = _weights_in_use(keys[0], state, state.mass / law.features, jnp.ones(()), jnp.bool_(True))
    else:
        used = jnp.any(state.active, axis=0)
        sticks = _weights_in_use(keys[0], state, jnp.zeros(()), state.concentration, used)
        sticks = _with_new(keys[1], sticks, used, state)
        state = _with_values(keys[2], state, used, likelihood)
    state = _draw_entries(keys[3], rows, state, sticks, likelihood, law)
    none = jnp.zeros((), int)
    state = drawn_given_matrix(jax.random.split(keys[4]), rows, state, likelihood, law)
    return Outcome(state, sticks.fits, none, none)


def _weights_in_use(key: Key, state: State, more: Array, concentration: Array, used: Array) -> Sticks:
    """`Beta(m_k + more, rows - m_k + concentration)` of features in use, from two gamma numbers each."""
    owners, rows = jnp.sum(state.active, axis=0), state.active.shape[0]
    shapes = jnp.stack([owners + more, rows - owners + concentration], axis=1)
    logs = draws.log_gamma(key, jnp.where(jnp.broadcast_to(used, owners.shape)[:, None], shapes, 1.0))
    log_odds = jnp.where(used, logs[:, 0] - logs[:, 1], -jnp.inf)
    return Sticks(log_odds, jax.nn.log_sigmoid(log_odds), jnp.bool_(True))


def _with_new(key: Key, sticks: Sticks, used: Array, state: State) -> Sticks:
    """Joined by the weights of no row that lie above the level, in the empty places one after the other."""
    keys = jax.random.split(key, 3)
    rows, places = state.active.shape
    least = jnp.min(jnp.where(used, sticks.log_weight, 0.0))
    deepest = -(least + jnp.log(draws.uniform(keys[0])))  # the level as `-log x`
    rate = state.mass * state.concentration
    empty = jnp.argsort(used, stable=True)
    room = places - jnp.sum(used)

    def more(carry: tuple) -> Array:
        return carry[1] < deepest

    def point(carry: tuple) -> tuple:
        tried, depth, number, found = carry
        u = draws.uniform(jax.random.fold_in(keys[1], tried), (2,))
        # (1 - x) of the point that is due, and the gap to the next one.
        kept = jnp.log(u[0]) < (rows + state.concentration - 1.0) * jnp.log(-jnp.expm1(-depth))
        at = jnp.where(kept & (number < room), empty[jnp.minimum(number, places - 1)], places)
        return tried + 1, depth - jnp.log(u[1]) / rate, number + kept, found.at[at].set(depth, mode="drop")

    first = -jnp.log(draws.uniform(keys[2])) / rate
    start = jnp.zeros((), int), first, jnp.zeros((), int), jnp.zeros(places)
    _, _, number, depth = jax.lax.while_loop(more, point, start)
    new = depth > 0.0
    log_weight = jnp.where(new, -depth, sticks.log_weight)
    log_odds = jnp.where(new, -jnp.log(jnp.expm1(jnp.where(new, depth, 1.0))), sticks.log_odds)
    return Sticks(log_odds, log_weight, number <= room)


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


def _draw_entries(key: Key, rows: Rows, state: State, sticks: Sticks, likelihood: Likelihood, law: Law) -> State:
    """Every entry given all others and the weights, row by row."""
    weights, values = state.weights, state.values

    def one(n: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        active, owners = carry
        weight = weights[n] if weights.size else jnp.zeros(0)
        own = jnp.where(active[n], weight, 0.0) if weights.size else active[n].astype(float)
        row = Row(rows.values[n], rows.seen[n], active[n], weight, own @ values, owners - active[n], values)
        row = _draw_row(jax.random.fold_in(key, n), row, order, state, sticks, likelihood, law)
        return jnp.asarray(active).at[n].set(row.active), row.others + row.active

    order = jnp.argsort(-sticks.log_odds)
    start = state.active, jnp.sum(state.active, axis=0)
    active, _ = jax.lax.fori_loop(0, rows.values.shape[0], one, start)
    return state._replace(active=active)


def _draw_row(key: Key, row: Row, order: Array, state: State, sticks: Sticks, likelihood: Likelihood, law: Law) -> Row:
    """The entries of one row, by the odds of the weights, of the level and of the likelihood.

    The order is that of weights, not of places: which places new weights are in depends on the entries, and a scan
    whose order depends on what it draws does not leave the law as it is (one row without data had 7 % too many
    features).
    """
    places = row.active.shape[0]
    u = draws.uniform(key, (places,))
    threshold = jnp.log(u) - jnp.log1p(-u)

    def one(i: Array, now: Row) -> Row:
        place = order[i]
        own = own_total(now, place)
        without = now.total - now.active[place] * own
        gain = log_density(now, without + own, state, likelihood) - log_density(now, without, state, likelihood)
        if law.features is None:
            gain += _gain_of_level(place, now, sticks)
        drawn = threshold[place] < sticks.log_odds[place] + gain
        drawn &= ~jnp.isneginf(sticks.log_odds[place])
        return now._replace(active=jnp.asarray(now.active).at[place].set(drawn), total=without + drawn * own)

    return jax.lax.fori_loop(0, places, one, row)


def _gain_of_level(place: Array, row: Row, sticks: Sticks) -> Array:
    """How much likelier the level is where the row has this feature, in logs.

    The level is uniform below the least weight in use, of density one over it. So the first row to have a feature of
    less weight than all in use makes it likelier, by the ratio of the two weights.
    """
    used = (row.others > 0) | jnp.asarray(row.active).at[place].set(False)
    least = jnp.min(jnp.where(used, sticks.log_weight, 0.0))
    return jnp.maximum(least - sticks.log_weight[place], 0.0)
