"""Vectors of an input, one by row, that are no arrays of 64 bits: matrices of scipy.sparse, rows of files, float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...factors.numbers import ValueProblem
from ..language.nodes import Expr, Input
from ..language.values import UserValue

NARROW = 2**20  # numbers of 32 bits: fewer are kept as numbers of 64


def is_sparse(value: UserValue) -> bool:
    """Whether a value is a matrix of scipy.sparse, in whatever format."""
    return hasattr(value, "tocsr")


def is_streamed(value: UserValue) -> bool:
    """Whether a value is rows of files that are read one block at a time."""
    return hasattr(value, "read_rows")


def is_rows(value: UserValue) -> bool:
    """Whether a value is rows of files, or of one process, before any of them is read: what `cv.rows` gives."""
    return hasattr(value, "rows_of_cavity")


def is_paged(value: UserValue) -> bool:
    """Whether a value is no array: a program sees one block of its rows at a time."""
    return is_sparse(value) or is_streamed(value)


def is_narrow(node: Expr, array: np.ndarray) -> bool:
    """Whether many numbers of 32 bits stay as they are, in half the memory: programs read them as numbers of 64."""
    return array.dtype == np.float32 and array.size > NARROW and _is_read_by_rows(node)


def streamed_rows(node: Expr, value: Any) -> Any:
    """`value`, where `node` can take rows of files; ValueProblem where it cannot."""
    if not _is_read_by_rows(node):
        raise ValueProblem(
            "found rows that are streamed from files, but only an input of vectors over one plate, m.input(name, "
            "cv.vector(d), plates=row), is read one block at a time. Give cv.rows(..., stream=False)."
        )
    return value


def sparse_rows(node: Expr, value: Any) -> Any:
    """`value` in compressed rows of floats, every entry once; ValueProblem where `node` cannot take a sparse matrix."""
    if not _is_read_by_rows(node):
        raise ValueProblem(
            "found a sparse matrix, but only an input of vectors over one plate, m.input(name, cv.vector(d), "
            "plates=row), reads its rows one block at a time. Give a dense array (`.toarray()`)."
        )
    if value.dtype.kind not in "biuf":
        raise ValueProblem(f"found a sparse matrix of type {value.dtype}, which are not numbers. Give numbers.")
    rows = value.tocsr().astype(np.float64, copy=False)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    wrong = ~np.isfinite(rows.data)
    if wrong.any():
        first = int(np.argmax(wrong))
        row = int(np.searchsorted(rows.indptr, first, side="right")) - 1
        more = f" and {wrong.sum() - 1} more" if wrong.sum() > 1 else ""
        raise ValueProblem(
            f"must be finite; found {rows.data[first]:g} at [{row}, {rows.indices[first]}]{more}. Give finite numbers."
        )
    return rows


def _is_read_by_rows(node: Expr) -> bool:
    """Whether a declaration is an input of vectors over one plate, which programs see one block of rows at a time."""
    return isinstance(node, Input) and node.domain.is_vector and len(node.plates) == 1
