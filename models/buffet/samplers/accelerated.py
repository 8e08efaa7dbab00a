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
from ....engine.support.machine_code import put, row
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Active, Likelihood, Numbers, Rows
from ..likelihoods.linear_gaussian import sums_of
from .beliefs import TOLERANCE, Beliefs, beliefs_of, precision_of
from .law import Law
from .passes import (
    MOST,
    Chances,
    Gaps,
    Pass,
    RowPass,
    Tables,
    chances_of,
    gaps_of,
    index_of,
    number_drawn,
    placed,
    sweep_by,
)
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


def accelerated_pass(
    active: Active, full: Array, numbers: Numbers, tables: Tables, chances: Chances, gaps: Gaps | None = None
) -> Pass:
    """The rows one after the other, from beliefs computed anew."""
    start = beliefs_of(sums_of(full, active), numbers)
    return pass_from(start, active, full, numbers, tables, chances, gaps=gaps)[1]


def without_row(beliefs: Beliefs, has: Array, alone: Array, value: Array, numbers: Numbers) -> tuple[Beliefs, Array]:
    """Beliefs given all rows but this one, and the error in their covariance.

    With the a features that it has alone integrated out the row has the noise `1 / noise + a / own`, of which more is
    left than what its shared features tell: `S + v v^T / (noise of the row - z v)` for `v = S z`.
    """
    noise, own = numbers["noise_precision"], numbers["value_precision"]
    places, shared = len(has), (has & ~alone).astype(value.dtype)
    sums = beliefs.sums.moved(has.astype(value.dtype), value, -1.0)
    v = jnp.where(alone, 0.0, _times(beliefs.covariance, shared))
    spare = 1.0 / noise + jnp.sum(alone) / own - jnp.sum(shared * v)
    fresh = alone[:, None] | alone[None, :]
    covariance = jnp.where(fresh, jnp.eye(places) / own, beliefs.covariance + v[:, None] * (v / spare)[None, :])
    mean = beliefs.mean - v[:, None] * (value - _times(beliefs.mean.T, shared)) / spare
    rest = Beliefs(sums, covariance, jnp.where(alone[:, None], 0.0, mean))
    error = jnp.max(jnp.abs(_times(precision_of(sums, numbers), _times(covariance, shared)) - shared))
    return rest, jnp.where(jnp.isnan(error), jnp.inf, error)


def _times(matrix: Array, vector: Array) -> jax.Array:
    """The product as a sum, which is compiled into the loop over rows."""
    return jnp.sum(jnp.asarray(matrix) * jnp.asarray(vector), axis=1)


class Row(NamedTuple):
    """A row in the course of its pass: z, `v = S z`, the mean `z m` and variance `1 / noise + z v` of its entries."""

    has: jax.Array
    v: jax.Array
    mean: jax.Array
    variance: jax.Array

    def log_density(self, value: Array, seen: Array | None) -> Array:
        """Of its entries that are seen, of all where None, but for a constant."""
        return _log_density(*_squares(value - self.mean, seen), self.variance)

    def flipped(self, place: Array, beliefs: Beliefs) -> Row:
        """With one feature more or less."""
        covariance = row(beliefs.covariance, place)
        sign = jnp.where(row(self.has, place), -1.0, 1.0)
        variance = self.variance + 2.0 * sign * row(self.v, place) + row(covariance, place)
        v, mean = self.v + sign * covariance, self.mean + sign * row(beliefs.mean, place)
        return Row(self.has ^ (jnp.arange(len(self.has)) == place), v, mean, variance)


def _squares(left: Array, seen: Array | None) -> tuple[Array, Array | int]:
    """Sum and number of the squares of what is seen."""
    if seen is None:
        return jnp.sum(left**2), len(left)
    return jnp.sum(jnp.where(seen, left, 0.0) ** 2), jnp.sum(seen)


def _log_density(square: Array, number: Array | int, variance: Array) -> Array:
    return -0.5 * (number * jnp.log(variance) + square / variance)


def draw_entries(
    one: Row, rest: Beliefs, value: Array, prior: Array, logistic: Array, seen: Array | None = None
) -> tuple[Row, Array]:
    """The entries of features that the prior lets the row share, and the log odds of each."""
    index = jnp.arange(len(prior))
    last = jnp.max(jnp.where(jnp.isneginf(prior), 0, index + 1))  # places from here on are not drawn

    def entry(carry: tuple[Array, Row, Array, Array]) -> tuple[Array, Row, Array, Array]:
        place, one, now, odds = carry
        other = one.flipped(place, rest)
        then, has, before = other.log_density(value, seen), row(one.has, place), row(prior, place)
        log_odds = before + jnp.where(has, now - then, then - now)
        drawn = jnp.where(jnp.isneginf(before), has, row(logistic, place) < log_odds)
        one, now = jax.tree.map(lambda new, old: jnp.where(drawn == has, old, new), (other, then), (one, now))
        return place + 1, one, now, jnp.where(index == place, log_odds, odds)

    start = jnp.zeros((), int), one, one.log_density(value, seen), jnp.full(len(prior), -jnp.inf)
    _, one, _, odds = jax.lax.while_loop(lambda carry: carry[0] < last, entry, start)
    return one, odds


def draw_births(
    one: Row,
    value: Array,
    alone: Array,
    others: Array,
    numbers: Numbers,
    births: Array,
    gumbel: Array,
    seen: Array | None = None,
) -> tuple[Row, Array, Array]:
    """The features that the row has alone, whether there were places for them, and the log weights of their number."""
    own = numbers["value_precision"]
    several = jnp.arange(MOST + 1) / own + one.variance - jnp.sum(alone) / own
    weights = births + _log_density(*_squares(value - one.mean, seen), several)
    born, fits = placed(number_drawn(weights, gumbel, alone), others)
    more = (born.astype(int) - alone.astype(int)) / own
    return (
        Row((one.has & ~alone) | born, one.v + more, one.mean, one.variance + jnp.sum(more)),
        fits,
        weights - weights[0],
    )


class Course(NamedTuple):
    """A pass on its way.

    Attributes:
        next: the row that is visited next.
        drifted: whether the covariance was found to be off at that row, which then was not visited.
        renewed: whether it was computed anew for that row, so that there is nothing better.
        beliefs: of values, given all rows.
        found: what was drawn.
    """

    next: Array
    drifted: Array
    renewed: Array
    beliefs: Beliefs
    found: Pass


def pass_from(
    beliefs: Beliefs,
    active: Active,
    full: Array,
    numbers: Numbers,
    tables: Tables,
    chances: Chances,
    count: Array | None = None,
    gaps: Gaps | None = None,
) -> tuple[Beliefs, Pass]:
    """The rows one after the other, and what is then believed of values, from what is believed given all rows.

    These may be more than the rows given; of the rows given only the first `count` are visited, where it is given.
    """
    rows, places = active.shape
    last = jnp.asarray(rows if count is None else count)

    def go_on(course: Course) -> Course:
        anew = beliefs_of(course.beliefs.sums, numbers)
        fresh = jax.tree.map(lambda new, old: jnp.where(course.drifted, new, old), anew, course.beliefs)
        course = course._replace(beliefs=fresh, renewed=course.drifted, drifted=jnp.bool_(False))
        return _until_drift(course, active, full, numbers, tables, chances, last, gaps)

    blank = Pass(active, jnp.bool_(True), jnp.zeros((rows, places)), jnp.zeros((rows, MOST + 1)), jnp.zeros(()))
    if gaps is not None:
        blank = blank._replace(full=full)
    start = Course(jnp.zeros((), int), jnp.bool_(False), jnp.bool_(False), beliefs, blank)
    end = jax.lax.while_loop(lambda course: course.next < last, go_on, start)
    return end.beliefs, end.found


def drawn_pass(
    key: Key, beliefs: Beliefs, active: Active, full: Array, seen: Array, numbers: Numbers, tables: Tables, count: Array
) -> tuple[Beliefs, Pass]:
    """`pass_from` by the random numbers of this key; what of the first `count` rows is not seen is drawn anew."""
    given = beliefs, active, full, numbers, tables, chances_of(key, *active.shape), count

    def whole() -> tuple[Beliefs, Pass]:
        beliefs, found = pass_from(*given)
        return beliefs, found._replace(full=full)

    there = jnp.all(seen, axis=1) | (jnp.arange(len(seen)) >= count)
    return jax.lax.cond(jnp.all(there), whole, lambda: pass_from(*given, gaps_of(key, seen)))


@machine_code.native
def _until_drift(
    course: Course,
    active: Active,
    full: Array,
    numbers: Numbers,
    tables: Tables,
    chances: Chances,
    last: Array,
    gaps: Gaps | None,
) -> Course:
    """Rows up to the last, or to one where the covariance is off."""

    def visit(course: Course) -> Course:
        n, beliefs, found = course.next, course.beliefs, course.found
        has, value = row(active, n), row(full, n)  # as they were: of what is written nothing is read, lest it be copied
        seen = None if gaps is None else row(gaps.seen, n)
        others = jnp.diagonal(beliefs.sums.gram) - has
        alone = has & (others == 0)
        rest, error = without_row(beliefs, has, alone, value, numbers)
        drifted = (error > TOLERANCE) & ~course.renewed
        z = has.astype(value.dtype)
        v = _times(rest.covariance, z)
        one = Row(has, v, _times(rest.mean.T, z), jnp.sum(z * v) + 1.0 / jnp.asarray(numbers["noise_precision"]))
        one, odds = draw_entries(one, rest, value, tables.odds[index_of(others)], row(chances.logistic, n), seen)
        births, fits = jnp.zeros(MOST + 1), jnp.bool_(True)
        if tables.births.size:
            gumbel = row(chances.gumbel, n)
            one, fits, births = draw_births(one, value, alone, others, numbers, tables.births, gumbel, seen)
        made = value
        if gaps is not None:
            drawn = one.mean + jnp.sqrt(one.variance) * row(gaps.normal, n)
            made = jnp.where(row(gaps.seen, n), value, drawn)
        after = with_row(rest, one, made)
        beliefs = jax.tree.map(lambda new, old: jnp.where(drifted, old, new), after, beliefs)
        now = put(found.active, n, jnp.where(drifted, has, one.has))
        fits, drift = found.fits & (fits | drifted), jnp.maximum(found.drift, error)
        written = None if found.full is None else put(found.full, n, jnp.where(drifted, value, made))
        found = Pass(now, fits, put(found.odds, n, odds), put(found.births, n, births), drift, written)
        return Course(n + jnp.where(drifted, 0, 1), drifted, jnp.bool_(False), beliefs, found)

    return jax.lax.while_loop(lambda course: (course.next < last) & ~course.drifted, visit, course)


def with_row(rest: Beliefs, one: Row, value: Array) -> Beliefs:
    """What is believed given this row too."""
    gain = one.v / one.variance
    return Beliefs(
        rest.sums.moved(one.has.astype(value.dtype), value, 1.0),
        rest.covariance - one.v[:, None] * gain[None, :],
        rest.mean + gain[:, None] * (value - one.mean),
    )
