"""The synchronous sampler of shards for every likelihood without weights: rows given values, values given all rows.

One iteration: each shard goes over its rows given the values of features as they are, with births, and takes other
shards' rows as they were told; features that shards found are given different places, and their values told; then
values and all numbers are drawn given the rows of all shards, of which the likelihood asks for sums alone. Where values
can be integrated out sums are all that is told once, which mixes faster: `synchronous`, for the linear Gaussian model.

What travels is `dimensions` numbers of each shard for each place in turn, since the values of a feature are drawn given
those of all others; where they are drawn by slices, for each density that a slice asks for. All processes compute alike
how many that are: they need processors of one kind. Source: doshivelez2009large.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Point, Rows, totals
from ..samplers.births import births_of_row
from ..samplers.law import Law
from ..samplers.state import State
from ..samplers.uncollapsed import sweep_rows
from .synchronous import Gather, Own, Shared, moved, of_each, places_apart, prior_state


class RowsOfShards(NamedTuple):
    """The rows of this device, one shard after the other; sums are over those of all devices, in the order of shards.

    Attributes:
        values, seen: (shards rows, dimensions), with rows that are none among them, of which nothing is seen.
        shards: how many of this device.
        gather: of all devices.
    """

    values: Float[Array, "row dimension"]
    seen: Bool[Array, "row dimension"]
    shards: int
    gather: Gather

    def total(self, array: Array) -> Array:
        """The sum over all rows of all shards."""
        each = array.reshape((self.shards, -1, *array.shape[1:]))
        return jnp.sum(self.gather(of_each(lambda one: jnp.sum(one, axis=0), each)), axis=0)


class InShard(NamedTuple):
    """The prior of a row among those of all shards.

    Attributes:
        law: the prior of the matrix.
        total: rows of all shards.
        births: () one, or zero for a shard that finds no features for now.
    """

    law: Law
    total: int
    births: Array

    @property
    def features(self) -> int | None:
        """Of the law."""
        return self.law.features

    def of_row(self, row: Array, active: Array, state: State) -> InShard:
        """Rows are exchangeable."""
        return self

    def log_odds(self, others: Array, rows: int, state: State) -> Array:
        """As of the law, by how many of all rows have the feature."""
        return self.law.log_odds(others, self.total, state)

    def rate_alone(self, rows: int, state: State) -> Array:
        """As of the law."""
        return self.births * self.law.rate_alone(self.total, state)


def values_iteration(
    key: Key, own: Own, shared: Shared, likelihood: Likelihood, law: Law, total: int, inner: int, gather: Gather
) -> tuple[Array, Shared]:
    """The matrices of the own shards and what is shared after `inner` sweeps of all shards, of `total` rows."""
    keys = jax.random.split(key)
    begun = ~jnp.isneginf(shared.log_likelihood)
    blank = prior_state(shared)

    def swept(active: Array, values: Array, seen: Array, count: Array, number: Array) -> tuple[Array, Array, Array]:
        # Where there are none yet the first shard finds some alone, lest each find the same.
        law_here = InShard(law, total, jnp.where(begun | (number == 0), 1.0, 0.0))
        elsewhere = shared.owners - jnp.sum(active, axis=0)
        own_key = jax.random.fold_in(keys[0], number)

        def once(n: Array, carry: tuple) -> tuple:
            active, table, fits = carry
            given = Rows(values, seen), blank._replace(active=active, values=table), likelihood, law_here
            found = sweep_rows(jax.random.fold_in(own_key, n), *given, births_of_row, elsewhere, count)
            return found.state.active, found.state.values, fits & found.fits

        return jax.lax.fori_loop(0, inner, once, (active, shared.values, jnp.bool_(True)))

    active, tables, fits = of_each(swept, own.active, own.values, own.seen, own.counts, own.number)
    values, more = shared.values, jnp.bool_(True)
    if law.features is None:
        active, values, more = told_apart(active, tables, shared, own.number, gather)
    own = own._replace(active=active)
    shared = given_all_rows(keys[1], own, shared._replace(values=values), likelihood, law, total, gather)
    return active, shared._replace(fits=jnp.all(gather(fits)) & more)


def told_apart(
    active: Array, tables: Array, shared: Shared, number: Array, gather: Gather
) -> tuple[Array, Array, Array]:
    """Matrices and values of all with the new features of all shards, each in a place of its own; whether they fit.

    A feature that a shard alone had may have died there, and another been born in its place, which other shards did not
    see: it is told from the old one by its values.

    Args:
        active: (shards, rows, places) of the own shards.
        tables: (shards, places, dimensions) the values that each has now.
        shared: from before.
        number: (shards,) which they are.
    """
    known = shared.owners > 0
    other = jnp.any(tables != shared.values, axis=2)
    new = jnp.any(active, axis=1) & (~known | other)
    to, fits = places_apart(new, known, number, gather)

    def placed(table: Array, to: Array) -> Array:
        return jnp.zeros_like(table).at[to].set(table, mode="drop")

    found = jnp.sum(gather(of_each(placed, tables, to)), axis=0)
    return moved(active, new, to), jnp.where(known[:, None], shared.values, found), fits


def given_all_rows(
    key: Key, own: Own, shared: Shared, likelihood: Likelihood, law: Law, total: int, gather: Gather
) -> Shared:
    """Values and all numbers drawn given the rows of all shards: alike wherever they are drawn."""
    keys = jax.random.split(key)
    flat = [array.reshape((-1, *array.shape[2:])) for array in (own.active, own.values, own.seen)]
    rows = RowsOfShards(flat[1], flat[2], len(own.active), gather)
    point = likelihood.update(keys[0], rows, Point(flat[0], shared.values, jnp.zeros((0, 0)), shared.numbers))
    owners = rows.total(flat[0]).astype(float)
    values = point.values
    if law.features is None:
        values = jnp.where((owners > 0)[:, None], values, 0.0)
    entries = likelihood.log_entry(rows.values, totals(point), point.numbers)
    log_likelihood = jnp.sum(rows.total(jnp.where(rows.seen, entries, 0.0)))
    state = law.update_given(keys[1], owners, total, prior_state(shared))
    return Shared(values, point.numbers, state.mass, state.concentration, owners, log_likelihood, shared.fits)
