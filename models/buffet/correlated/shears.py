"""Moves that say the same by other features: menus change by those of one feature, whose values are drawn anew.

Four parts of images and their combinations can be told by a feature for each combination as well as by one for each
part: from the one to the other no entry of a menu changes alone. A shear of feature i by j has each category with i
change whether it has j: where i showed both together, it then shows what is left. A shear is its own inverse. Features
are born by a shear of one that no category had, and die by one after which none has them: what they showed is left to
j.

What j shows in few rows is too rough for the many that it gets. So values of both are drawn anew: those of j given what
a short Gibbs run for the new menus, from nothing, made of i, and those of i given these. With `T_i` the density of the
data with i integrated out, the ratio has `T_i(a_j) T_j(b_i) / L(a_j, b_i)` for the new menus, b the end of that run,
over the same for the old ones, of a run of their own: neither run depends on the values that are replaced. Source:
jain2004split.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from ....engine.sampling.augmented import normal_above
from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.binary_values import BinaryValues
from ..likelihoods.contract import Likelihood, Numbers, Rows, totals
from ..likelihoods.exponential_gaussian import ExponentialGaussian
from ..likelihoods.gaussian_noise import LOG_2PI
from ..likelihoods.linear_gaussian import LinearGaussian
from .menus import first, log_columns, one_of
from .state import Row, State, Step, put

SCANS = 8  # of the short run: after two, half of the chains of blocks kept sums of two features as one
SHEARS = 8  # that are tried in a sweep, and as many births or deaths


class Integral(Protocol):
    """The values of one feature integrated out, given what its rows show of all others."""

    def __call__(
        self, key: Key, rows: Rows, has: Array, without: Array, numbers: Numbers, likelihood: Likelihood
    ) -> tuple[Array, Array]:
        """(dimensions,) values from their law given all else, and the log of the mean over their prior of the density
        of all rows over that without the feature."""
        ...


def gaussian_integral(
    key: Key, rows: Rows, has: Array, without: Array, numbers: Numbers, likelihood: Likelihood
) -> tuple[Array, Array]:
    """Of Gaussian values with Gaussian noise."""
    noise, own = numbers["noise_precision"], numbers["value_precision"]
    mine = rows.seen & has[:, None]
    precision = own + noise * jnp.sum(mine, axis=0)
    mean = noise * jnp.sum(rows.values - without, axis=0, where=mine) / precision
    values = mean + draws.normal(key, mean.shape) / jnp.sqrt(precision)
    return values, 0.5 * jnp.sum(jnp.log(own / precision) + precision * mean**2)


def exponential_integral(
    key: Key, rows: Rows, has: Array, without: Array, numbers: Numbers, likelihood: Likelihood
) -> tuple[Array, Array]:
    """Of exponential values with Gaussian noise: normal laws cut off below zero, or the prior where nothing is seen."""
    keys = jax.random.split(key)
    noise, rate = numbers["noise_precision"], numbers["rate"]
    mine = rows.seen & has[:, None]
    number = jnp.sum(mine, axis=0)
    root = jnp.sqrt(noise * jnp.maximum(number, 1))
    z = (noise * jnp.sum(rows.values - without, axis=0, where=mine) - rate) / root  # mean over deviation
    drawn = jnp.maximum((z + normal_above(keys[0], -z)) / root, 0.0)
    prior = draws.exponential(keys[1], drawn.shape) / rate
    logs = jnp.log(rate) + 0.5 * (z**2 + LOG_2PI) - jnp.log(root) + jax.scipy.special.log_ndtr(z)
    return jnp.where(number > 0, drawn, prior), jnp.sum(logs, where=number > 0)


def binary_integral(
    key: Key, rows: Rows, has: Array, without: Array, numbers: Numbers, likelihood: Likelihood
) -> tuple[Array, Array]:
    """Of values that are 0 or 1."""
    more = likelihood.log_entry(rows.values, without + 1.0, numbers)
    gain = more - likelihood.log_entry(rows.values, without, numbers)
    gain = jnp.sum(gain, axis=0, where=rows.seen & has[:, None])
    one, zero = jnp.log(numbers["share"]) + gain, jnp.log1p(-numbers["share"])
    values = draws.uniform(key, gain.shape) < jax.nn.sigmoid(one - zero)
    return values.astype(float), jnp.sum(jnp.logaddexp(one, zero))


@functools.singledispatch
def integral_of(likelihood: Likelihood) -> Integral | None:
    """How values of a feature are integrated out; None where they cannot be, and nothing is sheared."""
    return None


@integral_of.register
def _(likelihood: LinearGaussian) -> Integral | None:
    return gaussian_integral


@integral_of.register
def _(likelihood: ExponentialGaussian) -> Integral | None:
    return exponential_integral


@integral_of.register
def _(likelihood: BinaryValues) -> Integral | None:
    return binary_integral


class Both(NamedTuple):
    """Two features with these menus.

    Attributes:
        one, other: (dimensions,) values of the first, integrated out, and of the second.
        log_density: () the logarithm of `T_i T_j / L`.
    """

    one: Array
    other: Array
    log_density: Array


class Told(NamedTuple):
    """What rows show of all features but one, and its values.

    Attributes:
        values: (dimensions,) of that feature, drawn given all else.
        log_density: () of all rows, these values integrated out; without the prior of menus.
    """

    values: Array
    log_density: Array


def sheared(key: Key, rows: Rows, state: State, likelihood: Likelihood) -> Step:
    """A few shears, births and deaths, each accepted by its ratio. For rows of one category each."""
    integral = integral_of(likelihood)
    none = jnp.zeros((), int)
    begin = Step(state, jnp.bool_(True), none, none)
    if integral is None:
        return begin

    def one(i: Array, now: Step) -> Step:
        own = jax.random.split(jax.random.fold_in(key, i))
        after = _shear(own[0], rows, now.state, likelihood, integral)
        after = after._replace(fits=now.fits & after.fits)
        again = _birth_or_death(own[1], rows, after.state, likelihood, integral)
        proposed = now.proposed + after.proposed + again.proposed
        return Step(again.state, after.fits & again.fits, proposed, now.accepted + after.accepted + again.accepted)

    return jax.lax.fori_loop(0, SHEARS, one, begin)


def _told(
    key: Key, rows: Rows, menu: Array, feature: Array, state: State, likelihood: Likelihood, integral: Integral
) -> Told:
    """With these menus."""
    now = state._replace(menu=menu, fired=state.choice[:, :, None] & menu)
    has = now.active[:, feature]
    without = totals(now.point) - has[:, None] * state.values[feature]
    values, evidence = integral(key, rows, has, without, state.numbers, likelihood)
    return Told(values, evidence + jnp.sum(Row(*rows).log_density(without, state.numbers, likelihood)))


def _both(
    key: Key, rows: Rows, menu: Array, places: tuple[Array, Array], as_is: Array, state: State, likelihood: Likelihood,
    integral: Integral,
) -> Both:  # fmt: skip
    """Of the features in these places; `as_is`: the second with the values that it has, else with others."""
    i, j = places
    nothing = jnp.zeros(state.values.shape[1])
    blank = state._replace(values=put(put(state.values, i, nothing), j, nothing))

    def told(number: Array, feature: Array, now: State) -> Told:
        return _told(jax.random.fold_in(key, number), rows, menu, feature, now, likelihood, integral)

    def scan(number: Array, now: State) -> State:
        feature = jnp.where(number % 2 == 0, j, i)
        return now._replace(values=put(now.values, feature, told(number, feature, now).values))

    run = jax.lax.fori_loop(0, 2 * SCANS, scan, blank)
    second = told(jnp.asarray(2 * SCANS), j, run)
    other = jnp.where(as_is, state.values[j], second.values)
    run = run._replace(values=put(run.values, j, other))
    now = run._replace(menu=menu, fired=state.choice[:, :, None] & menu)
    there = jnp.sum(Row(*rows).log_density(totals(now.point), state.numbers, likelihood))
    first_one = told(jnp.asarray(2 * SCANS + 1), i, run)
    return Both(first_one.values, other, first_one.log_density + second.log_density - there)


def _with(state: State, menu: Array, places: tuple[Array, Array], values: tuple[Array, Array]) -> State:
    """With these menus, and values in two places; in the first where they are the same."""
    table = put(put(state.values, places[1], values[1]), places[0], values[0])
    return state._replace(menu=menu, fired=state.choice[:, :, None] & menu, values=table)


def _shear(key: Key, rows: Rows, state: State, likelihood: Likelihood, integral: Integral) -> Step:
    """Menus of one feature added to those of another, modulo two, in a pair of which each is as likely."""
    keys = jax.random.split(key, 3)
    u = draws.uniform(keys[0], (3,))
    used = jnp.any(state.menu, axis=0)
    i = one_of(u[0], used)
    j = one_of(u[1], put(used, i, False))
    column = state.menu[:, j] ^ state.menu[:, i]
    menu = jnp.asarray(state.menu).at[:, j].set(column)
    possible = (jnp.sum(used) > 1) & jnp.any(column)
    before = _both(keys[1], rows, state.menu, (i, j), jnp.bool_(True), state, likelihood, integral)
    after = _both(keys[2], rows, menu, (i, j), jnp.bool_(False), state, likelihood, integral)
    categories = jnp.sum(jnp.any(state.choice, axis=0))
    ratio = after.log_density - before.log_density
    ratio += log_columns(menu, categories) - log_columns(state.menu, categories)
    accepted = possible & (jnp.log(u[2]) < ratio)
    found = _with(state, menu, (i, j), (after.one, after.other))
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), found, state)
    return Step(state, jnp.bool_(True), possible.astype(int), accepted.astype(int))


class Change(NamedTuple):
    """A birth or death.

    Attributes:
        born: () whether it is a birth.
        places: of the feature, and of that which is sheared by it.
        alone: () whether none is.
        fuller, emptier: (L, P) menus with the feature and without.
        possible: () whether there is such a move.
        fits: () whether there is a place for a birth.
        log_choice: () log probability of the categories of the feature, were it born.
    """

    born: Array
    places: tuple[Array, Array]
    alone: Array
    fuller: Array
    emptier: Array
    possible: Array
    fits: Array
    log_choice: Array


def _change(key: Key, state: State) -> Change:
    """A feature that so many categories have, chosen at random, or one that goes; and one of the others, or none."""
    keys = jax.random.split(key)
    u = draws.uniform(keys[0], (4,))
    used, there = jnp.any(state.menu, axis=0), jnp.any(state.choice, axis=0)
    born, number, categories = u[0] < 0.5, jnp.sum(used), jnp.sum(there)
    i = jnp.where(born, first(~used), one_of(u[1], used))
    size = 1 + jnp.floor(u[2] * categories).astype(int)
    order = jnp.argsort(jnp.where(there, draws.uniform(keys[1], there.shape), 2.0))
    some = jnp.asarray(jnp.zeros_like(there)).at[order].set(jnp.arange(len(there)) < size)
    column = jnp.where(born, some, state.menu[:, i])
    others = put(used, i, False)
    rank = jnp.floor(u[3] * (jnp.sum(others) + 1)).astype(int)  # one more than there are: none of them
    j, alone = jnp.argmax(others & (jnp.cumsum(others) == rank + 1)), rank == jnp.sum(others)
    j = jnp.where(alone, i, j)
    toggled = state.menu[:, j] ^ (column & ~alone)
    menu = jnp.asarray(state.menu).at[:, j].set(toggled).at[:, i].set(column & born)
    possible = (born | (number > 0)) & (alone | jnp.any(toggled))
    log_choice = -jnp.log(categories) - _log_binomial(categories, jnp.sum(column))
    both = jnp.where(born, menu, state.menu), jnp.where(born, state.menu, menu)
    return Change(born, (i, j), alone, *both, possible, ~born | jnp.any(~used), log_choice)


def _birth_or_death(key: Key, rows: Rows, state: State, likelihood: Likelihood, integral: Integral) -> Step:
    """A feature comes or goes, and others change by it.

    With K features before a birth, `mass / (K + 1)` times the ratio of densities, over the probability of the choice of
    s of L categories, `1 / (L C(L, s))`; a death by its reciprocal. The other feature is one of K or none both ways.
    Without the feature the values of the other are integrated out; where none is, those of the feature.
    """
    keys = jax.random.split(key, 5)
    now = _change(keys[0], state)
    (i, j), categories = now.places, jnp.sum(jnp.any(state.choice, axis=0))
    most = _both(keys[1], rows, now.fuller, (i, j), ~now.born, state, likelihood, integral)
    only = _told(keys[2], rows, now.fuller, i, state, likelihood, integral)
    least = _told(keys[3], rows, now.emptier, j, state, likelihood, integral)
    ratio = jnp.where(now.alone, only.log_density, most.log_density) - least.log_density
    ratio += log_columns(now.fuller, categories) - log_columns(now.emptier, categories) - now.log_choice
    number = jnp.sum(jnp.any(now.fuller, axis=0))
    ratio += jnp.log(state.prior["mass"]) - jnp.log(number)
    accepted = now.possible & (jnp.log(draws.uniform(keys[4])) < jnp.where(now.born, ratio, -ratio))
    one = jnp.where(now.born, jnp.where(now.alone, only.values, most.one), 0.0)
    other = jnp.where(now.born, most.other, least.values)
    found = _with(state, jnp.where(now.born, now.fuller, now.emptier), (i, j), (one, other))
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), found, state)
    return Step(state, now.fits | ~accepted, now.possible.astype(int), accepted.astype(int))


def _log_binomial(total: Array, some: Array) -> Array:
    return gammaln(total + 1.0) - gammaln(some + 1.0) - gammaln(total - some + 1.0)
