"""The exact sampler of shards: all draw their rows at once, given the values and the weights of features.

Given values and weights the rows of a matrix are independent, so that shards need nothing of each other while they draw
theirs. The process has infinitely many weights. Each shard has a level of its own, uniform below the least weight that
one of its rows has, and draws entries of the weights above: a finite number, in which several shards may come to take
part at once, for all know their values. The density of a level is that of its own shard's rows, which one level of all
rows would not have: it would change with what other shards do in the meantime.

Weights, levels and values of features that no row has are drawn anew in each iteration, given the matrix alone, and
then forgotten; values given all rows come from sums, as in the synchronous samplers. It mixes slowly: a new feature has
values from the prior. Source: doshivelez2009large, teh2007stick.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Point, Rows
from ..likelihoods.linear_gaussian import LinearGaussian, Sums
from ..samplers.law import Law
from ..samplers.slices import draw_entries, level_below, weights_in_use, with_new
from .given_values import given_all_rows
from .synchronous import Gather, Own, Shared, drawn_given_rows, of_each, prior_state, told


def exact_iteration(
    key: Key, own: Own, shared: Shared, likelihood: Likelihood, law: Law, total: int, inner: int, gather: Gather
) -> tuple[Array, Shared]:
    """The matrices of the own shards and what is shared after `inner` sweeps of all shards, of `total` rows.

    Given weights `w_k` and the level s of its shard an entry has the log odds `log w_k / (1 - w_k)`, and those of the
    likelihood, and of the level: `log(least / w_k)` where `w_k` is less than all weights that the shard's rows have.
    """
    keys = jax.random.split(key, 7)
    levels, state = jnp.full(own.number.shape, -jnp.inf), prior_state(shared)
    if law.features is not None:
        every = jnp.ones(shared.owners.shape, bool)
        sticks = weights_in_use(keys[0], shared.owners, total, shared.mass / law.features, jnp.ones(()), every)
    else:
        used = shared.owners > 0
        sticks = weights_in_use(keys[0], shared.owners, total, jnp.zeros(()), shared.concentration, used)

        def below(active: Array, number: Array) -> Array:
            return level_below(jax.random.fold_in(keys[1], number), sticks, jnp.any(active, axis=0))

        levels = of_each(below, own.active, own.number)
        sticks = with_new(keys[2], sticks, used, total, state, jnp.min(gather(levels)))
        values = likelihood.draw_values(keys[3], shared.numbers, *shared.values.shape)
        shared = shared._replace(values=jnp.where(used[:, None], shared.values, values))

    def swept(active: Array, values: Array, seen: Array, count: Array, number: Array, level: Array) -> Array:
        reached = sticks._replace(log_odds=jnp.where(sticks.log_weight > level, sticks.log_odds, -jnp.inf))
        given = Rows(values, seen), state._replace(active=active, values=shared.values), reached, likelihood, law
        return draw_entries(jax.random.fold_in(keys[4], number), *given, count, inner).active

    active = of_each(swept, own.active, own.values, own.seen, own.counts, own.number, levels)
    own, last = own._replace(active=active), keys[6]
    if isinstance(likelihood, LinearGaussian):
        sums = _filled_sums(keys[5], own, shared, likelihood, gather)
        shared = drawn_given_rows(last, own, sums, shared, likelihood, law, total, gather)
    else:
        shared = given_all_rows(last, own, shared, likelihood, law, total, gather)
    return active, shared._replace(fits=sticks.fits)


def _filled_sums(key: Key, own: Own, shared: Shared, gaussian: LinearGaussian, gather: Gather) -> Sums:
    """Sums over the rows of all shards, what is not seen drawn given all else."""

    def filled(active: Array, values: Array, seen: Array, count: Array, number: Array) -> Array:
        point = Point(active, shared.values, jnp.zeros((0, 0)), shared.numbers)
        found = gaussian.filled(jax.random.fold_in(key, number), Rows(values, seen), point)
        return jnp.where((jnp.arange(len(found)) < count)[:, None], found, 0.0)

    return told(own.active, of_each(filled, own.active, own.values, own.seen, own.counts, own.number), gather)
