"""Domains: what values a variable or an argument may take."""

from __future__ import annotations

import dataclasses
from typing import Any

from .calls import call_checked

_EVENT_NDIM = {"vector": 1, "simplex": 1, "posdef": 2, "matrix": 2, "normal_gamma": 1, "normal_wishart": 2}


@dataclasses.dataclass(frozen=True)
class Domain:
    """A set of values.

    `kind` is one of real, sparse (a real number that may be exactly zero), positive, unit, boolean, count, category,
    simplex, vector, posdef, matrix, index, and, of what shares a belief with its precision, normal_gamma and
    normal_wishart. `size` is the number of classes (category, simplex) or the dimension
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

    @property
    def is_real(self) -> bool:
        """Whether values are real numbers."""
        return self.kind == "real"

    @property
    def is_sparse(self) -> bool:
        """Whether values are real numbers that may be exactly zero."""
        return self.kind == "sparse"

    @property
    def is_positive(self) -> bool:
        """Whether values are positive numbers."""
        return self.kind == "positive"

    @property
    def is_unit(self) -> bool:
        """Whether values are numbers between 0 and 1."""
        return self.kind == "unit"

    @property
    def is_boolean(self) -> bool:
        """Whether values are truth values."""
        return self.kind == "boolean"

    @property
    def is_count(self) -> bool:
        """Whether values are counts."""
        return self.kind == "count"

    @property
    def is_category(self) -> bool:
        """Whether values are classes."""
        return self.kind == "category"

    @property
    def is_simplex(self) -> bool:
        """Whether values are probability vectors."""
        return self.kind == "simplex"

    @property
    def is_vector(self) -> bool:
        """Whether values are vectors."""
        return self.kind == "vector"

    @property
    def is_posdef(self) -> bool:
        """Whether values are positive definite matrices."""
        return self.kind == "posdef"

    @property
    def is_matrix(self) -> bool:
        """Whether values are matrices."""
        return self.kind == "matrix"

    @property
    def is_index(self) -> bool:
        """Whether values are positions in a plate."""
        return self.kind == "index"

    @property
    def is_discrete(self) -> bool:
        """Whether there are finitely many values: truth values and classes."""
        return self.kind in ("boolean", "category")

    @property
    def is_numeric(self) -> bool:
        """Whether values are single numbers that sums and products are of."""
        return self.kind in ("real", "sparse", "positive", "unit", "count")

    @property
    def is_continuous(self) -> bool:
        """Whether values have neighbours, in which a gradient may be taken."""
        return self.kind in ("real", "positive", "unit", "vector", "simplex", "posdef")

    @property
    def is_bounded(self) -> bool:
        """Whether values are numbers above 0: positive ones, and those between 0 and 1."""
        return self.kind in ("positive", "unit")

    @property
    def is_gaussian(self) -> bool:
        """Whether beliefs about values are Gaussian: real numbers and vectors."""
        return self.kind in ("real", "vector")

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


@call_checked
def vector(dimension: int) -> Domain:
    """Vectors of `dimension` real numbers, the last axis of their data.

    `dimension` is a positive integer. Returns a domain for `Model.input`, which raises
    ModelError for anything else.
    """
    return Domain("vector", dimension)


@call_checked
def posdef(dimension: int) -> Domain:
    """Symmetric positive definite matrices of `dimension` rows, the last two axes of their data.

    `dimension` is a positive integer. Returns a domain for `Model.input`, which raises
    ModelError for anything else.
    """
    return Domain("posdef", dimension)


@call_checked
def matrix(rows: int, columns: int) -> Domain:
    """Matrices of real numbers, the last two axes of their data, for inputs: `matrix @ vector`.

    `rows` and `columns` are positive integers. Returns a domain for `Model.input`, which
    raises ModelError for anything else.
    """
    return Domain("matrix", (rows, columns))


@call_checked
def category(classes: Any) -> Domain:
    """Integers 0, ..., classes - 1.

    `classes` is a positive integer, or a plate whose elements are the classes. Returns a domain
    for `Model.input`, which raises ModelError for anything else.
    """
    return Domain("category", classes)


@call_checked
def simplex(classes: Any) -> Domain:
    """Probability vectors over `classes` classes, the last axis of their data.

    `classes` is as for `category`. Returns a domain for `Model.input`, which raises ModelError for anything else.
    """
    return Domain("simplex", classes)


@call_checked
def index(plate: Any) -> Domain:
    """Positions in `plate`: integers 0, ..., size - 1.

    `plate` is what `Model.plate` returned. Returns a domain for `Model.input`, which raises ModelError for anything
    else.
    """
    return Domain("index", plate=plate)
