"""Which loadings of a row are active, all of the row's loadings integrated out; then the loadings, all at once.

Given the factors X, row d with active factors A is `y_d ~ N(0, 1 / noise + X_A^T (1 / slab_A) X_A)`. Its loadings are
Gaussian, with precision `Q = noise X_A X_A^T + slab_A` and height `h = noise X_A y_d`, so that the row's evidence is
`1/2 (sum log slab_A - log |Q| + h^T Q^-1 h)`. One factor more or less changes the inverse of Q by a matrix of rank one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import row
from ..state import Observed, State, Switches
from .bits import normals, uniforms
from .columns import prior_log_odds
from .factors import Sums


class Rows(NamedTuple):
    """Of all rows at once, given which loadings are active.

    Attributes:
        active: (D, P).
        inverse: (D, P, P) of Q, zero where a factor is not active.
        mean: (D, P) of the loadings.
    """

    active: Any
    inverse: Any
    mean: Any


class Given(NamedTuple):
    """What does not change: (D,) noise, (D, P) slab precisions and heights `noise X y`, (P, P) X X^T."""

    noise: Any
    slab: Any
    height: Any
    gram: Any


def given_of(state: State, sums: Sums, switches: Switches) -> Given:
    """What rows need of a state, and of sums over samples."""
    slab = state.precision[:, None]
    if switches.slab != "gaussian":
        slab = slab * state.element
    slab = jnp.broadcast_to(slab, state.loading.shape)
    return Given(state.noise, slab.T, (state.noise * sums.cross).T, sums.gram)


def rows_of(given: Given, active: Any) -> Rows:
    """Inverses and means of (D, P) active loadings, from their precisions."""
    root = _root(given, active)
    whole = jnp.broadcast_to(jnp.eye(active.shape[1]), root.shape)
    half = lax.linalg.triangular_solve(root, whole, left_side=True, lower=True)
    both = active[:, :, None] & active[:, None, :]
    inverse = jnp.where(both, jnp.swapaxes(half, 1, 2) @ half, 0.0)
    return Rows(active, inverse, (inverse @ given.height[:, :, None])[:, :, 0])


def without(rows: Rows, k: Any) -> Rows:
    """The same with factor k active nowhere."""
    column = lax.dynamic_index_in_dim(rows.inverse, k, 2, keepdims=False)
    own = lax.dynamic_index_in_dim(column, k, 1, keepdims=True)
    here = jnp.arange(rows.active.shape[1]) == k
    scaled = jnp.where(own > 0.0, column / jnp.where(own > 0.0, own, 1.0), 0.0)
    mean = rows.mean - scaled * lax.dynamic_index_in_dim(rows.mean, k, 1, keepdims=True)
    inverse = rows.inverse - scaled[:, :, None] * column[:, None, :]
    # What rounding leaves in the row and the column of k is set to what it is.
    inverse = jnp.where(here[:, None] | here, 0.0, inverse)
    return Rows(rows.active & ~here, inverse, jnp.where(here, 0.0, mean))


def gain_of(given: Given, rows: Rows, k: Any) -> tuple[Any, Any, Any, Any]:
    """What factor k, active nowhere yet, adds to the evidence of each row; and what `with_factor` needs.

    `1/2 log (slab / s) + e^2 / (2 s)`, with `s = noise G_kk + slab - v^T Q^-1 v`, `e = h_k - v^T mean`,
    `v = noise G_k` over the factors that are active.
    """
    v = jnp.where(rows.active, given.noise[:, None] * row(given.gram, k), 0.0)
    slab, height = (lax.dynamic_index_in_dim(each, k, 1, keepdims=False) for each in (given.slab, given.height))
    turned = (rows.inverse @ v[:, :, None])[:, :, 0]
    s = given.noise * row(jnp.diagonal(given.gram), k) + slab - (v * turned).sum(1)
    e = height - (v * rows.mean).sum(1)
    s = jnp.maximum(s, slab)  # which it is, but for rounding
    return 0.5 * jnp.log(slab / s) + 0.5 * e * e / s, turned, s, e


def with_factor(rows: Rows, k: Any, chosen: Any, turned: Any, s: Any, e: Any) -> Rows:
    """The same with factor k active in the (D,) chosen rows."""
    here = jnp.arange(rows.active.shape[1]) == k
    u = jnp.where(here, -1.0, turned)
    weight = jnp.where(chosen, 1.0 / s, 0.0)
    inverse = rows.inverse + weight[:, None, None] * u[:, :, None] * u[:, None, :]
    return Rows(rows.active | (here & chosen[:, None]), inverse, rows.mean - (weight * e)[:, None] * u)


def draw_rows(
    seed: Any, state: State, sums: Sums, log_odds: Any, observed: Observed, bound: Any, switches: Switches
) -> Any:
    """(P, D) loadings given factors and all else, arguments as of `columns.draw_columns`.

    Activities are drawn factor by factor, in all rows at once, with all loadings integrated out; then all loadings of a
    row together. A column of the Indian buffet process that would become empty keeps its old activities.
    """
    given, number = given_of(state, sums, switches), state.loading.shape[1]
    index = jnp.arange(number)

    def body(k: Any, rows: Rows) -> Rows:
        rest = without(rows, k)
        gain, turned, s, e = gain_of(given, rest, k)
        odds = prior_log_odds(k, log_odds, observed.log_odds, switches)
        u = uniforms(seed, "switch", k, index)
        chosen = gain + odds + jnp.log(1.0 - u) - jnp.log(u) > 0.0
        valid = k < state.count
        if switches.sparsity == "buffet":
            valid &= chosen.any() | (k < switches.known)
        chosen = jnp.where(valid, chosen, lax.dynamic_index_in_dim(rows.active, k, 1, keepdims=False))
        return with_factor(rest, k, chosen, turned, s, e)

    active = (state.loading != 0.0).T
    if switches.sparsity == "none":
        active = active | (jnp.arange(active.shape[1]) < state.count)
    if switches.sparsity != "none" or switches.known:
        active = lax.fori_loop(0, bound, body, rows_of(given, active)).active
    return loadings_of(seed, given, active, jnp.arange(number))


def _root(given: Given, active: Any) -> Any:
    """(D, P, P) Cholesky roots of Q, ones on the diagonal where a factor is not active."""
    places = jnp.arange(active.shape[1])
    both = active[:, :, None] & active[:, None, :]
    same = places[:, None] == places
    precision = jnp.where(both, given.noise[:, None, None] * given.gram, 0.0)
    return jnp.linalg.cholesky(precision + jnp.where(same, jnp.where(active, given.slab, 1.0)[:, None, :], 0.0))


def loadings_of(seed: Any, given: Given, active: Any, number: Any) -> Any:
    """(P, D) loadings of what is active, all of a row at once; `number` (D,) are those of the rows."""
    places = jnp.arange(active.shape[1])
    root = _root(given, active)
    error = normals(seed, "loading", places, number[:, None])
    height = jnp.where(active, given.height, 0.0)[:, :, None]
    whitened = lax.linalg.triangular_solve(root, height, left_side=True, lower=True) + error[:, :, None]
    drawn = lax.linalg.triangular_solve(root, whitened, left_side=True, lower=True, transpose_a=True)[:, :, 0]
    return jnp.where(active, drawn, 0.0).T
