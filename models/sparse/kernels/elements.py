"""Slabs with heavy tails: the precision of a loading is that of its factor times its own element, which is drawn."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ....factors.draws import inverse_gaussian_of
from ..state import Numbers, State, Switches
from .bits import normal_of, uniforms


def draw_elements(seed: Any, state: State, log_gammas: Any, numbers: Numbers, switches: Switches) -> Any:
    """(P, D) elements given the loadings where they are active, and from their prior elsewhere.

    Args:
        seed: (2,) from `bits.seed_of`.
        state: its loadings, precisions and elements are read.
        log_gammas: (P, D) logarithms of Gamma(shape + active / 2, 1) variables, with "student_t".
        numbers, switches: of the model; the slab is not "gaussian".

    Source: park2008bayesian, carvalho2010horseshoe.
    """
    active = state.loading != 0.0
    squares = state.precision[:, None] * state.loading * state.loading
    if switches.slab == "student_t":
        return jnp.exp(log_gammas) / (numbers.element[1] + 0.5 * squares)
    place, index = jnp.arange(active.shape[0])[:, None], jnp.arange(active.shape[1])
    u = uniforms(seed, "element", place, index)
    other = uniforms(seed, "other element", place, index)
    if switches.slab == "laplace":
        given = inverse_gaussian_of(jnp.sqrt(squares), normal_of(u), other)
    else:
        # A half-Cauchy scale is a mixture: element ~ Gamma(1/2, mixing) with mixing ~ Gamma(1/2, 1).
        mixing = -jnp.log(other) / (1.0 + state.element)
        given = -jnp.log(u) / (mixing + 0.5 * squares)
    return jnp.where(active, given, prior_elements(u, switches))


def prior_elements(uniform: Any, switches: Switches) -> Any:
    """Elements of "laplace" or "horseshoe" from their prior, by its quantile."""
    if switches.slab == "laplace":
        return -0.5 / jnp.log(uniform)
    return jnp.tan(0.5 * jnp.pi * uniform) ** -2.0
