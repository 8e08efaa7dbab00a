"""Given the loadings: sums over samples, the factors and missing entries."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..state import Observed, State
from .bits import normals, whole


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
    values = observed.values.ravel()  # scatters of two indices are several times slower
    place = observed.row.astype(jnp.int64) * observed.values.shape[1] + observed.sample
    values = values.at[place].set(missing, mode="promise_in_bounds", unique_indices=True)
    return values.reshape(observed.values.shape)


def sums_of(values: Any, factor: Any) -> Sums:
    """Sums over samples, of complete data."""
    # Row by row, without another array of the size of Y: fresh memory of that size costs more than all the sums.
    square = lax.map(lambda row: (row * row).sum(), values)
    return Sums(factor @ values.T, factor @ factor.T, square)


def energies(sums: Sums, loading: Any) -> Any:
    """(D,) sums of squared residuals y - g x, from `y^2 - 2 g R + g S g`."""
    fitted = (loading * (sums.gram @ loading - 2.0 * sums.cross)).sum(0)
    return jnp.maximum(sums.square + fitted, 0.0)


def heights(loading: Any, noise: Any, values: Any) -> Any:
    """(P, N) `G^T noise Y`, all that factors need of the data; of some rows alone their part of the sum."""
    return (loading * noise) @ values


def draw_factors(seed: Any, state: State, height: Any) -> Any:
    """(P, N) factors given all else: `x ~ N(A^-1 G^T noise y, A^-1)` with `A = I + G^T noise G`; zeros where unused.

    Args:
        seed: (2,) from `bits.seed_of`.
        state: its loadings, count and noise are read.
        height: (P, N) from `heights`.
    """
    weighted = state.loading * state.noise
    places, samples = state.factor.shape
    root = jnp.linalg.cholesky(jnp.eye(places) + weighted @ state.loading.T)
    error = normals(seed, "factor", jnp.arange(places)[:, None], jnp.arange(samples))
    whitened = lax.linalg.triangular_solve(root, height, left_side=True, lower=True)
    drawn = lax.linalg.triangular_solve(root, whitened + error, left_side=True, lower=True, transpose_a=True)
    return jnp.where(used(state)[:, None], drawn, 0.0)


def draw_missing(seed: Any, state: State, observed: Observed) -> Any:
    """(M,) values of the missing entries given all else."""
    number = observed.row.shape[0]
    if not number:
        return state.missing
    root = jnp.sqrt(state.noise)
    error = normals(seed, "missing", 0, jnp.arange(whole(number)))
    scaled = _fitted(error, state.loading * root, state.factor, observed)
    return scaled / root[observed.row]


def _fitted(start: Any, loading: Any, factor: Any, observed: Observed) -> Any:
    """(M,) `start + g x` at the missing entries; `start` may be longer."""
    number, places = observed.row.shape[0], loading.shape[0]
    extra = start.shape[0] - number
    row, sample = (jnp.pad(each, (0, extra)) for each in (observed.row, observed.sample))
    several = math.gcd(places, 8)  # factors at once: longer sums go to a library, shorter ones read `start` more often
    loading, factor = loading.T, factor.T

    def body(block: Any, total: Any) -> Any:
        g, x = (lax.dynamic_slice_in_dim(each, several * block, several, 1) for each in (loading, factor))
        return total + (g[row] * x[sample]).sum(1)

    return lax.fori_loop(0, places // several, body, start)[:number]
