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

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Point, Rows
from ..likelihoods.linear_gaussian import LinearGaussian, Sums
from ..samplers.law import Law
from .given_values import given_all_rows
from .synchronous import Gather, Own, Shared, drawn_given_rows, of_each, told


class Weights(NamedTuple):
    """The weights of features, from which all shards draw.

    Attributes:
        log_odds: (places,) of each weight, minus infinity in places that hold none.
        log_weight: (places,) its logarithm, zero there.
        fits: () whether all weights above the least level found places.
    """

    log_odds: Float[Array, " place"]
    log_weight: Float[Array, " place"]
    fits: Array


def exact_iteration(
    key: Key, own: Own, shared: Shared, likelihood: Likelihood, law: Law, total: int, inner: int, gather: Gather
) -> tuple[Array, Shared]:
    """The matrices of the own shards and what is shared after `inner` sweeps of all shards, of `total` rows.

    Given weights `w_k` and the level s of its shard an entry has the log odds `log w_k / (1 - w_k)`, and those of the
    likelihood, and of the level: `log(least / w_k)` where `w_k` is less than all weights that the shard's rows have.
    """
    keys = jax.random.split(key, 7)
    weights = _weights_in_use(keys[0], shared, law, total)
    levels = jnp.full(own.number.shape, -jnp.inf)
    if law.features is None:
        levels = of_each(lambda active, number: _level(keys[1], weights, active, number), own.active, own.number)
        used = shared.owners > 0
        weights = _with_new(keys[2], weights, used, shared, total, jnp.min(gather(levels)))
        values = likelihood.draw_values(keys[3], shared.numbers, *shared.values.shape)
        shared = shared._replace(values=jnp.where(used[:, None], shared.values, values))

    def swept(active: Array, values: Array, seen: Array, count: Array, number: Array, level: Array) -> Array:
        reached = weights._replace(log_odds=jnp.where(weights.log_weight > level, weights.log_odds, -jnp.inf))
        own_key = jax.random.fold_in(keys[4], number)

        def once(n: Array, active: jax.Array) -> jax.Array:
            drawn = (jax.random.fold_in(own_key, n), n % count, active, Rows(values, seen))
            return active.at[n % count].set(_row(*drawn, reached, shared, likelihood, law))

        return jax.lax.fori_loop(0, inner * count, once, active)

    active = of_each(swept, own.active, own.values, own.seen, own.counts, own.number, levels)
    own, last = own._replace(active=active), keys[6]
    if isinstance(likelihood, LinearGaussian):
        sums = _filled_sums(keys[5], own, shared, likelihood, gather)
        shared = drawn_given_rows(last, own, sums, shared, likelihood, law, total, gather)
    else:
        shared = given_all_rows(last, own, shared, likelihood, law, total, gather)
    return active, shared._replace(fits=weights.fits)


def _filled_sums(key: Key, own: Own, shared: Shared, gaussian: LinearGaussian, gather: Gather) -> Sums:
    """Sums over the rows of all shards, what is not seen drawn given all else."""

    def filled(active: Array, values: Array, seen: Array, count: Array, number: Array) -> Array:
        point = Point(active, shared.values, jnp.zeros((0, 0)), shared.numbers)
        found = gaussian.filled(jax.random.fold_in(key, number), Rows(values, seen), point)
        return jnp.where((jnp.arange(len(found)) < count)[:, None], found, 0.0)

    return told(own.active, of_each(filled, own.active, own.values, own.seen, own.counts, own.number), gather)


def _weights_in_use(key: Key, shared: Shared, law: Law, total: int) -> Weights:
    """`Beta(m_k, rows - m_k + c)` of features that m_k rows have; or of all features under the finite prior."""
    owners = shared.owners
    used = owners > 0 if law.features is None else jnp.ones(owners.shape, bool)
    more, less = jnp.zeros(()), shared.concentration
    if law.features is not None:
        more, less = shared.mass / law.features, jnp.ones(())
    shapes = jnp.stack([owners + more, total - owners + less], axis=1)
    logs = draws.log_gamma(key, jnp.where(used[:, None], shapes, 1.0))
    log_odds = jnp.where(used, logs[:, 0] - logs[:, 1], -jnp.inf)
    return Weights(log_odds, jnp.where(used, jax.nn.log_sigmoid(log_odds), 0.0), jnp.bool_(True))


def _level(key: Key, weights: Weights, active: Array, number: Array) -> Array:
    """Logarithm of a uniform number below the least weight that a row of the shard has, or below one."""
    least = jnp.min(jnp.where(jnp.any(active, axis=0), weights.log_weight, 0.0))
    return least + jnp.log(draws.uniform(jax.random.fold_in(key, number)))


def _with_new(key: Key, weights: Weights, used: Array, shared: Shared, total: int, level: Array) -> Weights:
    """Joined by the weights above the level that no row has, in the empty places one after the other.

    They are a Poisson process of intensity `mass c x^-1 (1 - x)^(rows + c - 1)`: points of `mass c / x`, equally dense
    in `-log x`, each kept with probability `(1 - x)^(rows + c - 1)`.
    """
    places = len(used)
    rate = shared.mass * shared.concentration
    empty, room = jnp.argsort(used, stable=True), places - jnp.sum(used)

    def point(carry: tuple) -> tuple:
        tried, depth, number, found = carry
        u = draws.uniform(jax.random.fold_in(key, tried), (2,))
        kept = jnp.log(u[0]) < (total + shared.concentration - 1.0) * jnp.log(-jnp.expm1(-depth))
        at = jnp.where(kept & (number < room), empty[jnp.minimum(number, places - 1)], places)
        return tried + 1, depth - jnp.log(u[1]) / rate, number + kept, found.at[at].set(depth, mode="drop")

    first = -jnp.log(draws.uniform(jax.random.fold_in(key, 0))) / rate
    start = jnp.ones((), int), first, jnp.zeros((), int), jnp.zeros(places)
    _, _, number, depth = jax.lax.while_loop(lambda carry: carry[1] < -level, point, start)
    new = depth > 0.0
    log_odds = jnp.where(new, -jnp.log(jnp.expm1(jnp.where(new, depth, 1.0))), weights.log_odds)
    return Weights(log_odds, jnp.where(new, -depth, weights.log_weight), number <= room)


def _row(
    key: Key, n: Array, active: Array, rows: Rows, weights: Weights, shared: Shared, likelihood: Likelihood, law: Law
) -> Array:
    """The entries of one row, each given all others, in the order of weights as in `slices`."""
    values, value, seen = shared.values, rows.values[n], rows.seen[n]
    u = draws.uniform(key, (active.shape[1],))
    threshold = jnp.log(u) - jnp.log1p(-u)
    others = jnp.sum(active, axis=0) > active[n]
    none = jnp.isneginf(weights.log_odds)
    order = jnp.argsort(-weights.log_odds)  # places that hold none come last

    def log_density(total: Array) -> Array:
        return jnp.sum(likelihood.log_entry(value, total, shared.numbers), where=seen)

    def entry(i: Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        has, shown = now
        place = order[i]
        without = shown - has[place] * values[place]
        odds = weights.log_odds[place] + log_density(without + values[place]) - log_density(without)
        if law.features is None:
            used = others | has.at[place].set(False)
            least = jnp.min(jnp.where(used, weights.log_weight, 0.0))
            odds += jnp.maximum(least - weights.log_weight[place], 0.0)
        drawn = threshold[place] < odds
        return has.at[place].set(drawn), without + drawn * values[place]

    start = jnp.asarray(active[n]), active[n].astype(float) @ values
    return jax.lax.fori_loop(0, jnp.sum(~none), entry, start)[0]
