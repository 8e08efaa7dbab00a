"""The same sweeps with the rows of the data in shards: given factors rows are independent, and sums are told.

What is small, loadings, factors and numbers, all have, and change alike. Of its rows a shard tells `X Y^T` and sums of
squares; it draws their loadings where these are integrated out of their activities; then it tells its part of
`G^T noise Y`, and draws its missing entries. What shards tell is gathered and added in their order, and each shard is
worked on by itself, so that the draws are the same however many devices have them, and those of the sweep of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..state import Numbers, Observed, State, Switches
from .bits import normals, seed_of, uniforms
from .columns import draw_columns, prior_log_odds
from .factors import Sums, energies, heights, sums_of
from .hyper import draw_hyper
from .parallel import replace_own
from .rows import Given, Rows, gain_of, given_of, loadings_of, rows_of, with_factor, without
from .urn import draw_scores


class Own(NamedTuple):
    """What a device has of its shards.

    Attributes:
        values: (shards, rows, samples), 0 where missing and in rows that are none.
        full: the same with drawn values where missing.
        seen: (shards, rows, samples) booleans, true in rows that are none.
        row: (shards, rows) which of all rows they are; below zero for rows that are none.
        first: (shards,) how many entries are missing in the shards before.
    """

    values: Any
    full: Any
    seen: Any
    row: Any
    first: Any


class Told(NamedTuple):
    """What a sweep leaves: (shards, rows, samples) complete values of the device, the state, and whether it fits."""

    full: Any
    state: State
    fits: Any


def of_each(function: Callable[..., Any], *arrays: Any) -> Any:
    """Of each own shard, one after the other: the same numbers however many of them a device has."""
    return lax.map(lambda each: function(*each), arrays)


def sweep(
    key: Any, state: State, own: Own, place: Any, numbers: Numbers, bound: Any, switches: Switches,
    integrated: bool, gather: Callable[[Any], Any],
) -> Told:  # fmt: skip
    """One sweep, as `parallel`, or as `collapsed` where loadings are `integrated`.

    Args:
        key: of `jax.random`.
        state: a point of a chain, but for its missing entries, which are in `own.full`.
        own: of this device.
        place: (D,) where each row is among the rows of all shards, one shard after the other.
        numbers, bound, switches: as of `parallel`; there are no known factors.
        integrated: whether loadings are integrated out of their activities.
        gather: of (own shards, ...) all shards', in their order.
    """
    seed = seed_of(key)

    def every(part: Any) -> Any:
        """(D, ...) of all rows."""
        whole = gather(part)
        return whole.reshape((-1, *whole.shape[2:]))[place]

    cross, square = of_each(lambda full: sums_of(full, state.factor)._replace(gram=jnp.zeros(0))[::2], own.full)
    sums = Sums(every(jnp.swapaxes(cross, 1, 2)).T, state.factor @ state.factor.T, every(square))
    tried = min(switches.rows, len(place)) if switches.sparsity == "buffet" else 0
    hyper = draw_hyper(seed, state, energies(sums, state.loading), numbers, switches, tried)
    state, nothing = hyper.state, Observed(jnp.zeros((0, 0)), None, None, jnp.zeros((0, len(place))))
    if integrated:
        loading = _integrated(seed, state, sums, hyper.log_odds, own, bound, switches, gather, every)
    else:
        loading = draw_columns(seed, state, sums, hyper.log_odds, nothing, bound, switches)
    state, fits = state._replace(loading=loading), jnp.bool_(True)
    if tried:
        state, fits, _, _ = replace_own(seed, hyper._replace(state=state), sums, numbers, switches)
    part = of_each(lambda full, row: heights(*_of_rows(state, row), full), own.full, own.row)
    height = gather(part).sum(0)
    state = state._replace(factor=draw_scores(seed, state, height, numbers, jnp.maximum(bound, state.count), switches))

    def filled(values: Any, seen: Any, row: Any, first: Any) -> Any:
        loading, noise = _of_rows(state, row)
        number = jnp.maximum(first + jnp.cumsum(~seen.ravel()) - 1, 0).reshape(seen.shape)
        drawn = loading.T @ state.factor + normals(seed, "missing", 0, number) / jnp.sqrt(noise)[:, None]
        return jnp.where(seen, values, drawn)

    return Told(of_each(filled, own.values, own.seen, own.row, own.first), state, fits)


def _of_rows(state: State, row: Any) -> tuple[Any, Any]:
    """(P, rows) loadings and (rows,) noise of some rows, zeros and ones where there are none (a number below zero)."""
    there = row >= 0
    at = jnp.maximum(row, 0)
    return jnp.where(there, state.loading[:, at], 0.0), jnp.where(there, state.noise[at], 1.0)


def _integrated(
    seed: Any, state: State, sums: Sums, log_odds: Any, own: Own, bound: Any, switches: Switches,
    gather: Callable[[Any], Any], every: Callable[[Any], Any],
) -> Any:  # fmt: skip
    """(P, D) loadings as of `rows.draw_rows`, each shard those of its rows; they tell whether a factor has any."""
    whole = given_of(state, sums, switches)
    gram, there = whole.gram, own.row >= 0
    at = jnp.maximum(own.row, 0)
    noise, slab, height = whole.noise[at], whole.slab[at], whole.height[at]
    active = (state.loading != 0.0).T[at] & there[:, :, None]
    if switches.sparsity == "none":
        active = there[:, :, None] & (jnp.arange(active.shape[2]) < state.count)

    def body(k: Any, rows: Rows) -> Rows:
        def tried(rows: Rows, noise: Any, slab: Any, height: Any) -> Any:
            rest = without(rows, k)
            return rest, gain_of(Given(noise, slab, height, gram), rest, k)

        rest, (gain, turned, s, e) = of_each(tried, rows, noise, slab, height)
        u = uniforms(seed, "switch", k, at)
        odds = prior_log_odds(k, log_odds, jnp.zeros((0, 0)), switches)
        chosen = (gain + odds + jnp.log(1.0 - u) - jnp.log(u) > 0.0) & there
        valid = k < state.count
        if switches.sparsity == "buffet":
            valid &= gather(chosen.any(1)).any()
        chosen = jnp.where(valid, chosen, lax.dynamic_index_in_dim(rows.active, k, 2, keepdims=False))
        return of_each(lambda *each: with_factor(each[0], k, *each[1:]), rest, chosen, turned, s, e)

    if switches.sparsity != "none":
        start = of_each(lambda n, v, h, a: rows_of(Given(n, v, h, gram), a), noise, slab, height, active)
        active = lax.fori_loop(0, bound, body, start).active

    def drawn(noise: Any, slab: Any, height: Any, active: Any, row: Any) -> Any:
        return loadings_of(seed, Given(noise, slab, height, gram), active, row).T

    return every(of_each(drawn, noise, slab, height, active, at)).T
