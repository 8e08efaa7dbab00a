"""The accelerated sampler for windows of rows: several rows are taken out of the posterior of values at once.

The law of each entry is that of the collapsed sampler whatever the window; a window of one row costs least, and wider
ones serve to check it.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from ....factors.errors import ModelError
from ....factors.families.matrices import cholesky, inverse, solve_root
from ..likelihoods.contract import Active, Likelihood, Numbers, Rows
from ..likelihoods.linear_gaussian import Sums, sums_of
from .beliefs import Beliefs, beliefs_of
from .law import Law
from .passes import MOST, Chances, Gaps, Pass, RowPass, Tables, index_of, number_drawn, placed, sweep_by
from .state import Outcome, State
from .sweeps import Sweep


@dataclasses.dataclass(frozen=True, repr=False)
class Windowed:
    """See `windowed`; a value, so that it travels to workers."""

    window: int

    def __repr__(self) -> str:
        return f"windowed({self.window})"

    def __call__(self, key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
        return sweep_by(pass_of_windows(self.window), key, rows, state, likelihood, law)[0]


def windowed(window: int) -> Sweep:
    """A sweep by `P(z_nk = 1 | z_-nk, X)` from `N(X_w; Z_w m, Z_w S Z_w^T + I / noise)` for the rows w of a window.

    m and S are mean and covariance of values given all rows outside the window.

    Args:
        window: the number of rows, 1 or more.

    Raises:
        ModelError: a window that is no positive number.

    Source: doshivelez2009accelerated.
    """
    pass_of_windows(window)
    return Windowed(window)


@functools.cache
def pass_of_windows(window: int) -> RowPass:
    """The pass over rows, consecutive windows one after the other."""
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ModelError(f"windowed: give the number of rows of a window, 1 or more; found {window!r}.")

    def over_rows(
        active: Active, full: Array, numbers: Numbers, tables: Tables, chances: Chances, gaps: Gaps | None = None
    ) -> Pass:
        rows, places = active.shape
        number = -(-rows // window)
        beyond = number * window - rows  # rows without features or entries: they weigh on nothing
        full = jnp.pad(full, [(0, beyond), (0, 0)])
        z = jnp.pad(active, [(0, beyond), (0, 0)]).astype(full.dtype)
        blank = jnp.zeros((rows, places)), jnp.zeros((rows, MOST + 1)), jnp.bool_(True)

        def one(index: Array, carry: tuple) -> tuple:
            z, sums, full, found = carry
            some = jax.lax.dynamic_slice_in_dim(z, index * window, window)
            values = jax.lax.dynamic_slice_in_dim(full, index * window, window)
            rest = beliefs_of(Sums(sums.gram - some.T @ some, sums.cross - some.T @ values), numbers)
            count = jnp.minimum(window, rows - index * window)

            def row(place: Array, carry: tuple) -> tuple:
                return _one_row(place, index * window + place, carry, rest, numbers, tables, chances, gaps)

            some, values, found = jax.lax.fori_loop(0, count, row, (some, values, found))
            z = jax.lax.dynamic_update_slice_in_dim(z, some, index * window, 0)
            full = jax.lax.dynamic_update_slice_in_dim(full, values, index * window, 0)
            return z, Sums(rest.sums.gram + some.T @ some, rest.sums.cross + some.T @ values), full, found

        z, _, full, (odds, births, fits) = jax.lax.fori_loop(0, number, one, (z, sums_of(full, z), full, blank))
        return Pass(z[:rows] > 0, fits, odds, births, jnp.zeros(()), None if gaps is None else full[:rows])

    return over_rows


def log_density(
    z: Array, values: Array, rest: Beliefs, numbers: Numbers, more: Array, columns: Array | None = None
) -> Array:
    """Of the entries of a window's rows but for a constant, `more` (window,) added to their variances; of all columns
    or those of (dimensions,) booleans."""
    root = cholesky(_covariance(z, rest, numbers) + jnp.diag(more))
    white = solve_root(root, values - z @ rest.mean)
    if columns is not None:
        white = jnp.where(columns, white, 0.0)
    number = values.shape[1] if columns is None else jnp.sum(columns)
    return -number * jnp.sum(jnp.log(jnp.diagonal(root))) - 0.5 * jnp.sum(white**2)


def _covariance(z: Array, rest: Beliefs, numbers: Numbers) -> Array:
    """(window, window), of the entries in any column."""
    return z @ rest.covariance @ z.T + jnp.eye(len(z)) / numbers["noise_precision"]


def _one_row(
    w: Array, n: Array, carry: tuple, rest: Beliefs, numbers: Numbers, tables: Tables, chances: Chances,
    gaps: Gaps | None,
) -> tuple:  # fmt: skip
    """Row n, the w-th of the window: its entries, the features that it has alone, and what of it is not seen."""
    z, values, (odds, births, fits) = carry
    seen = None if gaps is None else jnp.asarray(gaps.seen)[n]
    others = jnp.diagonal(rest.sums.gram) + jnp.sum(z, axis=0) - z[w]
    prior, none = tables.odds[index_of(others)], jnp.zeros(len(z))

    def entry(place: Array, carry: tuple) -> tuple:
        z, found = carry
        both = jnp.stack([z.at[w, place].set(0.0), z.at[w, place].set(1.0)])
        logs = jax.vmap(lambda one: log_density(one, values, rest, numbers, none, seen))(both)
        log_odds = prior[place] + logs[1] - logs[0]
        drawn = jnp.where(jnp.isneginf(log_odds), z[w, place], chances.logistic[n, place] < log_odds)
        return z.at[w, place].set(drawn), found.at[place].set(log_odds)

    z, found = jax.lax.fori_loop(0, z.shape[1], entry, (z, jnp.zeros(z.shape[1])))
    odds = odds.at[n].set(found)
    if tables.births.size:
        alone = (z[w] > 0) & (others == 0)
        shared = z.at[w].multiply(~alone)
        several = none.at[w].set(1.0 / numbers["value_precision"]) * jnp.arange(MOST + 1)[:, None]
        given = values, rest, numbers
        weights = tables.births + jax.vmap(lambda more: log_density(shared, *given, more, seen))(several)
        born, enough = placed(number_drawn(weights, chances.gumbel[n], alone), others)
        z, fits = shared.at[w].add(born), fits & enough
        births = births.at[n].set(weights - weights[0])
    if gaps is not None:
        drawn = _drawn_given_others(w, z, values, rest, numbers, jnp.asarray(gaps.normal)[n])
        values = values.at[w].set(jnp.where(jnp.asarray(gaps.seen)[n], values[w], drawn))
    return z, values, (odds, births, fits)


def _drawn_given_others(w: Array, z: Array, values: Array, rest: Beliefs, numbers: Numbers, normal: Array) -> Array:
    """(dimensions,) entries of the w-th row of a window, given all that its other rows and those outside tell."""
    precision = inverse(_covariance(z, rest, numbers))[w]
    spread = 1.0 / jnp.sqrt(precision[w])
    left = jnp.asarray(values - z @ rest.mean).at[w].set(0.0)
    return z[w] @ rest.mean + spread * (normal - spread * precision @ left)
