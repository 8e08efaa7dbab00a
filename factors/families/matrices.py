"""Small positive definite matrices on the last two axes; one that is not positive definite gives NaN, not an error.

What takes many equations is a compiled function, so that it is traced once for all matrices of a shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..arrays import Array

WRITTEN_OUT = 6  # rows
BY_COLUMN = 16  # rows up to which a loop over columns serves; every step of it is one operation on all matrices


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


@jax.jit
def cholesky(matrix: Array) -> Array:
    """L, lower triangular, with L L' = M; LAPACK spends a microsecond on a small one, so only large ones go there."""
    matrix, size = symmetric(matrix), matrix.shape[-1]  # so that gradients are symmetric too
    if size > BY_COLUMN:
        return _large_cholesky(matrix)
    if size > WRITTEN_OUT:
        return _cholesky_by_column(matrix)
    zero = jnp.zeros_like(matrix[..., 0, 0])
    root: list[list[Any]] = [[None] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[..., i, j] - sum(root[i][k] * root[j][k] for k in range(j))
            root[i][j] = jnp.sqrt(rest) if i == j else rest / root[j][j]
    return jnp.stack([jnp.stack([zero if e is None else e for e in row], -1) for row in root], -2)


def _one_by_one(function: Callable[[Array], Array], matrix: Array) -> Array:
    """LAPACK on one matrix at a time: XLA's threads that share a batch in a loop can wait for each other for ever."""
    if jax.default_backend() != "cpu":
        return function(matrix)
    each = jax.custom_batching.sequential_vmap(function)
    if matrix.ndim == 2:
        return each(matrix)
    return jax.vmap(each)(matrix.reshape((-1, *matrix.shape[-2:]))).reshape(matrix.shape)


@jax.custom_jvp
def _large_cholesky(matrix: Array) -> Array:
    return _one_by_one(jnp.linalg.cholesky, matrix)


@_large_cholesky.defjvp
def _(primals, tangents):
    root = _large_cholesky(*primals)
    w = _large_inverse_root(root)
    inner = jnp.tril(w @ tangents[0] @ jnp.swapaxes(w, -1, -2))
    return root, root @ (inner - 0.5 * inner * jnp.eye(inner.shape[-1], dtype=inner.dtype))


def _inverting(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`function` gives the inverse of one matrix; the result serves any number of them, with derivatives."""

    @jax.custom_jvp
    def inverse(matrix: Array) -> Array:
        return _one_by_one(function, matrix)

    @inverse.defjvp
    def _(primals, tangents):
        found = inverse(*primals)
        return found, -found @ tangents[0] @ found

    return inverse


def _triangular_inverse(root: Array) -> Array:
    eye = jnp.broadcast_to(jnp.eye(root.shape[-1], dtype=root.dtype), root.shape)
    return jax.lax.linalg.triangular_solve(root, eye, left_side=True, lower=True)


_large_inverse_root = _inverting(_triangular_inverse)
_large_inverse = _inverting(jnp.linalg.inv)


@jax.jit
def _cholesky_by_column(matrix: Array) -> Array:
    rows = jnp.arange(matrix.shape[-1])

    def step(rest, j):
        pivot = jax.lax.dynamic_index_in_dim(rest, j, -1, keepdims=False)
        scale = jnp.sqrt(jax.lax.dynamic_index_in_dim(pivot, j, -1))
        column = jnp.where(rows >= j, pivot / scale, 0.0)
        return rest - outer(column, column), column

    _, columns = jax.lax.scan(step, matrix, rows)
    return jnp.moveaxis(columns, 0, -1)


@jax.jit
def _inverse_by_row(root: Array) -> Array:
    rows = jnp.arange(root.shape[-1])

    def step(done, i):
        row = jax.lax.dynamic_index_in_dim(root, i, -2, keepdims=False)
        diagonal = jax.lax.dynamic_index_in_dim(row, i, -1)
        found = ((rows == i) - jnp.einsum("...k,...kj->...j", jnp.where(rows < i, row, 0.0), done)) / diagonal
        return jax.lax.dynamic_update_index_in_dim(done, found, i, done.ndim - 2), None

    return jax.lax.scan(step, jnp.zeros_like(root), rows)[0]


@jax.jit
def log_det(matrix: Array) -> Array:
    """log det M."""
    return 2.0 * jnp.sum(jnp.log(diagonal(cholesky(matrix))), axis=-1)


@jax.jit
def inverse_root(matrix: Array) -> Array:
    """W, lower triangular, with W' W the inverse of M: W' gives white noise that covariance."""
    root = cholesky(matrix)
    size = root.shape[-1]
    if size <= WRITTEN_OUT:
        zero = jnp.zeros_like(root[..., 0, 0])
        w: list[list[Any]] = [[None] * size for _ in range(size)]
        for i in range(size):
            w[i][i] = 1.0 / root[..., i, i]
            for j in range(i):
                w[i][j] = -w[i][i] * sum(root[..., i, k] * w[k][j] for k in range(j, i))
        return jnp.stack([jnp.stack([zero if e is None else e for e in row], -1) for row in w], -2)
    if size <= BY_COLUMN:
        return _inverse_by_row(root)
    return _large_inverse_root(root)


@jax.jit
def inverse(matrix: Array) -> Array:
    """The inverse of M, exactly symmetric."""
    root = inverse_root(matrix)
    if root.shape[-1] <= WRITTEN_OUT:  # a product of small matrices takes longer than their inverses
        rows = (root[..., k, :] for k in range(root.shape[-1]))
        return sum((outer(row, row) for row in rows), jnp.zeros_like(root))
    return symmetric(jnp.swapaxes(root, -1, -2) @ root)


def solve_root(root: Array, right: Array, transposed: bool = False) -> Array:
    """X with L X = B, or L' X = B, for one lower triangular L (d, d) and B (d, n); no derivatives.

    Many at once, by `vmap`, are solved one by one on a processor, as `_one_by_one` says.
    """

    def one(root: Array, right: Array) -> Array:
        return jax.lax.linalg.triangular_solve(root, right, left_side=True, lower=True, transpose_a=transposed)

    return (one if jax.default_backend() != "cpu" else jax.custom_batching.sequential_vmap(one))(root, right)


@jax.jit
def solve(matrix: Array, vector: Array) -> Array:
    """x with M x = v, once refined: M x is v to rounding, where that of a product with the inverse is not.

    A log normaliser and the expected statistics then agree however far apart the axes of M are.
    """
    root = inverse_root(matrix)

    def through(v: Array) -> Array:
        return jnp.einsum("...ji,...j->...i", root, times(root, v))

    found = through(vector)
    return found + through(vector - times(symmetric(matrix), found))


@jax.jit
def regular_inverse(matrix: Array) -> Array:
    """The inverse of a symmetric matrix that need not be positive definite: Gauss and Jordan without pivoting."""
    size = matrix.shape[-1]
    if size > BY_COLUMN:
        return symmetric(_large_inverse(matrix))
    rows = jnp.arange(size)

    def step(rest, k):
        column = jax.lax.dynamic_index_in_dim(rest, k, -1, keepdims=False)
        pivot = jax.lax.dynamic_index_in_dim(column, k, -1)
        others = jnp.where(rows == k, 0.0, column)
        row = jnp.where(rows == k, 1.0, jax.lax.dynamic_index_in_dim(rest, k, -2, keepdims=False)) / pivot
        cleared = jnp.where((rows == k)[:, None] | (rows == k), 0.0, rest)
        cleared = cleared - outer(others, row) + outer((rows == k) * jnp.ones_like(row), row)
        return cleared, None

    return symmetric(jax.lax.scan(step, matrix, rows)[0])


@jax.jit
def covariance_of(scales: Float[Array, " d"], partial: Float[Array, " pair"]) -> Float[Array, "d d"]:
    """The covariance of these standard deviations and partial correlations, of one instance.

    Pairs are in the order (1, 0), (2, 0), (2, 1), (3, 0), ..., each given all before its second; a row of the Cholesky
    root spends on each column a share of what the columns before have left of its unit length. Source
    lewandowski2009generating.
    """
    rows, pair = [jnp.zeros_like(scales).at[0].set(1.0)], 0
    for i in range(1, len(scales)):
        row, left = jnp.zeros_like(scales), jnp.ones(())
        for j in range(i):
            row, left = row.at[j].set(partial[pair] * jnp.sqrt(left)), left * (1.0 - partial[pair] ** 2)
            pair += 1
        rows.append(row.at[i].set(jnp.sqrt(left)))
    root = scales[:, None] * jnp.stack(rows)
    return root @ root.T


def is_positive_definite(matrix: Array) -> Array:
    """Whether M is positive definite."""
    return jnp.all(jnp.isfinite(cholesky(matrix)), axis=(-2, -1))
