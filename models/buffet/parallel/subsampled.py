"""Sweeps over some of the features alone, for every likelihood: what a sweep costs grows with how many these are.

Which they are is drawn before each sweep by a coin for each place, whatever the state: had it to do with the state, the
way back would have another probability, and the law would not be kept. Features that a row has alone are born and die
in each sweep. Source: doshivelez2009large.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError
from ..likelihoods.contract import Likelihood, Rows
from ..samplers.law import Law
from ..samplers.state import Outcome, State
from ..samplers.uncollapsed import Row, births_of_prior, drawn_given_matrix, log_density, own_total


@dataclasses.dataclass(frozen=True)
class SomeFeatures:
    """A sweep, for `sample_features(sweep=)`: entries of features that a coin chose, given values, and births.

    Args:
        share: the probability that a feature is chosen, above 0 and at most 1.

    Raises:
        ModelError: a share out of range.

    Source: doshivelez2009large.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ModelError(f"SomeFeatures(share=): give a number above 0 and at most 1; found {self.share!r}.")

    def __call__(self, key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
        """One sweep."""
        keys = jax.random.split(key, 4)
        places = state.active.shape[1]
        chosen = draws.uniform(keys[0], (places,)) < self.share
        order = jnp.argsort(~chosen, stable=True)  # those chosen first

        def one(n: Array, carry: tuple) -> tuple:
            active, values, weights, counts, fits = carry
            own_keys = jax.random.split(jax.random.fold_in(keys[1], n), 3)
            weight = jnp.zeros(0)
            if likelihood.weighted:  # those of what the row has not are of their prior, of features born since too
                prior = likelihood.draw_weights(own_keys[2], state.numbers, (places, 1))[:, 0]
                weight = jnp.where(active[n], weights[n], prior)
            own = jnp.where(active[n], weight, 0.0) if weights.size else active[n].astype(float)
            row = Row(rows.values[n], rows.seen[n], active[n], weight, own @ values, counts - active[n], values)
            row = _draw(own_keys[0], row, order, jnp.sum(chosen), state, likelihood, law)
            fitted = jnp.bool_(True)
            if law.features is None:
                row, fitted, _, _ = births_of_prior(own_keys[1], row, state, likelihood, law)
            weights = weights.at[n].set(row.weight) if weights.size else weights
            return active.at[n].set(row.active), row.values, weights, row.others + row.active, fits & fitted

        start = state.active, state.values, state.weights, jnp.sum(state.active, axis=0), jnp.bool_(True)
        active, values, weights, _, fits = jax.lax.fori_loop(0, state.active.shape[0], one, start)
        state = state._replace(active=active, values=values, weights=weights)
        none = jnp.zeros((), int)
        return Outcome(drawn_given_matrix(keys[2:], rows, state, likelihood, law), fits, none, none)


def _draw(key: Key, row: Row, order: Array, number: Array, state: State, likelihood: Likelihood, law: Law) -> Row:
    """The entries of a row for the first so many places of an order, where the prior lets it share their features."""
    odds = law.log_odds(row.others, state.active.shape[0], state)
    u = draws.uniform(key, odds.shape)
    threshold = jnp.log(u) - jnp.log1p(-u)

    def entry(i: Array, now: Row) -> Row:
        place = order[i]
        own = own_total(now, place)
        without = now.total - now.active[place] * own
        gain = log_density(now, without + own, state, likelihood) - log_density(now, without, state, likelihood)
        drawn = jnp.where(jnp.isneginf(odds[place]), now.active[place], threshold[place] < odds[place] + gain)
        return now._replace(active=jnp.asarray(now.active).at[place].set(drawn), total=without + drawn * own)

    return jax.lax.fori_loop(0, number, entry, row)
