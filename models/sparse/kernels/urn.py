"""Factors whose scores come from a Dirichlet process: samples that share a score of a factor, exactly.

The scores of each factor are draws of a law that itself is drawn about N(0, 1), so that some agree: `x_n` is that of
another sample, each with weight 1, or a new one, with weight `mass`. Which samples agree is read from the scores.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import put, row
from ..state import Numbers, State, Switches
from .bits import normals, uniforms
from .factors import draw_factors


def draw_scores(seed: Any, state: State, height: Any, numbers: Numbers, bound: Any, switches: Switches) -> Any:
    """(P, N) scores of the factors given all else, of either law; zeros where unused.

    Args:
        seed: (2,) from `bits.seed_of`.
        state: its loadings, factors, count and noise are read.
        height: (P, N) from `factors.heights`, of complete data.
        numbers, switches: of the model.
        bound: at least the number of factors.
    """
    if switches.scores == "gaussian":
        return draw_factors(seed, state, height)
    return draw_from_urn(seed, state, height, numbers.score_mass, bound)


def draw_from_urn(seed: Any, state: State, height: Any, mass: Any, bound: Any) -> Any:
    """(P, N) scores given all else: of one factor after another each sample's, then those that samples share.

    With `p = g^T noise g` and `h_n = g^T noise (y_n - other factors)` the weights of sample n are
    `exp(h_n x - p x^2 / 2)` for the score x of each other sample, and
    `mass (1 + p)^(-1/2) exp(h_n^2 / (2 (1 + p)))` for a new one, from `N(h_n / (1 + p), 1 / (1 + p))`. A score that m
    samples share is `N(H / (1 + m p), 1 / (1 + m p))`, H the sum of their h. The cost is that of samples squared, for
    each factor.

    Args:
        seed: (2,) from `bits.seed_of`.
        state: its loadings, factors, count and noise are read.
        height: (P, N) from `factors.heights`, of complete data.
        mass: () of the Dirichlet process.
        bound: at least the number of factors.

    Source: neal2000markov, west1994hierarchical.
    """
    samples = height.shape[1]
    if samples == 0:
        return state.factor
    power = (state.loading * state.noise) @ state.loading.T
    index = jnp.arange(samples)

    def of_factor(k: Any, factor: Any) -> Any:
        p, own = row(jnp.diagonal(power), k), row(factor, k)
        h = row(height, k) - row(power, k) @ factor + p * own
        u, error = uniforms(seed, "urn", k, index), normals(seed, "factor", k, index)
        fresh = (h + jnp.sqrt(1.0 + p) * error) / (1.0 + p)
        log_new = jnp.log(mass) - 0.5 * jnp.log1p(p) + 0.5 * h * h / (1.0 + p)

        def of_sample(n: Any, x: Any) -> Any:
            log_weight = jnp.where(index == n, row(log_new, n), row(h, n) * x - 0.5 * p * x * x)
            weight = jnp.cumsum(jnp.exp(log_weight - log_weight.max()))
            chosen = jnp.minimum((weight < row(u, n) * weight[-1]).sum(), samples - 1)
            return put(x, n, jnp.where(chosen == n, row(fresh, n), row(x, chosen)))

        x = lax.fori_loop(0, samples, of_sample, own)
        equal = x[:, None] == x
        first, several = equal.argmax(axis=1), equal.sum(axis=1)
        precision = 1.0 + several * p
        shared = (equal @ h + jnp.sqrt(precision) * normals(seed, "factor", k, index, 1)) / precision
        return put(factor, k, jnp.where(k < state.count, shared[first], 0.0))

    return lax.fori_loop(0, bound, of_factor, state.factor)
