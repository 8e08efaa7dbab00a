"""The synchronous sampler of shards: all sample their rows at once, then tell each other sums, then share what is new.

One iteration: sums over rows of all shards give the posterior of values; each shard goes over its rows by the
accelerated pass, several times, with the rows of others as they were told; features that shards found are given
different places; values, precisions and the prior's numbers are drawn from new sums, by all processes alike. The
approximation is that a shard does not see what others change in the meantime: with one shard there is none. In the
first iteration, where there are no features, the first shard alone finds some.

Sums are gathered from all shards and added in the order of shards, so that draws do not depend on how many processes
or devices have them. What travels is `shards (places^2 + places dimensions)` numbers twice an iteration.

Source: doshivelez2009large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....factors.arrays import Array, Key
from ..likelihoods.contract import Numbers, Point, Rows
from ..likelihoods.learned import draw_precision
from ..likelihoods.linear_gaussian import LinearGaussian, Sums, of_values_given, sums_of
from ..samplers.accelerated import drawn_pass
from ..samplers.beliefs import beliefs_of
from ..samplers.law import Law
from ..samplers.passes import MOST, tables_of
from ..samplers.state import State

Gather: TypeAlias = Callable[[Array], Array]  # of (own shards, ...) of this device all shards', in their order


class Shared(NamedTuple):
    """What all shards know.

    Attributes:
        values: (places, dimensions) of features, zeros in places that no row has.
        numbers: of the likelihood.
        mass, concentration: () of the prior.
        owners: (places,) how many rows of all shards have each feature.
        log_likelihood: () of all entries that are seen, given features and values; minus infinity before the first
            iteration.
        fits: () whether there were places for all new features.
    """

    values: Float[Array, "place dimension"]
    numbers: Numbers
    mass: Array
    concentration: Array
    owners: Float[Array, " place"]
    log_likelihood: Array
    fits: Array


class Own(NamedTuple):
    """What a device has of its shards.

    Attributes:
        active: (shards, rows, places) booleans.
        values, seen: (shards, rows, dimensions) the data.
        counts: (shards,) how many of the rows there are.
        number: (shards,) which of all shards they are.
    """

    active: Bool[Array, "shard row place"]
    values: Float[Array, "shard row dimension"]
    seen: Bool[Array, "shard row dimension"]
    counts: Array
    number: Array


Iteration: TypeAlias = Callable[
    [Key, Own, Shared, Any, Law, int, int, Gather], tuple[Array, Shared]
]  # what `iteration` is one of


def iteration(
    key: Key, own: Own, shared: Shared, gaussian: LinearGaussian, law: Law, total: int, inner: int, gather: Gather
) -> tuple[Array, Shared]:
    """The matrices of the own shards and what is shared after `inner` sweeps of all shards, of `total` rows."""
    keys = jax.random.split(key, 3)
    state = prior_state(shared)
    tables, none = tables_of(law, total, state), jnp.where(jnp.arange(MOST + 1) > 0, -jnp.inf, 0.0)

    def filled(active: Array, values: Array, seen: Array, number: Array) -> Array:
        point = Point(active, shared.values, jnp.zeros((0, 0)), shared.numbers)
        return gaussian.filled(jax.random.fold_in(keys[0], number), Rows(values, seen), point)

    full = of_each(filled, own.active, own.values, own.seen, own.number)
    there = jnp.arange(full.shape[1]) < own.counts[:, None]
    full = jnp.where(there[..., None], full, 0.0)
    before = told(own.active, full, gather)
    beliefs = beliefs_of(before, shared.numbers)

    def swept(active: Array, full: Array, seen: Array, count: Array, number: Array) -> tuple[Array, Array, Array]:
        own = tables
        if law.features is None:  # where there are none yet the first shard finds some alone, lest each find the same
            births = jnp.where(jnp.isneginf(shared.log_likelihood) & (number > 0), none, tables.births)
            own = tables._replace(births=births)

        def once(i: Array, carry: tuple) -> tuple:
            beliefs, active, full, fits = carry
            key = jax.random.fold_in(jax.random.fold_in(keys[1], number), i)
            beliefs, found = drawn_pass(key, beliefs, active, full, seen, shared.numbers, own, count)
            return beliefs, found.active, found.full, fits & found.fits

        return jax.lax.fori_loop(0, inner, once, (beliefs, active, full, jnp.bool_(True)))[1:]

    active, full, fits = of_each(swept, own.active, full, own.seen, own.counts, own.number)
    more = jnp.bool_(True)
    if law.features is None:
        active, more = apart(active, jnp.diagonal(before.gram) > 0, own.number, gather)
    after = told(active, full, gather)
    shared = drawn_given_rows(keys[2], own._replace(active=active), after, shared, gaussian, law, total, gather)
    return active, shared._replace(fits=jnp.all(gather(fits)) & more)


def apart(active: Array, known: Array, number: Array, gather: Gather) -> tuple[Array, Array]:
    """Features that shards found, each in a place of its own, and whether there were places for all.

    A place that no shard had may have been taken by several of them, each for another feature. The j-th new feature of
    shard s goes to the free place after those of the shards before it. Source: doshivelez2009large.
    """
    new = jnp.any(active, axis=1) & ~known
    to, fits = places_apart(new, known, number, gather)
    return moved(active, new, to), fits


def places_apart(new: Array, known: Array, number: Array, gather: Gather) -> tuple[Array, Array]:
    """(shards, places) where each feature goes that is new, beyond the end for others; and whether there was room."""
    counts = gather(jnp.sum(new, axis=1))
    free = jnp.argsort(known, stable=True)  # free places first

    def to(new: Array, number: Array) -> Array:
        first = jnp.sum(jnp.where(jnp.arange(counts.size) < number, counts, 0))
        return jnp.where(new, free[jnp.minimum(first + jnp.cumsum(new) - 1, known.size - 1)], known.size)

    return of_each(to, new, number), jnp.sum(counts) <= known.size - jnp.sum(known)


def moved(active: Array, new: Array, to: Array) -> Array:
    """The matrices of shards with what is new where it goes."""

    def one(active: Array, new: Array, to: Array) -> Array:
        return jnp.asarray(active & ~new).at[:, to].set(active, mode="drop")

    return of_each(one, active, new, to)


def drawn_given_rows(
    key: Key, own: Own, sums: Sums, shared: Shared, gaussian: LinearGaussian, law: Law, total: int, gather: Gather
) -> Shared:
    """Values, precisions and the prior's numbers given all shards: alike wherever they are drawn."""
    keys = jax.random.split(key, 4)
    owners = jnp.diagonal(sums.gram)
    used = owners > 0 if law.features is None else jnp.ones(owners.shape, bool)
    values = of_values_given(sums, shared.numbers).draw(keys[0])
    values = jnp.where(used[:, None], values, 0.0)

    def off(active: Array, entries: Array, seen: Array) -> Array:
        left = jnp.where(seen, entries - active.astype(float) @ values, 0.0)
        return jnp.stack([jnp.sum(seen).astype(float), jnp.sum(left**2)])

    number, square = jnp.sum(gather(of_each(off, own.active, own.values, own.seen)), axis=0)
    numbers = {
        "noise_precision": draw_precision(keys[1], gaussian.noise_precision, number, square),
        "value_precision": draw_precision(
            keys[2], gaussian.value_precision, jnp.sum(used) * values.shape[1], jnp.sum(values**2)
        ),
    }
    state = law.update_given(keys[3], owners, total, prior_state(shared))
    noise = numbers["noise_precision"]
    log_likelihood = 0.5 * (number * jnp.log(noise / (2.0 * jnp.pi)) - noise * square)
    return Shared(values, numbers, state.mass, state.concentration, owners, log_likelihood, shared.fits)


def prior_state(shared: Shared) -> State:
    """For the prior, which reads its own numbers alone."""
    nothing = jnp.zeros((0, 0))
    return State(nothing.astype(bool), nothing, nothing, shared.numbers, shared.mass, shared.concentration)


def told(active: Array, full: Array, gather: Gather) -> Sums:
    """Sums over the rows of all shards, added in the order of shards."""
    found = of_each(lambda active, full: sums_of(full, active), active, full)
    return Sums(*(jnp.sum(gather(each), axis=0) for each in found))


def of_each(function: Callable[..., Any], *arrays: Array) -> Any:
    """Of each own shard, one after the other: the same numbers however many of them a device has."""
    return jax.lax.map(lambda each: function(*each), arrays)
