"""Moves that say the same by other features: menus change by those of one feature, whose values are drawn anew.

Four parts of images and their combinations can be told by a feature for each combination as well as by one for each
part: from the one to the other no entry of a menu changes alone. A shear of feature i by j has each category with i
change whether it has j: where i showed both together, it then shows what is left. Values of i are integrated out
before and after, and drawn anew given the new menus, so that nothing need cancel. A shear is its own inverse. Features
are born by a shear of one that no category had, and die by one after which none has them: what they showed is left to
j.
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
        own = jax.random.fold_in(key, i)
        after = _shear(own, rows, now.state, likelihood, integral)
        after = after._replace(fits=now.fits & after.fits)
        again = _birth_or_death(jax.random.fold_in(own, 1), rows, after.state, likelihood, integral)
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


def _with(state: State, menu: Array, feature: Array, values: Array) -> State:
    return state._replace(menu=menu, fired=state.choice[:, :, None] & menu, values=put(state.values, feature, values))


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
    before = _told(keys[1], rows, state.menu, i, state, likelihood, integral)
    after = _told(keys[2], rows, menu, i, state, likelihood, integral)
    categories = jnp.sum(jnp.any(state.choice, axis=0))
    ratio = after.log_density - before.log_density
    ratio += log_columns(menu, categories) - log_columns(state.menu, categories)
    accepted = possible & (jnp.log(u[2]) < ratio)
    found = _with(state, menu, i, after.values)
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), found, state)
    return Step(state, jnp.bool_(True), possible.astype(int), accepted.astype(int))


def _birth_or_death(key: Key, rows: Rows, state: State, likelihood: Likelihood, integral: Integral) -> Step:
    """A feature comes that so many categories have, chosen at random, or one goes; these change whether they have
    another, or nothing else.

    With K features before a birth, `mass / (K + 1)` times the ratio of densities, over the probability of the choice of
    s of L categories, `1 / (L C(L, s))`; a death by its reciprocal. The other feature is one of K or none both ways.
    """
    keys = jax.random.split(key, 4)
    u = draws.uniform(keys[0], (5,))
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
    toggled = state.menu[:, j] ^ (column & ~alone)
    menu = jnp.asarray(state.menu).at[:, j].set(toggled)
    menu = menu.at[:, i].set(column & born)
    # With the feature and without: the state that is of more features is the one with its values integrated out.
    fuller = jnp.where(born, menu, state.menu)
    emptier = jnp.where(born, state.menu, menu)
    most = _told(keys[2], rows, fuller, i, state, likelihood, integral)
    least = _told(keys[3], rows, emptier, i, state, likelihood, integral)
    chosen = jnp.sum(column)
    log_choice = -jnp.log(categories) - _log_binomial(categories, chosen)
    ratio = most.log_density - least.log_density + log_columns(fuller, categories) - log_columns(emptier, categories)
    ratio += jnp.log(state.prior["mass"]) - jnp.log(number + born) - log_choice
    possible = (born | (number > 0)) & (alone | jnp.any(toggled))
    accepted = possible & (jnp.log(u[4]) < jnp.where(born, ratio, -ratio))
    found = _with(state, menu, i, jnp.where(born, most.values, 0.0))
    fits = ~(accepted & born) | jnp.any(~used)
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), found, state)
    return Step(state, fits, possible.astype(int), accepted.astype(int))


def _log_binomial(total: Array, some: Array) -> Array:
    return gammaln(total + 1.0) - gammaln(some + 1.0) - gammaln(total - some + 1.0)
