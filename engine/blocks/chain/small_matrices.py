"""Linear algebra of many small matrices, written for speed: (..., rows, columns, lanes), the lanes along the last axis.

XLA's batched routines spend a microsecond on a 2 x 2 matrix; sums of products over lanes become plain vector loops.
"""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

UNROLLED = 4  # the largest dimension that is written out


def product(a: Float[Array, "... i k lanes"], b: Float[Array, "... k j lanes"]) -> Float[Array, "... i j lanes"]:
    """A B."""
    if a.shape[-2] > UNROLLED:
        return jnp.einsum("...ikn,...kjn->...ijn", a, b)
    return functools.reduce(operator.add, (a[..., :, k, None, :] * b[..., None, k, :, :] for k in range(a.shape[-2])))


def applied(a: Float[Array, "... i k lanes"], v: Float[Array, "... k lanes"]) -> Float[Array, "... i lanes"]:
    """A v."""
    if a.shape[-2] > UNROLLED:
        return jnp.einsum("...ikn,...kn->...in", a, v)
    return functools.reduce(operator.add, (a[..., :, k, :] * v[..., None, k, :] for k in range(a.shape[-2])))


def transposed(a: Float[Array, "... i j lanes"]) -> Float[Array, "... j i lanes"]:
    """A'."""
    return jnp.swapaxes(a, -2, -3)


def symmetric(a: Float[Array, "... i i lanes"]) -> Float[Array, "... i i lanes"]:
    """(A + A') / 2."""
    return 0.5 * (a + transposed(a))


def inner(a: Float[Array, "... i lanes"], b: Float[Array, "... i lanes"]) -> Float[Array, "... lanes"]:
    """a . b."""
    return jnp.sum(a * b, axis=-2)


def outer(a: Float[Array, "... i lanes"], b: Float[Array, "... j lanes"]) -> Float[Array, "... i j lanes"]:
    """a b'."""
    return a[..., :, None, :] * b[..., None, :, :]


def eye(dimension: int) -> Float[Array, "i i 1"]:
    """The identity, for any number of lanes."""
    return jnp.eye(dimension)[:, :, None]


def inverse(a: Float[Array, "... i i lanes"]) -> Float[Array, "... i i lanes"]:
    """The inverse of any regular matrix."""
    dimension = a.shape[-2]
    if dimension == 1:
        return 1.0 / a
    if dimension == 2:
        p, q, r, s = (a[..., i, j, :] for i in range(2) for j in range(2))
        return jnp.stack([jnp.stack([s, -q], -2), jnp.stack([-r, p], -2)], -3) / determinant(a)[..., None, None, :]
    if dimension == 3:
        first, second, third = (a[..., i, :, :] for i in range(3))
        columns = [_cross(second, third), _cross(third, first), _cross(first, second)]
        return jnp.stack(columns, -2) / determinant(a)[..., None, None, :]
    return jnp.moveaxis(jnp.linalg.inv(jnp.moveaxis(a, -1, -3)), -3, -1)


def _cross(a: Float[Array, "... 3 lanes"], b: Float[Array, "... 3 lanes"]) -> Float[Array, "... 3 lanes"]:
    """The cross product."""
    a0, a1, a2, b0, b1, b2 = (v[..., i, :] for v in (a, b) for i in range(3))
    return jnp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -2)


def determinant(a: Float[Array, "... i i lanes"]) -> Float[Array, "... lanes"]:
    """det A, for up to three dimensions."""
    if a.shape[-2] == 1:
        return a[..., 0, 0, :]
    if a.shape[-2] == 2:
        return a[..., 0, 0, :] * a[..., 1, 1, :] - a[..., 0, 1, :] * a[..., 1, 0, :]
    return inner(a[..., 0, :, :], _cross(a[..., 1, :, :], a[..., 2, :, :]))


def log_det(a: Float[Array, "... i i lanes"]) -> Float[Array, "... lanes"]:
    """log |det A|."""
    if a.shape[-2] <= 3:
        return jnp.log(jnp.abs(determinant(a)))
    return jnp.linalg.slogdet(jnp.moveaxis(a, -1, -3))[1]


def cholesky(a: Float[Array, "... i i lanes"]) -> Float[Array, "... i i lanes"]:
    """The lower triangle L with L L' = A; no numbers where A is not positive definite."""
    dimension = a.shape[-2]
    if dimension > UNROLLED:
        return jnp.moveaxis(jnp.linalg.cholesky(jnp.moveaxis(a, -1, -3)), -3, -1)
    rows: list[list[Array]] = []
    for i in range(dimension):
        row: list[Array] = []
        for j in range(i + 1):
            left = a[..., i, j, :] - sum((row[k] * (row if j == i else rows[j])[k] for k in range(j)), jnp.zeros(()))
            row.append(jnp.sqrt(left) if j == i else left / rows[j][j])
        rows.append(row)
    zero = jnp.zeros_like(a[..., 0, 0, :])
    full = [jnp.stack([*row, *[zero] * (dimension - len(row))], -2) for row in rows]
    return jnp.stack(full, -3)


def root_inverse(root: Float[Array, "... i i lanes"]) -> Float[Array, "... i i lanes"]:
    """The inverse of a lower triangle."""
    dimension = root.shape[-2]
    if dimension > UNROLLED:
        moved = jnp.moveaxis(root, -1, -3)
        identity = jnp.broadcast_to(jnp.eye(dimension, dtype=root.dtype), moved.shape)
        return jnp.moveaxis(jax.lax.linalg.triangular_solve(moved, identity, left_side=True, lower=True), -3, -1)
    zero = jnp.zeros_like(root[..., 0, 0, :])
    rows: list[list[Array]] = []
    for i in range(dimension):
        own = 1.0 / root[..., i, i, :]
        before = [-own * sum((root[..., i, k, :] * rows[k][j] for k in range(j, i)), zero) for j in range(i)]
        rows.append([*before, own])
    return jnp.stack([jnp.stack([*row, *[zero] * (dimension - len(row))], -2) for row in rows], -3)


def positive_inverse(a: Float[Array, "... i i lanes"]) -> Float[Array, "... i i lanes"]:
    """The inverse of a positive definite matrix, symmetric: each element to the rounding of its row and column."""
    if a.shape[-2] == 1:
        return 1.0 / a
    root = root_inverse(cholesky(a))
    return product(transposed(root), root)
