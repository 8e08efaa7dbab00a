"""Features of rows that were not fitted, given those of a draw: sums over sets of features, for all rows at once.

Where there are few sets all are summed. Else they are proposed by what tempered Gibbs steps from several starts find
likely, mixed with the prior, and weighted, so that a start that was stuck counts for little. What no row of the draw
has, of features or of categories, is left out: what is answered is given that a new row has none of it.
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
from .choices import EachOf, OneOf, choices_of
from .likelihoods.contract import Likelihood, Numbers, Rows
from .samplers.sampler import bucket

ALL = 8  # features, or categories, up to which all sets of them are summed
STARTS = 4  # of Gibbs steps for each row, where there are more
PROPOSALS = 200  # sets of a row
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


class Table(NamedTuple):
    """What parts show: features of their own values, or of those on a menu.

    Attributes:
        menu: None, where parts are features, or (parts, K) zeros and ones.
        values: (K, dimensions).
    """

    menu: Array | None
    values: Array

    def features(self, parts: Array) -> Array:
        """(..., K) zeros and ones, of rows with these parts (..., parts)."""
        return parts if self.menu is None else ((parts @ self.menu) > 0.5).astype(parts.dtype)

    def total(self, parts: Array) -> Array:
        """(..., dimensions) what rows with these parts (..., parts) show."""
        return self.features(parts) @ self.values

    def without_and_with(self, parts: Array, k: Array, total: Array) -> tuple[Array, Array]:
        """Totals without and with part k, of rows with these parts (parts, ...) and this total."""
        if self.menu is None:
            without = total - parts[k][..., None] * self.values[k]
            return without, without + self.values[k]
        off, on = (jnp.moveaxis(jnp.asarray(parts).at[k].set(has), 0, -1) for has in (0.0, 1.0))
        return self.total(off), self.total(on)


def of_new_rows(draw: Any, values: np.ndarray, likelihood: Likelihood, law: Any, key: Key, sweeps: int = 30) -> Found:
    """Features, expected entries and densities of new rows.

    Args:
        draw: of chains, of `Law` or of correlated features.
        values: (rows, dimensions), NaN where missing.
        likelihood, law: of the chains.
        key: a key of `jax.random`.
        sweeps: Gibbs steps over all parts of each row, where there are more than 8; the first half is tempered.

    Returns:
        The answers: exact up to 8 parts, beyond averages over 200 weighted sets, of which the density is unbiased.

    Raises:
        UnsupportedError: a likelihood whose rows have weights of their own.
    """
    if likelihood.weighted:
        raise UnsupportedError("Features of new rows are not drawn for likelihoods that give each row its own weights.")
    values, seen = np.nan_to_num(np.asarray(values, float)), ~np.isnan(values)
    choices, count = choices_of(law, draw), len(draw.values)
    table = _padded(draw.values, bucket(count))
    if isinstance(choices, OneOf) or len(choices.log_odds) <= ALL:
        kernel, given = _summed(likelihood), (*_listed(choices, bucket(count)), table)
    else:
        places = bucket(len(choices.log_odds))
        # Of places without a part: so low that no row has it, and finite, for what is never had counts zero times it.
        log_odds = np.pad(choices.log_odds, (0, places - len(choices.log_odds)), constant_values=-700.0)
        menu = None if choices.menu is None else _padded(choices.menu.astype(float), places, bucket(count))
        kernel, given = _weighted(likelihood, sweeps), (Table(menu, table), log_odds)
    parts, size = [], max(1, AT_ONCE // (values.shape[1] * STARTS + len(given[1])))
    for at, start in enumerate(range(0, len(values), size)):
        rows = Rows(values[start : start + size], seen[start : start + size])
        parts.append(kernel(jax.random.fold_in(key, at), rows, *given, draw.numbers))
    probability, mean, log_density = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Found(probability[:, :count], mean, log_density)


def _padded(array: np.ndarray, *sizes: int) -> np.ndarray:
    """With zeros after the ends of its first axes, to these sizes."""
    more = [(0, size - now) for size, now in zip(sizes, array.shape, strict=False)]
    return np.pad(array, [*more, *[(0, 0)] * (array.ndim - len(more))])


def _listed(choices: EachOf | OneOf, places: int) -> tuple[np.ndarray, np.ndarray]:
    """All sets of features (sets, places) that a row may have, and their log probabilities, those of padding none."""
    if isinstance(choices, OneOf):
        features, logs = choices.features.astype(float), choices.log_probability
    else:
        odds = choices.log_odds
        sets = np.array(list(itertools.product([0.0, 1.0], repeat=len(odds)))).reshape(2 ** len(odds), len(odds))
        features = sets if choices.menu is None else (sets @ choices.menu > 0.5).astype(float)
        logs = sets @ odds - np.logaddexp(0.0, odds).sum()
    number = bucket(len(features))
    return _padded(features, number, places), np.pad(logs, (0, number - len(logs)), constant_values=-np.inf)


def _log_density(likelihood: Likelihood, rows: Rows, total: Array, numbers: Numbers) -> Array:
    return jnp.sum(likelihood.log_entry(rows.values, total, numbers), axis=-1, where=rows.seen)


def _log_of(active: Array, log_odds: Array) -> Array:
    """Log probability of booleans with these log odds, the last axis summed."""
    return active @ log_odds - jnp.sum(jax.nn.softplus(log_odds), axis=-1)


@functools.cache
def _summed(likelihood: Likelihood) -> machine_code.Kernel:
    """All sets of features; no key is needed."""

    def run(key: Key, rows: Rows, sets: Array, log_prior: Array, values: Array, numbers: Numbers) -> Found:
        totals = sets @ values
        each = jax.lax.map(lambda total: _log_density(likelihood, rows, total, numbers), totals)
        each = each + log_prior[:, None]
        log_density = logsumexp(each, axis=0)
        weight = jnp.exp(each - log_density)
        mean = weight.T @ likelihood.mean_entry(totals, numbers)
        return Found(weight.T @ sets, mean, log_density)

    return machine_code.Kernel(run)


@functools.cache
def _weighted(likelihood: Likelihood, sweeps: int) -> machine_code.Kernel:
    """Sets from a mixture of what Gibbs steps from each start find likely, and of the prior."""

    def run(key: Key, rows: Rows, table: Table, log_odds: Array, numbers: Numbers) -> Found:
        keys = jax.random.split(key)
        found = _gibbs(keys[0], likelihood, sweeps, rows, table, log_odds, numbers)
        likely = jnp.clip(jnp.log(found) - jnp.log1p(-found), -12.0, 12.0)
        likely = jnp.where(log_odds < -600.0, log_odds, likely)
        from_prior = jnp.broadcast_to(log_odds, (1, *likely.shape[1:]))
        mixture = jnp.concatenate([likely, from_prior])  # (starts + 1, rows, parts)
        share = jnp.log(jnp.append(jnp.full(STARTS, (1.0 - SHARE) / STARTS), SHARE))
        every = jnp.arange(rows.values.shape[0])

        def drawn(i: Array) -> tuple[Array, Array]:
            own = jax.random.split(jax.random.fold_in(keys[1], i))
            which = draws.state_at(
                draws.uniform(own[0], every.shape), jnp.broadcast_to(share, (len(every), STARTS + 1))
            )
            u = draws.uniform(own[1], log_odds.shape + every.shape).T
            parts = (jnp.log(u) - jnp.log1p(-u) < mixture[which, every]).astype(float)
            by_each = jnp.einsum("nk,snk->sn", parts, mixture) - jnp.sum(jax.nn.softplus(mixture), axis=-1)
            proposed = logsumexp(by_each + share[:, None], axis=0)
            entries = _log_density(likelihood, rows, table.total(parts), numbers)
            return table.features(parts), entries + _log_of(parts, log_odds) - proposed

        def one(now: Found, i: Array) -> tuple[Found, None]:
            """Weighted sums so far, over the largest weight so far."""
            active, log_weight = drawn(i)
            total = jnp.logaddexp(now.log_density, log_weight)
            before, after = (jnp.exp(each - total)[:, None] for each in (now.log_density, log_weight))
            mean = likelihood.mean_entry(active @ table.values, numbers)
            return Found(before * now.probability + after * active, before * now.mean + after * mean, total), None

        start = Found(
            jnp.zeros((len(every), len(table.values))), jnp.zeros(rows.values.shape), jnp.full(len(every), -jnp.inf)
        )
        found, _ = jax.lax.scan(one, start, jnp.arange(PROPOSALS))
        return found._replace(log_density=found.log_density - jnp.log(PROPOSALS))

    return machine_code.Kernel(run)


def _gibbs(
    key: Key, likelihood: Likelihood, sweeps: int, rows: Rows, table: Table, log_odds: Array, numbers: Numbers
) -> Array:
    """(starts, rows, parts) probabilities, averaged over the second half of sweeps: those before each draw."""
    shape = (len(log_odds), STARTS, rows.values.shape[0])

    def one(i: Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        u = draws.uniform(jax.random.fold_in(key, i), shape)
        heat = jnp.minimum(1.0, (i + 1.0) / (sweeps // 2))  # entries count little at first, lest rows be stuck

        def part(k: Array, inner: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            parts, total, sums = inner
            off, on = table.without_and_with(parts, k, total)
            gain = _log_density(likelihood, rows, on, numbers) - _log_density(likelihood, rows, off, numbers)
            p = jax.nn.sigmoid(log_odds[k] + heat * gain)
            new = (u[k] < p).astype(float)
            total = jnp.where(new[..., None] > 0.5, on, off)
            return parts.at[k].set(new), total, sums.at[k].add(p * (i >= sweeps // 2))

        return jax.lax.fori_loop(0, shape[0], part, now)

    zeros = jnp.zeros(shape), jnp.zeros((STARTS, *rows.values.shape)), jnp.zeros(shape)
    *_, sums = jax.lax.fori_loop(0, sweeps, one, zeros)
    return jnp.clip(jnp.moveaxis(sums, 0, -1) / (sweeps - sweeps // 2), 1e-9, 1.0 - 1e-9)


def average(found: list[Found]) -> tuple[np.ndarray, np.ndarray]:
    """(rows, dimensions) expected entries and (rows,) log densities, averaged over draws."""
    mean = np.mean([np.asarray(each.mean) for each in found], axis=0)
    logs: Any = np.logaddexp.reduce([each.log_density for each in found]) - np.log(len(found))
    return mean, logs
