"""Gibbs steps with the values of features integrated out, each from the density of all data: the reference.

Every conditional is computed anew from the sums of the data over the rows of each feature, which a step renews by one
row: `O(places^3)` an entry, whatever the number of rows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from ....factors.families.matrices import solve_root
from ..likelihoods.contract import Active, Likelihood, Numbers, Rows
from ..likelihoods.linear_gaussian import Sums, log_marginal_given, of_values_given, sums_of
from .law import Law
from .passes import MOST, Chances, Gaps, Pass, Tables, index_of, number_drawn, placed, sweep_by
from .state import Outcome, State


def collapsed(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """One sweep, the matrix given the data alone: `P(z_nk | z_-nk, X)` from prior odds and `log_marginal`.

    The number of features that a row has alone is drawn from all of 0..MOST at once, so that such features go and come
    by the same step.

    Raises:
        UnsupportedError: a likelihood whose values cannot be integrated out.

    Source: griffiths2011indian.
    """
    return sweep_by(collapsed_pass, key, rows, state, likelihood, law)[0]


def collapsed_pass(
    active: Active, full: Array, numbers: Numbers, tables: Tables, chances: Chances, gaps: Gaps | None = None
) -> Pass:
    """The rows one after the other; there are places beyond the last, that births be weighed as if all fitted."""
    rows, places = active.shape
    more = MOST if tables.births.size else 0
    z = jnp.pad(active, [(0, 0), (0, more)]).astype(full.dtype)
    logistic = jnp.pad(chances.logistic, [(0, 0), (0, more)])
    square = jnp.sum(full**2)

    def evidence(rest: Sums, several: Array, value: Array, seen: Array | None) -> Array:
        """(candidates,) log marginal densities of the columns in which the row is seen, were these its features."""
        given = square, rows, numbers, seen
        return jax.vmap(lambda one: log_marginal_given(rest.moved(one, value, 1.0), *given))(several)

    def one(n: Array, carry: tuple) -> tuple:
        z, sums, odds, births, fits, full = carry
        own, value, seen = z[n], full[n], None if gaps is None else jnp.asarray(gaps.seen)[n]
        others = jnp.sum(z, axis=0) - own
        rest = sums.moved(own, value, -1.0)
        prior = tables.odds[index_of(others)]

        def entry(place: Array, carry: tuple) -> tuple:
            own, found = carry
            logs = evidence(rest, jnp.stack([own.at[place].set(0.0), own.at[place].set(1.0)]), value, seen)
            log_odds = prior[place] + logs[1] - logs[0]
            drawn = jnp.where(jnp.isneginf(log_odds), own[place], logistic[n, place] < log_odds)
            return own.at[place].set(drawn), found.at[place].set(log_odds)

        own, found = jax.lax.fori_loop(0, places, entry, (own, jnp.zeros(places)))
        weights = jnp.zeros(MOST + 1)
        if tables.births.size:
            alone = (own > 0) & (others == 0)
            several = jax.vmap(lambda number: jnp.where(placed(number, others)[0], 1.0, own * ~alone))
            weights = tables.births + evidence(rest, several(jnp.arange(MOST + 1)), value, seen)
            born, _ = placed(number_drawn(weights, chances.gumbel[n], alone), others)
            own = jnp.where(born, 1.0, own * ~alone)
        fits &= ~jnp.any(own[places:] > 0)
        if gaps is not None:
            of_rest = of_values_given(rest, numbers)
            half = solve_root(of_rest.root, own[:, None])[:, 0]
            spread = jnp.sqrt(1.0 / jnp.asarray(numbers["noise_precision"]) + jnp.sum(half**2))
            drawn = half @ of_rest.whitened + spread * jnp.asarray(gaps.normal)[n]
            value = jnp.where(jnp.asarray(gaps.seen)[n], value, drawn)
        sums, births = rest.moved(own, value, 1.0), births.at[n].set(weights - weights[0])
        return z.at[n].set(own), sums, odds.at[n].set(found), births, fits, full.at[n].set(value)

    start = z, sums_of(full, z), jnp.zeros((rows, places)), jnp.zeros((rows, MOST + 1)), jnp.bool_(True), full
    z, _, odds, births, fits, full = jax.lax.fori_loop(0, rows, one, start)
    return Pass(z[:, :places] > 0, fits, odds, births, jnp.zeros(()), None if gaps is None else full)
