"""Loadings, one factor after another and all rows of it at once, given activities: rows are independent then."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ....engine.native import put, row
from ..state import Observed, State, Switches
from .bits import normals, uniforms
from .factors import Sums


def draw_columns(
    seed: Any, state: State, sums: Sums, log_odds: Any, observed: Observed, bound: Any, switches: Switches
) -> Any:
    """(P, D) loadings given factors and all else: spike and slab, the slab integrated out where a loading switches.

    A factor of the Indian buffet process keeps its old loadings where the new ones would all be zero: an independence
    step for the law restricted to columns that are not empty. (To let a column go here would be a kernel with another
    stationary law: only births and deaths change the number of factors.)

    Args:
        seed: (2,) from `bits.seed_of`.
        state: loadings, precisions, elements and noise are read.
        sums: over samples.
        log_odds: (P,) prior log odds of loadings being active, for factors that are not known.
        observed: its log_odds, of known factors, are read.
        bound: at least the number of factors.
        switches: of the model.
    """
    rows = jnp.arange(state.loading.shape[1])

    def body(k: Any, loading: Any) -> Any:
        old, power = row(loading, k), row(jnp.diagonal(sums.gram), k)
        rest = row(sums.cross, k) - row(sums.gram, k) @ loading + power * old
        slab = row(state.precision, k)
        if switches.slab != "gaussian":
            slab = slab * row(state.element, k)
        precision = state.noise * power + slab
        height = state.noise * rest
        new = (height + jnp.sqrt(precision) * normals(seed, "loading", k, rows)) / precision
        odds = _prior_log_odds(k, log_odds, observed, switches)
        if odds is not None:
            u = uniforms(seed, "switch", k, rows)
            gain = jnp.log(jnp.sqrt(slab / precision) * (1.0 - u) / u) + 0.5 * height * height / precision
            new = jnp.where(gain + odds > 0.0, new, 0.0)
        valid = k < state.count
        if switches.sparsity == "buffet":
            valid &= (new != 0.0).any() | (k < switches.known)
        return put(loading, k, jnp.where(valid, new, old))

    return lax.fori_loop(0, bound, body, state.loading)


def _prior_log_odds(k: Any, log_odds: Any, observed: Observed, switches: Switches) -> Any:
    """Of factor k: one number or one for each row; None where all loadings are active."""
    if switches.sparsity == "none" and not switches.known:
        return None
    free = jnp.inf if switches.sparsity == "none" else row(log_odds, k)
    if not switches.known:
        return free
    given = row(observed.log_odds, jnp.minimum(k, switches.known - 1))
    return jnp.where(k < switches.known, given, free)
