"""What a shard does between two messages: sweeps over its rows, given sums of the others' as they were last told.

All that a shard is stands in its `Site`, and a turn is a function of that and of what was told: a turn that was lost
with its worker is done again, elsewhere, with the same result.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.support import machine_code
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Numbers, Point, Rows
from ..likelihoods.learned import draw_precision
from ..likelihoods.linear_gaussian import LinearGaussian, Sums, of_values_given, sums_of
from ..samplers.accelerated import drawn_pass
from ..samplers.beliefs import beliefs_of
from ..samplers.law import Law
from ..samplers.passes import tables_of
from ..samplers.sampler import bucket
from ..samplers.state import State
from .telling import Told, in_places, told_of


class Known(NamedTuple):
    """What the root draws and all others are told: numbers of the likelihood and of the prior."""

    numbers: Numbers
    mass: Array
    concentration: Array


class Plan(NamedTuple):
    """What is the same for all shards: the model, sweeps of a turn, rows and number of all shards; `births`, whether
    rows may have new features in a turn."""

    gaussian: LinearGaussian
    law: Law
    inner: int
    total: int
    every: int
    births: bool = True


class Site(NamedTuple):
    """A shard.

    Attributes:
        number: which of all shards it is.
        values: (rows, dimensions), zeros where not seen, and in rows beyond `count`.
        seen, held: (rows, dimensions) booleans; entries held out are neither seen nor missing.
        count: how many rows there are.
        active: (rows, features) booleans.
        names: (features,) of them.
        full: (rows, dimensions), entries that are not seen as they were last drawn.
        made: how many features it has made.
        log_held: (rows, dimensions), logarithm of the sum of the densities of entries over `kept` turns.
        kept: turns that count for these.
    """

    number: int
    values: np.ndarray
    seen: np.ndarray
    held: np.ndarray
    count: int
    active: np.ndarray
    names: np.ndarray
    full: np.ndarray
    made: int
    log_held: np.ndarray
    kept: int


class Turn(NamedTuple):
    """What came of a turn: the site after it, what it tells, and how many steps were taken, rows times features."""

    site: Site
    told: Told
    steps: float


class Swept(NamedTuple):
    """Arrays of a turn: the matrix, its sums, filled entries, log densities of all of `values`, whether all fitted."""

    active: Array
    sums: Sums
    full: Array
    entries: Array
    fits: Array


def turn(plan: Plan, site: Site, others: Told, known: Known, words: np.ndarray, keep: bool) -> Turn:
    """A turn of a shard.

    Args:
        plan: of all shards.
        site: as it is.
        others: sums over the rows of all other shards, as far as it was told.
        known: by the root.
        words: of the key, as `jax.random.key_data` gives them.
        keep: whether densities of entries that are held out are to count.
    """
    names = np.concatenate([site.names, np.setdiff1d(others.names, site.names)])
    places = bucket(len(names))
    while True:
        active = np.pad(site.active, [(0, 0), (0, places - site.active.shape[1])])
        own = in_places(others, names, places)
        data = site.values, site.seen, np.asarray(site.count)
        swept: Swept = _compiled(plan)(words, active, site.full, *data, own, known)
        if swept.fits:
            break
        places *= 2
    names, made = _named(plan, site, names, np.diagonal(own.gram), active, np.asarray(swept.active))
    told = told_of(names, swept.sums, np.sum(swept.full**2))
    used = np.isin(names, told.names)
    log_held = np.logaddexp(site.log_held, swept.entries) if keep else site.log_held
    after = site._replace(
        active=swept.active[:, used], names=names[used], full=swept.full, made=made, log_held=log_held,
        kept=site.kept + keep,
    )  # fmt: skip
    return Turn(after, told, site.count * plan.inner * (1.0 + len(told.names)))


def _named(
    plan: Plan, site: Site, names: np.ndarray, others: np.ndarray, before: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, int]:
    """Names of all places, and how many features the shard has made.

    A feature that none of the others has, in none of the rows that had it, is a new one in the place of one that is
    gone: others may have heard of that in the meantime.
    """
    new = after.any(axis=0) & (others == 0) & ~(before & after).any(axis=0)
    found = np.full(len(new), -1)
    found[: len(names)] = names
    found[new] = (site.made + np.arange(new.sum())) * plan.every + site.number
    return found, site.made + int(new.sum())


@functools.cache
def _compiled(plan: Plan) -> machine_code.Kernel:
    def one(
        words: jax.Array, active: Array, full: Array, values: Array, seen: Array, count: Array, own: Sums, known: Known
    ) -> Swept:
        return sweeps(jax.random.wrap_key_data(words), plan, active, full, Rows(values, seen), count, own, known)

    return machine_code.Kernel(one)


def sweeps(
    key: Key, plan: Plan, active: Array, full: Array, rows: Rows, count: Array, others: Sums, known: Known
) -> Swept:
    """Missing entries given values, then passes over the rows from what is believed of values given all rows."""
    keys = jax.random.split(key, 4)
    gaussian, numbers = plan.gaussian, known.numbers
    values = of_values_given(added(others, sums_of(full, active)), numbers).draw(keys[0])
    full = gaussian.filled(keys[1], rows, Point(active, values, jnp.zeros((0, 0)), numbers))
    full = jnp.where((jnp.arange(len(full)) < count)[:, None], full, 0.0)
    beliefs = beliefs_of(added(others, sums_of(full, active)), numbers)
    tables = tables_of(plan.law, plan.total, prior_state(known))
    if not plan.births:
        tables = tables._replace(births=jnp.zeros(0))

    def once(i: Array, carry: tuple) -> tuple:
        beliefs, active, full, fits = carry
        key = jax.random.fold_in(keys[2], i)
        beliefs, found = drawn_pass(key, beliefs, active, full, rows.seen, numbers, tables, count)
        return beliefs, found.active, found.full, fits & found.fits

    beliefs, active, full, fits = jax.lax.fori_loop(0, plan.inner, once, (beliefs, active, full, jnp.bool_(True)))
    values = of_values_given(beliefs.sums, numbers).draw(keys[3])
    entries = gaussian.log_entry(rows.values, active.astype(float) @ values, numbers)
    return Swept(active, sums_of(full, active), full, entries, fits)


def known_given(key: Key, plan: Plan, sums: Sums, square: Array, known: Known) -> Known:
    """Precisions, mass and concentration given sums over all rows, by values drawn from these.

    `sum (x - z a)^2 = square - 2 sum a cross + sum a (gram a)`, all entries filled.
    """
    keys = jax.random.split(key, 4)
    owners, dimensions = jnp.diagonal(sums.gram), sums.cross.shape[1]
    used = owners > 0
    values = jnp.where(used[:, None], of_values_given(sums, known.numbers).draw(keys[0]), 0.0)
    left = square - 2.0 * jnp.sum(values * sums.cross) + jnp.sum(values * (sums.gram @ values))
    gaussian, number = plan.gaussian, jnp.asarray(plan.total * dimensions)
    numbers = {
        "noise_precision": draw_precision(keys[1], gaussian.noise_precision, number, jnp.maximum(left, 0.0)),
        "value_precision": draw_precision(
            keys[2], gaussian.value_precision, jnp.sum(used) * dimensions, jnp.sum(values**2)
        ),
    }
    state = plan.law.update_given(keys[3], owners, plan.total, prior_state(known))
    return Known(numbers, state.mass, state.concentration)


@functools.cache
def _root(plan: Plan) -> machine_code.Kernel:
    def one(words: jax.Array, sums: Sums, square: Array, known: Known) -> Known:
        return known_given(jax.random.wrap_key_data(words), plan, sums, square, known)

    return machine_code.Kernel(one)


def renewed(plan: Plan, told: Told, known: Known, words: np.ndarray) -> Known:
    """What the root knows next, from sums over all rows as far as it was told."""
    return _root(plan)(words, in_places(told, told.names, bucket(len(told.names))), np.asarray(told.square), known)


def prior_state(known: Known) -> State:
    """For the prior, which reads its own numbers alone."""
    nothing = jnp.zeros((0, 0))
    return State(nothing.astype(bool), nothing, nothing, known.numbers, known.mass, known.concentration)


def added(one: Sums, other: Sums) -> Sums:
    """Sums over the rows of both."""
    return Sums(one.gram + other.gram, one.cross + other.cross)
