"""Products and factorisations of matrices, through NumPy's and SciPy's LAPACK. Where one fails the result is NaN."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import lapack
from .equation import Equation, Function, Unknown, pick

WIDEST = 64  # rows of a batch of matrices that are solved side by side, row by row


def product(equation: Equation) -> Function:
    """A sum of products over some axes of two arrays, for every element of others."""
    (left_sum, right_sum), (left_batch, right_batch) = (
        tuple(tuple(map(int, axes)) for axes in pair) for pair in equation.params["dimension_numbers"]
    )
    left, right = (aval.shape for aval in equation.ins)
    left_free = tuple(axis for axis in range(len(left)) if axis not in left_sum + left_batch)
    right_free = tuple(axis for axis in range(len(right)) if axis not in right_sum + right_batch)
    batch = tuple(left[axis] for axis in left_batch)
    rows, columns = tuple(left[axis] for axis in left_free), tuple(right[axis] for axis in right_free)
    inner = (math.prod(left[axis] for axis in left_sum),)
    if not left_sum:
        first = _arranged(left, left_batch + left_free, batch + rows + (1,) * len(columns))
        second = _arranged(right, right_batch + right_free, batch + (1,) * len(rows) + columns)
        multiply, found = np.multiply, batch + rows + columns
    else:
        flat_rows = (math.prod(rows),) if rows or batch else ()
        flat_columns = (math.prod(columns),) if columns or batch else ()
        first = _arranged(left, left_batch + left_free + left_sum, batch + flat_rows + inner)
        second = _arranged(right, right_batch + right_sum + right_free, batch + inner + flat_columns)
        multiply, found = (np.matmul if batch else np.dot), batch + flat_rows + flat_columns
    last = pick(found, equation.outs[0].shape)
    type = equation.out_type

    def compute(a: Any, b: Any) -> Any:
        a = first(a) if first else a
        b = second(b) if second else b
        out = multiply(a, b)
        if last:
            out = last(out)
        return out if out.dtype == type else out.astype(type)

    return compute


def _arranged(shape: Any, order: tuple[int, ...], target: tuple[int, ...]) -> Function | None:
    """What puts axes in an order and joins some of them; None where that is nothing."""
    moved = order != tuple(range(len(order)))
    change = pick(tuple(shape[axis] for axis in order), target)
    if not moved:
        return change
    if change is None:
        return lambda x: x.transpose(order)
    return lambda x: x.transpose(order).reshape(target)


def every(shape: tuple[int, ...], function: Callable[..., Any]) -> Function:
    """A function of one matrix (or several of one batch) for every matrix of a batch; it returns a tuple."""
    if not shape:
        return function

    def each(*arrays: Any) -> tuple[Any, ...]:
        found = [function(*(array[place] for array in arrays)) for place in itertools.product(*map(range, shape))]
        return tuple(np.stack(part).reshape(shape + part[0].shape) for part in zip(*found, strict=True))

    return each


def cholesky(equation: Equation) -> Function:
    """The lower triangular factor."""
    _double(equation)
    batch = equation.ins[0].shape[:-2]

    def one(a: Any) -> tuple[Any, ...]:
        factor, failed = lapack.routine("potrf")(a, lower=1, clean=1)
        return (np.full_like(factor, np.nan) if failed else factor,)

    each = every(batch, one)
    return lambda a: each(a)[0]


def _double(equation: Equation) -> None:
    if equation.type != np.float64:
        raise Unknown(f"{equation.name} of {equation.type}")
    if 0 in equation.ins[0].shape:
        raise Unknown(f"{equation.name} of nothing")


def triangular_solve(equation: Equation) -> Function:
    """The solution of linear equations with a triangular matrix."""
    _double(equation)
    params, (matrix, _) = equation.params, equation.ins
    left, lower, transposed = params["left_side"], params["lower"], params["transpose_a"]
    unit, batch, size = params["unit_diagonal"], matrix.shape[:-2], matrix.shape[-1]

    def one(a: Any, b: Any) -> tuple[Any, ...]:
        trsm = lapack.routine("trsm")
        return (trsm(1.0, a, b, side=not left, lower=lower, trans_a=transposed, diag=unit),)

    if math.prod(batch) <= 4 or size > WIDEST:
        each = every(batch, one)
        return lambda a, b: each(a, b)[0]
    if not left:
        transposed = not transposed

    def solve(a: Any, b: Any) -> Any:
        b = b if left else b.swapaxes(-1, -2)
        a = a.swapaxes(-1, -2) if transposed else a
        if lower == transposed:  # an upper triangle: backwards it is a lower one
            x = _down(a[..., ::-1, ::-1], b[..., ::-1, :], unit)[..., ::-1, :]
        else:
            x = _down(a, b, unit)
        return x if left else x.swapaxes(-1, -2)

    return solve


def _down(a: Any, b: Any, unit: bool) -> Any:
    """Forward substitution, row by row, for all matrices at once."""
    x = np.empty(b.shape)
    for i in range(a.shape[-1]):
        row = b[..., i, :]
        if i:
            row = row - np.matmul(a[..., i : i + 1, :i], x[..., :i, :])[..., 0, :]
        x[..., i, :] = row if unit else row / a[..., i, i, None]
    return x


def lu(equation: Equation) -> Function:
    """Triangular factors of a matrix with its rows permuted, the exchanges and the permutation."""
    _double(equation)
    rows = equation.ins[0].shape[-2]

    def one(a: Any) -> tuple[Any, ...]:
        factors, exchanges, _ = lapack.routine("getrf")(a)
        order = np.arange(rows, dtype=np.int32)
        for i, j in enumerate(exchanges):
            order[i], order[j] = order[j], order[i]
        return factors, exchanges.astype(np.int32), order

    return every(equation.ins[0].shape[:-2], one)


def eigh(equation: Equation) -> Function:
    """Eigenvectors, and eigenvalues in ascending order, of a symmetric matrix."""
    _double(equation)
    if equation.params["subset_by_index"] is not None or not equation.params["sort_eigenvalues"]:
        raise Unknown("eigh of some eigenvalues")
    side = "L" if equation.params["lower"] else "U"
    outs = [aval.shape[len(equation.ins[0].shape) - 2 :] for aval in equation.outs]

    def one(a: Any) -> tuple[Any, ...]:
        try:
            return tuple(np.linalg.eigh(a, side))[::-1]
        except np.linalg.LinAlgError:
            return tuple(np.full(shape, np.nan) for shape in outs)

    return every(equation.ins[0].shape[:-2], one)


def svd(equation: Equation) -> Function:
    """Singular values, and where asked for the singular vectors."""
    _double(equation)
    params = equation.params
    if params["subset_by_index"] is not None:
        raise Unknown("svd of some singular values")
    outs = [aval.shape[len(equation.ins[0].shape) - 2 :] for aval in equation.outs]

    def one(a: Any) -> tuple[Any, ...]:
        try:
            found = np.linalg.svd(a, params["full_matrices"], params["compute_uv"])
        except np.linalg.LinAlgError:
            return tuple(np.full(shape, np.nan) for shape in outs)
        return (found[1], found[0], found[2]) if params["compute_uv"] else (found,)

    return every(equation.ins[0].shape[:-2], one)


def qr(equation: Equation) -> Function:
    """An orthogonal and an upper triangular factor."""
    _double(equation)
    if equation.params["pivoting"]:
        raise Unknown("qr with pivoting")
    mode = "complete" if equation.params["full_matrices"] else "reduced"
    return every(equation.ins[0].shape[:-2], lambda a: tuple(np.linalg.qr(a, mode)))
