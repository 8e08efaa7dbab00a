"""The left-ordered form of a binary matrix, and the histories of its columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .checks import binary


class LeftOrdered(NamedTuple):
    """A matrix with its columns sorted.

    Attributes:
        matrix: (rows, features) booleans, the columns in decreasing order.
        order: (features,) `matrix` is the matrix that was given at `[:, order]`.
        inverse: (features,) the matrix that was given is `matrix[:, inverse]`.
    """

    matrix: np.ndarray
    order: np.ndarray
    inverse: np.ndarray


def histories(matrix: np.ndarray) -> list[bytes]:
    """Each column as a binary number, the first row its most significant bit, packed into bytes that compare alike."""
    packed = np.ascontiguousarray(np.packbits(matrix, axis=0).T)
    return [column.tobytes() for column in packed]


def left_ordered(matrix: Any) -> LeftOrdered:
    """The left-ordered form: columns, read as binary numbers with the first row the most significant bit, decrease.

    Two matrices are of the same class, [Z], where their left-ordered forms agree up to empty columns. Equal columns
    keep their order.

    Args:
        matrix: (rows, features) of zeros and ones.

    Returns:
        The sorted matrix, the order and its inverse.

    Raises:
        DataError: other entries than 0 and 1, or no rows.

    Source: griffiths2011indian.
    """
    values = binary(matrix)
    history = histories(values)
    order = np.array(sorted(range(len(history)), key=history.__getitem__, reverse=True), dtype=np.intp)
    return LeftOrdered(values[:, order], order, np.argsort(order))
