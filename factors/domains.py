"""Domains: what values a variable or an argument may take."""

from __future__ import annotations

import dataclasses
from typing import Any

_EVENT_NDIM = {"vector": 1, "simplex": 1, "posdef": 2, "matrix": 2}


@dataclasses.dataclass(frozen=True)
class Domain:
    """A set of values.

    `kind` is one of real, sparse (a real number that may be exactly zero), positive, unit, boolean, count, category,
    simplex, vector, posdef, matrix, index. `size` is the number of classes (category, simplex) or the dimension
    (vector, posdef): an integer, or a plate whose size is known later; of a matrix the pair of rows and columns.
    `plate` is the plate that an index points into.
    """

    kind: str
    size: Any = None
    plate: Any = None

    @property
    def event_ndim(self) -> int:
        """Number of trailing array axes of one value (a category is stored as an integer: 0)."""
        return _EVENT_NDIM.get(self.kind, 0)

    def __str__(self) -> str:
        if self.kind == "index":
            return f"index({self.plate.name})"
        if self.size is None:
            return self.kind
        return f"{self.kind}({getattr(self.size, 'name', self.size)})"


real = Domain("real")
sparse = Domain("sparse")
positive = Domain("positive")
unit = Domain("unit")
boolean = Domain("boolean")
count = Domain("count")


def vector(dimension: int) -> Domain:
    """Vectors of `dimension` real numbers."""
    return Domain("vector", dimension)


def posdef(dimension: int) -> Domain:
    """Symmetric positive definite matrices of `dimension` rows."""
    return Domain("posdef", dimension)


def matrix(rows: int, columns: int) -> Domain:
    """Matrices of real numbers, for inputs: `matrix @ vector`."""
    return Domain("matrix", (rows, columns))


def category(classes: Any) -> Domain:
    """Integers 0, ..., classes - 1."""
    return Domain("category", classes)


def simplex(classes: Any) -> Domain:
    """Probability vectors over `classes` classes."""
    return Domain("simplex", classes)


def index(plate: Any) -> Domain:
    """Positions in `plate`: integers 0, ..., size - 1."""
    return Domain("index", plate=plate)
