"""Small positive definite matrices on the last two axes; one that is not positive definite gives NaN, not an error."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Array = Any


def symmetric(matrix: Array) -> Array:
    """(M + M') / 2."""
    return 0.5 * (matrix + jnp.swapaxes(matrix, -1, -2))


def outer(a: Array, b: Array) -> Array:
    """a b' of two vectors."""
    return a[..., :, None] * b[..., None, :]


def times(matrix: Array, vector: Array) -> Array:
    """M v."""
    return jnp.einsum("...ij,...j->...i", matrix, vector)


def trace_product(a: Array, b: Array) -> Array:
    """tr(A' B): the inner product of two matrices."""
    return jnp.sum(a * b, axis=(-2, -1))


def diagonal(matrix: Array) -> Array:
    """The diagonal, as the last axis."""
    return jnp.diagonal(matrix, axis1=-2, axis2=-1)


def log_det(matrix: Array) -> Array:
    """log det M."""
    return 2.0 * jnp.sum(jnp.log(diagonal(jnp.linalg.cholesky(matrix))), axis=-1)


def inverse_root(matrix: Array) -> Array:
    """W, lower triangular, with W' W the inverse of M: W' gives white noise that covariance."""
    root = jnp.linalg.cholesky(matrix)
    eye = jnp.broadcast_to(jnp.eye(root.shape[-1], dtype=root.dtype), root.shape)
    return jax.lax.linalg.triangular_solve(root, eye, left_side=True, lower=True)


def inverse(matrix: Array) -> Array:
    """The inverse of M, exactly symmetric."""
    root = inverse_root(matrix)
    return symmetric(jnp.swapaxes(root, -1, -2) @ root)


def is_positive_definite(matrix: Array) -> Array:
    """Whether M is positive definite."""
    return jnp.all(jnp.isfinite(jnp.linalg.cholesky(matrix)), axis=(-2, -1))
