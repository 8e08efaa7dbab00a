"""Gibbs steps with the values of features integrated out, at the cost of steps given values.

A row depends on all others through the posterior of the values given these. So the posterior is kept: a row is taken
out of it, its entries are drawn by the density of its own data alone, and it is put back: `O(places^2 + places
dimensions)` a row. The law of each entry is that of the collapsed sampler.

Precision and precision times mean are sums over rows and stay exact to rounding; covariance and mean are renewed by
rank-one steps, each of which adds rounding. A row checks the covariance by `precision covariance z = z` and where that
fails both are computed anew from the sums. A row's own features are integrated out before it is taken out: it is then
a row of shared features with more noise, and no step divides by what nearly cancels.

Where numba is installed, the same pass compiled by it is used.
"""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ....engine.support import machine_code
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Active, Likelihood, Numbers, Rows
from ..likelihoods.linear_gaussian import sums_of
from .beliefs import TOLERANCE, Beliefs, beliefs_of, precision_of
from .law import Law
from .passes import MOST, Chances, Pass, RowPass, Tables, index_of, number_drawn, placed, sweep_by
from .state import Outcome, State


def accelerated(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """One sweep, the matrix given the data alone, by the posterior of values given all rows but one.

    `P(z_nk = 1 | z_-nk, X)` is its prior times `N(x_n; z_n m, z_n S z_n^T + 1 / noise)`, m and S mean and covariance of
    values given the other rows.

    Raises:
        UnsupportedError: a likelihood whose values cannot be integrated out.

    Source: doshivelez2009accelerated.
    """
    return sweep_by(fastest_pass(), key, rows, state, likelihood, law)[0]


def accelerated_in_jax(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """The same without numba: what can be mapped over chains."""
    return sweep_by(accelerated_pass, key, rows, state, likelihood, law)[0]


def greedy(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """The same with each entry its likelier value, and the likeliest number of features of a row alone: no sampler,
    but a search whose matrix seldom gets less probable.

    Source: doshivelez2009indian.
    """
    return sweep_by(fastest_pass(), key, rows, state, likelihood, law, greedy=True)[0]


def fastest_pass() -> RowPass:
    """That of numba where it is installed; both draw the same matrix."""
    if importlib.util.find_spec("numba") is None:
        return accelerated_pass
    from ..numba_kernels.accelerated import accelerated_pass as compiled

    return compiled


def accelerated_pass(active: Active, full: Array, numbers: Numbers, tables: Tables, chances: Chances) -> Pass:
    """The rows one after the other, from beliefs computed anew."""
    start = beliefs_of(sums_of(full, active), numbers)
    return pass_from(start, active, full, numbers, tables, chances)[1]


def without_row(beliefs: Beliefs, has: Array, alone: Array, value: Array, numbers: Numbers) -> tuple[Beliefs, Array]:
    """Beliefs given all rows but this one, and the error in their covariance, at most the tolerance.

    With the a features that it has alone integrated out the row has the noise `1 / noise + a / own`, of which more is
    left than what its shared features tell: `S + v v^T / (noise of the row - z v)` for `v = S z`.
    """
    noise, own = numbers["noise_precision"], numbers["value_precision"]
    places, shared = len(has), (has & ~alone).astype(value.dtype)
    sums = beliefs.sums.moved(has.astype(value.dtype), value, -1.0)
    v = jnp.where(alone, 0.0, beliefs.covariance @ shared)
    spare = 1.0 / noise + jnp.sum(alone) / own - shared @ v
    fresh = alone[:, None] | alone[None, :]
    covariance = jnp.where(fresh, jnp.eye(places) / own, beliefs.covariance + jnp.outer(v, v / spare))
    mean = beliefs.mean - v[:, None] * (value - shared @ beliefs.mean) / spare
    rest = Beliefs(sums, covariance, jnp.where(alone[:, None], 0.0, mean))
    error = jnp.max(jnp.abs(precision_of(sums, numbers) @ (covariance @ shared) - shared))
    rest = jax.lax.cond(error <= TOLERANCE, lambda: rest, lambda: beliefs_of(sums, numbers))
    return rest, jnp.where(jnp.isnan(error), jnp.inf, error)


class Row(NamedTuple):
    """A row in the course of its pass: z, `v = S z`, the mean `z m` and variance `1 / noise + z v` of its entries."""

    has: jax.Array
    v: jax.Array
    mean: jax.Array
    variance: jax.Array

    def log_density(self, value: Array) -> Array:
        """Of its entries, but for a constant."""
        return -0.5 * (len(value) * jnp.log(self.variance) + jnp.sum((value - self.mean) ** 2) / self.variance)

    def flipped(self, place: Array, beliefs: Beliefs) -> Row:
        """With one feature more or less."""
        sign = jnp.where(self.has[place], -1.0, 1.0)
        variance = self.variance + 2.0 * sign * self.v[place] + beliefs.covariance[place, place]
        v, mean = self.v + sign * beliefs.covariance[place], self.mean + sign * beliefs.mean[place]
        return Row(self.has.at[place].set(~self.has[place]), v, mean, variance)


def draw_entries(row: Row, rest: Beliefs, value: Array, prior: Array, logistic: Array) -> tuple[Row, Array]:
    """The entries of features that the prior lets the row share, and the log odds of each."""

    def entry(place: Array, carry: tuple[Row, jax.Array]) -> tuple[Row, jax.Array]:
        row, odds = carry
        other = row.flipped(place, rest)
        gain = other.log_density(value) - row.log_density(value)
        log_odds = prior[place] + jnp.where(row.has[place], -gain, gain)
        drawn = jnp.where(jnp.isneginf(log_odds), row.has[place], logistic[place] < log_odds)
        same = drawn == row.has[place]
        row = jax.tree.map(lambda now, new: jnp.where(same, now, new), row, other)
        return row, odds.at[place].set(log_odds)

    return jax.lax.fori_loop(0, len(prior), entry, (row, jnp.zeros(len(prior))))


def draw_births(
    row: Row, value: Array, alone: Array, others: Array, numbers: Numbers, births: Array, gumbel: Array
) -> tuple[Row, Array, Array]:
    """The features that the row has alone, whether there were places for them, and the log weights of their number."""
    own = numbers["value_precision"]
    several = jnp.arange(MOST + 1) / own + row.variance - jnp.sum(alone) / own
    weights = births + jax.vmap(lambda variance: row._replace(variance=variance).log_density(value))(several)
    number = number_drawn(weights, gumbel, alone)
    born, fits = placed(number, others)
    more = (born.astype(int) - alone.astype(int)) / own
    row = Row((row.has & ~alone) | born, row.v + more, row.mean, row.variance + jnp.sum(more))
    return row, fits, weights - weights[0]


def pass_from(
    beliefs: Beliefs,
    active: Active,
    full: Array,
    numbers: Numbers,
    tables: Tables,
    chances: Chances,
    count: Array | None = None,
) -> tuple[Beliefs, Pass]:
    """The rows one after the other, and what is then believed of values, from what is believed given all rows.

    These may be more than the rows given; of the rows given only the first `count` are visited, where it is given.
    """
    rows, places = active.shape

    def one(n: Array, carry: tuple[Beliefs, Pass]) -> tuple[Beliefs, Pass]:
        beliefs, found = carry
        has, value = found.active[n], full[n]
        others = jnp.diagonal(beliefs.sums.gram) - has
        alone = has & (others == 0)
        rest, error = without_row(beliefs, has, alone, value, numbers)
        z = has.astype(value.dtype)
        v = jnp.asarray(rest.covariance @ z)
        row = Row(has, v, z @ rest.mean, z @ v + 1.0 / jnp.asarray(numbers["noise_precision"]))
        row, odds = draw_entries(row, rest, value, tables.odds[index_of(others)], chances.logistic[n])
        births, fits = jnp.zeros(MOST + 1), jnp.bool_(True)
        if tables.births.size:
            row, fits, births = draw_births(row, value, alone, others, numbers, tables.births, chances.gumbel[n])
        gain = row.v / row.variance
        beliefs = Beliefs(
            rest.sums.moved(row.has.astype(value.dtype), value, 1.0),
            rest.covariance - jnp.outer(row.v, gain),
            rest.mean + gain[:, None] * (value - row.mean),
        )
        active, all_odds, all_births = (
            machine_code.put(old, n, new)
            for old, new in ((found.active, row.has), (found.odds, odds), (found.births, births))
        )
        return beliefs, Pass(active, found.fits & fits, all_odds, all_births, jnp.maximum(found.drift, error))

    blank = Pass(active, jnp.bool_(True), jnp.zeros((rows, places)), jnp.zeros((rows, MOST + 1)), jnp.zeros(()))
    return jax.lax.fori_loop(0, rows if count is None else count, one, (beliefs, blank))
