"""Given the loadings: sums over samples, the factors, missing entries, and the likelihood."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..state import Observed, State
from .bits import normals


class Sums(NamedTuple):
    """All that rows need of Y and X.

    Attributes:
        cross: (P, D) X Y^T.
        gram: (P, P) X X^T.
        square: (D,) sums of squares of the rows of Y.
    """

    cross: Any
    gram: Any
    square: Any


def used(state: State) -> Any:
    """(P,) which places hold factors."""
    return jnp.arange(state.factor.shape[0]) < state.count


def filled(observed: Observed, missing: Any) -> Any:
    """(D, N) the data, with drawn values where they are missing."""
    if observed.row.shape[0] == 0:
        return observed.values
    return observed.values.at[observed.row, observed.sample].set(missing, mode="promise_in_bounds", unique_indices=True)


def sums_of(values: Any, factor: Any) -> Sums:
    """Sums over samples, of complete data."""
    # Y times X^T and not X times Y^T: of the two, this is the one for which XLA's CPU back end copies nothing.
    return Sums((values @ factor.T).T, factor @ factor.T, (values * values).sum(1))


def energies(sums: Sums, loading: Any) -> Any:
    """(D,) sums of squared residuals y - g x, from `y^2 - 2 g R + g S g`."""
    fitted = (loading * (sums.gram @ loading - 2.0 * sums.cross)).sum(0)
    return jnp.maximum(sums.square + fitted, 0.0)


def draw_factors(seed: Any, state: State, values: Any) -> Any:
    """(P, N) factors given all else: `x ~ N(A^-1 G^T noise y, A^-1)` with `A = I + G^T noise G`; zeros where unused.

    Args:
        seed: (2,) from `bits.seed_of`.
        state: its loadings, count and noise are read.
        values: (D, N) complete data.
    """
    weighted = state.loading * state.noise
    places, samples = state.factor.shape
    root = jnp.linalg.cholesky(jnp.eye(places) + weighted @ state.loading.T)
    error = normals(seed, "factor", jnp.arange(places)[:, None], jnp.arange(samples))
    whitened = lax.linalg.triangular_solve(root, weighted @ values, left_side=True, lower=True)
    drawn = lax.linalg.triangular_solve(root, whitened + error, left_side=True, lower=True, transpose_a=True)
    return jnp.where(used(state)[:, None], drawn, 0.0)


def fitted_missing(state: State, observed: Observed) -> Any:
    """(M,) `g x` at the missing entries."""

    def body(k: Any, total: Any) -> Any:
        return total + state.loading[k, observed.row] * state.factor[k, observed.sample]

    return lax.fori_loop(0, state.count, body, jnp.zeros(observed.row.shape))


def draw_missing(seed: Any, state: State, observed: Observed) -> Any:
    """(M,) values of the missing entries given all else."""
    if observed.row.shape[0] == 0:
        return state.missing
    error = normals(seed, "missing", 0, jnp.arange(observed.row.shape[0]))
    return fitted_missing(state, observed) + error / jnp.sqrt(state.noise[observed.row])


def log_likelihood(state: State, observed: Observed) -> Any:
    """`log p(Y | G, X, noise)` of what is observed, from sums over samples.

    Args:
        state: a point of a chain.
        observed: the data.

    Returns:
        One number.
    """
    samples = observed.values.shape[1]
    energy = energies(sums_of(filled(observed, state.missing), state.factor), state.loading)
    number = jnp.full(energy.shape, float(samples))
    if observed.row.shape[0]:
        residual = state.missing - fitted_missing(state, observed)
        energy -= jax.ops.segment_sum(residual * residual, observed.row, energy.shape[0])
        number -= jax.ops.segment_sum(jnp.ones(residual.shape), observed.row, energy.shape[0])
    return 0.5 * (number * jnp.log(state.noise / (2.0 * jnp.pi)) - state.noise * energy).sum()
