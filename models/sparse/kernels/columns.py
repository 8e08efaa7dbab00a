"""Loadings, one factor after another and all rows of it at once, given activities: rows are independent then."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import put, row
from ..state import Observed, State, Switches
from .bits import normals, uniforms, whole
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
    number = state.loading.shape[1]
    rows = jnp.arange(whole(number))
    noise, cross, loading, element, known = (
        jnp.pad(each, [(0, 0)] * (each.ndim - 1) + [(0, whole(number) - number)], constant_values=1.0)
        for each in (state.noise, sums.cross, state.loading, state.element, observed.log_odds)
    )

    def body(k: Any, loading: Any) -> Any:
        old, power = row(loading, k), row(jnp.diagonal(sums.gram), k)
        rest = row(cross, k) - row(sums.gram, k) @ loading + power * old
        slab = row(state.precision, k)
        if switches.slab != "gaussian":
            slab = slab * row(element, k)
        precision, height = noise * power + slab, noise * rest
        new = (height + jnp.sqrt(precision) * normals(seed, "loading", k, rows)) / precision
        chosen = rows < number
        odds = prior_log_odds(k, log_odds, known, switches)
        if odds is not None:
            u = uniforms(seed, "switch", k, rows)
            gain = jnp.log(jnp.sqrt(slab / precision) * (1.0 - u) / u) + 0.5 * height * height / precision
            chosen &= gain + odds > 0.0
        valid = k < state.count
        if switches.sparsity == "buffet":
            valid &= chosen.any() | (k < switches.known)
        return put(loading, k, jnp.where(valid, jnp.where(chosen, new, 0.0), old))

    return lax.fori_loop(0, bound, body, loading)[:, :number]


def prior_log_odds(k: Any, log_odds: Any, known: Any, switches: Switches) -> Any:
    """Of factor k: one number or one for each row; None where all loadings are active."""
    if switches.sparsity == "none" and not switches.known:
        return None
    free = jnp.inf if switches.sparsity == "none" else row(log_odds, k)
    if not switches.known:
        return free
    given = row(known, jnp.minimum(k, switches.known - 1))
    return jnp.where(k < switches.known, given, free)
