"""Features of rows that were not fitted, given those of a draw: sums over sets of features, for all rows at once.

Where features are few all sets are summed. Else sets are proposed by what tempered Gibbs steps from several starts find
likely, mixed with the prior, and weighted, so that a start that was stuck counts for little.

A new row has feature k with probability `m_k / (N + c)` before it is seen, m_k the rows of N that have it. Features
that it would have alone, Poisson(mass c / (N + c)) of them, are left out: what is answered is given that it has none.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ...engine.support import machine_code
from ...factors import draws
from ...factors.arrays import Array, Key
from ...factors.errors import UnsupportedError
from .chains import Draw
from .likelihoods.contract import Likelihood, Numbers, Rows
from .samplers.law import Law
from .samplers.sampler import bucket

LEAST = 1e-300  # rows that have a feature of beliefs that none was drawn to have
ALL = 8  # features up to which all 2^K sets of them are summed
STARTS = 4  # of Gibbs steps for each row, where there are more
PROPOSALS = 200  # sets of features of a row
SHARE = 0.05  # of the prior in what proposes them
AT_ONCE = 4_000_000  # numbers in memory


class Found(NamedTuple):
    """What a draw says of new rows.

    Attributes:
        probability: (rows, K) that they have each feature.
        mean: (rows, dimensions) expected entries.
        log_density: (rows,) of what is seen of them, features summed out.
    """

    probability: Array
    mean: Array
    log_density: Array


def prior_log_odds(draw: Draw, law: Law) -> np.ndarray:
    """(K,) of a new row having the features of a draw."""
    rows, owners = draw.active.shape[0], draw.active.sum(axis=0)
    if law.features is None:
        return np.log(np.maximum(owners, LEAST)) - np.log(rows - owners + draw.concentration)
    return np.log(owners + draw.mass / law.features) - np.log(rows - owners + 1.0)


def of_new_rows(draw: Draw, values: np.ndarray, likelihood: Likelihood, law: Law, key: Key, sweeps: int = 30) -> Found:
    """Features, expected entries and densities of new rows.

    Args:
        draw: of chains.
        values: (rows, dimensions), NaN where missing.
        likelihood, law: of the chains.
        key: a key of `jax.random`.
        sweeps: Gibbs steps over all features of each row, where there are more than 8; the first half is tempered.

    Returns:
        The answers: exact up to 8 features, beyond averages over 200 weighted sets, of which the density is unbiased.

    Raises:
        UnsupportedError: a likelihood whose rows have weights of their own.
    """
    if likelihood.weighted:
        raise UnsupportedError("Features of new rows are not drawn for likelihoods that give each row its own weights.")
    values, seen = np.nan_to_num(np.asarray(values, float)), ~np.isnan(values)
    count, dimensions = draw.values.shape
    few = count <= ALL
    places = count if few else bucket(count)
    # Of places without a feature: so low that no row has it, and finite, for what is never had counts zero times it.
    log_odds = np.full(places, -700.0)
    log_odds[:count] = prior_log_odds(draw, law)
    table = np.pad(draw.values, [(0, places - count), (0, 0)])
    size = max(1, AT_ONCE // (dimensions * STARTS + 2**ALL))
    parts = []
    for at, start in enumerate(range(0, len(values), size)):
        rows = Rows(values[start : start + size], seen[start : start + size])
        given = (rows, table, log_odds, draw.numbers)
        own = jax.random.fold_in(key, at)
        parts.append(Found(*(_summed(likelihood)(*given) if few else _weighted(likelihood, sweeps)(own, *given))))
    probability, mean, log_density = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Found(probability[:, :count], mean, log_density)


def _log_density(likelihood: Likelihood, rows: Rows, total: Array, numbers: Numbers) -> Array:
    return jnp.sum(likelihood.log_entry(rows.values, total, numbers), axis=-1, where=rows.seen)


def _log_of(active: Array, log_odds: Array) -> Array:
    """Log probability of booleans with these log odds, the last axis summed."""
    return active @ log_odds - jnp.sum(jax.nn.softplus(log_odds), axis=-1)


@functools.cache
def _summed(likelihood: Likelihood) -> machine_code.Kernel:
    """All sets of features."""

    def run(rows: Rows, values: Array, log_odds: Array, numbers: Numbers) -> Found:
        count = values.shape[0]
        sets = jnp.asarray(list(itertools.product([0.0, 1.0], repeat=count))).reshape((2**count, count))
        totals = sets @ values
        each = jax.lax.map(lambda total: _log_density(likelihood, rows, total, numbers), totals)
        each = each + _log_of(sets, log_odds)[:, None]
        log_density = logsumexp(each, axis=0)
        weight = jnp.exp(each - log_density)
        mean = weight.T @ likelihood.mean_entry(totals, numbers)
        return Found(weight.T @ sets, mean, log_density)

    return machine_code.Kernel(run)


@functools.cache
def _weighted(likelihood: Likelihood, sweeps: int) -> machine_code.Kernel:
    """Sets of features from a mixture of what Gibbs steps from each start find likely, and of the prior."""

    def run(key: Key, rows: Rows, values: Array, log_odds: Array, numbers: Numbers) -> Found:
        keys = jax.random.split(key)
        found = _gibbs(keys[0], likelihood, sweeps, rows, values, log_odds, numbers)
        likely = jnp.clip(jnp.log(found) - jnp.log1p(-found), -12.0, 12.0)
        likely = jnp.where(log_odds < -600.0, log_odds, likely)
        from_prior = jnp.broadcast_to(log_odds, (1, *likely.shape[1:]))
        mixture = jnp.concatenate([likely, from_prior])  # (starts + 1, rows, places)
        share = jnp.log(jnp.append(jnp.full(STARTS, (1.0 - SHARE) / STARTS), SHARE))
        every = jnp.arange(rows.values.shape[0])

        def drawn(i: Array) -> tuple[Array, Array]:
            own = jax.random.split(jax.random.fold_in(keys[1], i))
            which = draws.state_at(
                draws.uniform(own[0], every.shape), jnp.broadcast_to(share, (len(every), STARTS + 1))
            )
            u = draws.uniform(own[1], values.shape[:1] + every.shape).T
            active = (jnp.log(u) - jnp.log1p(-u) < mixture[which, every]).astype(float)
            by_each = jnp.einsum("nk,snk->sn", active, mixture) - jnp.sum(jax.nn.softplus(mixture), axis=-1)
            proposed = logsumexp(by_each + share[:, None], axis=0)
            entries = _log_density(likelihood, rows, active @ values, numbers)
            return active, entries + _log_of(active, log_odds) - proposed

        def one(now: Found, i: Array) -> tuple[Found, None]:
            """Weighted sums so far, over the largest weight so far."""
            active, log_weight = drawn(i)
            total = jnp.logaddexp(now.log_density, log_weight)
            before, after = (jnp.exp(each - total)[:, None] for each in (now.log_density, log_weight))
            mean = likelihood.mean_entry(active @ values, numbers)
            return Found(before * now.probability + after * active, before * now.mean + after * mean, total), None

        start = Found(
            jnp.zeros((len(every), len(values))), jnp.zeros(rows.values.shape), jnp.full(len(every), -jnp.inf)
        )
        found, _ = jax.lax.scan(one, start, jnp.arange(PROPOSALS))
        return found._replace(log_density=found.log_density - jnp.log(PROPOSALS))

    return machine_code.Kernel(run)


def _gibbs(
    key: Key, likelihood: Likelihood, sweeps: int, rows: Rows, values: Array, log_odds: Array, numbers: Numbers
) -> Array:
    """(starts, rows, places) probabilities, averaged over the second half of sweeps: those before each draw."""
    shape = (values.shape[0], STARTS, rows.values.shape[0])

    def one(i: Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        u = draws.uniform(jax.random.fold_in(key, i), shape)
        heat = jnp.minimum(1.0, (i + 1.0) / (sweeps // 2))  # entries count little at first, lest rows be stuck

        def feature(k: Array, inner: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            active, total, sums = inner
            without = total - active[k][..., None] * values[k]
            gain = _log_density(likelihood, rows, without + values[k], numbers)
            gain = gain - _log_density(likelihood, rows, without, numbers)
            p = jax.nn.sigmoid(log_odds[k] + heat * gain)
            new = (u[k] < p).astype(float)
            return active.at[k].set(new), without + new[..., None] * values[k], sums.at[k].add(p * (i >= sweeps // 2))

        return jax.lax.fori_loop(0, shape[0], feature, now)

    zeros = jnp.zeros(shape), jnp.zeros((STARTS, *rows.values.shape)), jnp.zeros(shape)
    *_, sums = jax.lax.fori_loop(0, sweeps, one, zeros)
    return jnp.clip(jnp.moveaxis(sums, 0, -1) / (sweeps - sweeps // 2), 1e-9, 1.0 - 1e-9)


def average(found: list[Found]) -> tuple[np.ndarray, np.ndarray]:
    """(rows, dimensions) expected entries and (rows,) log densities, averaged over draws."""
    mean = np.mean([np.asarray(each.mean) for each in found], axis=0)
    logs: Any = np.logaddexp.reduce([each.log_density for each in found]) - np.log(len(found))
    return mean, logs
