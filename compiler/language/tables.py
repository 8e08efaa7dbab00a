"""Tables: constants of which discrete expressions choose rows, `cv.table(array)[z]`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import NoReturn

import numpy as np

from ...factors import domains
from ...factors.calls import call_checked
from ...factors.domains import Domain
from ...factors.errors import ModelError
from ...factors.factor import Nameless, Operand
from ...factors.numbers import ValueProblem, numeric_array
from .atoms import atom_key
from .indexing import check_named, classes_of, gather, gathered, size_of
from .nodes import Apply, Constant, Expr, Gather, Plate, Rows, is_data, union_plates
from .operations import Reach
from .values import UserValue, check


@dataclasses.dataclass(frozen=True, eq=False)
class Table(Nameless):
    """Constants by row: `table[z]`, or `table[a, b]` of several, is the row that discrete expressions choose."""

    values: np.ndarray

    @property
    def variable(self) -> NoReturn:
        raise ModelError(
            f"A whole {self} cannot be part of an expression: index it first, cv.table(values)[z], or compute with the "
            "array itself before it becomes a table."
        )

    def __getitem__(self, key: UserValue) -> Gather:
        indices = key if isinstance(key, tuple) else (key,)
        return _row(self.values, indices)

    def __str__(self) -> str:
        return f"table of shape {self.values.shape}"


@call_checked
def table(values: UserValue) -> Table:
    """Constants, rows of which a random variable or an input chooses: table(values)[z].

    `values`: numbers, an array of shape (*numbers of classes, *axes of one row). The result is indexed by as many
    booleans, categories or index inputs as it has axes of classes, `table(values)[a, b]`: the row is an expression over
    their plates, to be used as any argument: a number, a vector of probabilities, a mean, a matrix. ModelError where
    the values are no numbers, or an index does not have as many classes as its axis.
    """
    if isinstance(values, (Expr, Operand)):
        raise ModelError(f"cv.table takes constants; found '{values}'. Index it directly, x[z], with x over a plate.")
    try:
        array = np.array(numeric_array(values))
        check(array, "real")
    except ValueProblem as problem:
        raise ModelError(f"cv.table: {problem}") from None
    if array.ndim == 0 or array.size == 0:
        raise ModelError(f"cv.table takes an array with an axis of classes; found the shape {array.shape}.")
    return Table(array if array.dtype.kind == "b" else array.astype(np.float64))


def _row(values: np.ndarray, indices: tuple[UserValue, ...]) -> Gather:
    """The row that the indices choose, one after the other."""
    if len(indices) > values.ndim or values.ndim - len(indices) > 2:
        raise ModelError(
            f"A table of shape {values.shape} has {len(indices)} indices. Give one for each axis of classes; what is "
            "left is one row: a number, a vector or a matrix."
        )
    axes: list[Plate] = []
    for number in range(len(indices)):
        axes.append(_axis(values, number, indices, axes))
    found: Expr = Constant(values, tuple(axes), _domain(values, len(axes)))
    for index, axis in zip(indices, axes, strict=True):
        found = gather(found, index) if index.domain.plate is axis else gathered(found, index, axis)
    assert isinstance(found, Gather)
    return found


def _axis(values: np.ndarray, number: int, indices: tuple[UserValue, ...], taken: list[Plate]) -> Plate:
    """The plate of one axis of classes: that of the index where nothing else is on it, or one of the rows."""
    index, what, rows = indices[number], f"A table of shape {values.shape}", values.shape[number]
    if not isinstance(index, Expr):
        raise ModelError(
            f"{what} is indexed by {index!r}. Index it with a boolean or a category, random or an input, or with index "
            "data; rows at fixed places are taken from the array itself."
        )
    check_named(what, index)
    classes = index.domain.plate if index.domain.is_index else classes_of(what, index)
    size = size_of(classes)
    if size is not None and size != rows:
        raise ModelError(
            f"{what} has {rows} rows along axis {number}, but its index '{index}' ({index.domain}) has {size} classes. "
            "Give a row for each class."
        )
    used = {plate for other in indices if isinstance(other, Expr) for plate in other.plates} | set(taken)
    if isinstance(classes, Plate) and classes not in used:
        return classes
    name = f"rows of {index}" + (f", axis {number}" if number else "")
    return index.__dict__.setdefault("rows", {}).setdefault(number, Rows(name, rows))


def _domain(values: np.ndarray, axes: int) -> Domain:
    """The domain of a row, as far as the values tell: an argument that needs another one reads them in that."""
    event = values.shape[axes:]
    if values.dtype.kind == "b":
        return domains.boolean
    if len(event) == 2:
        return Domain("posdef", event[0]) if _holds(values, "posdef") else domains.matrix(*event)
    if len(event) == 1:
        return Domain("simplex" if _holds(values, "simplex") else "vector", event[0])
    return next((Domain(kind) for kind in ("unit", "positive") if _holds(values, kind)), domains.real)


def _holds(values: np.ndarray, kind: str) -> bool:
    try:
        check(values, kind)
    except (ValueProblem, np.linalg.LinAlgError):
        return False
    return True


def read_as(expr: Expr, kind: str, data: Collection[str]) -> Expr | None:
    """What discrete variables choose from data, or a function of that, as numbers of another domain, `kind`.

    None where something else in it is random. Inputs are read so where their domain is in `data`. ValueProblem where a
    row of a table is outside the domain.
    """
    if isinstance(expr, Constant):
        check(expr.value, kind)
        return dataclasses.replace(expr, domain=dataclasses.replace(expr.domain, kind=kind))
    if is_data(expr):
        return expr if expr.domain.kind == kind or expr.domain.kind in data else None
    if isinstance(expr, Gather):
        source = read_as(expr.source, kind, data)
        domain = dataclasses.replace(expr.domain, kind=kind)
        return None if source is None else dataclasses.replace(expr, source=source, domain=domain)
    if isinstance(expr, Apply) and expr.operation.arithmetic and kind == "real":
        args = [read_as(arg, kind, data) for arg in expr.args]
        found = [arg for arg in args if arg is not None]
        return dataclasses.replace(expr, args=tuple(found), domain=domains.real) if len(found) == len(args) else None
    return None


def chosen_at_once(expr: Expr) -> Expr | None:
    """A function of what discrete variables choose from data as a choice among its values: f(table[z]) as f(table)[z].

    None where something else in it is random, or where two variables choose along one plate.
    """
    if is_data(expr):
        return expr
    if isinstance(expr, Gather):
        source = chosen_at_once(expr.source)
        return None if source is None else dataclasses.replace(expr, source=source)
    if not isinstance(expr, Apply) or expr.operation.reach is not Reach.ELEMENT:
        return None
    indices: dict[Plate, Expr] = {}
    sources = []
    for arg in map(chosen_at_once, expr.args):
        source = arg
        while isinstance(source, Gather) and not is_data(source):
            if atom_key(indices.setdefault(source.axis, source.index)) != atom_key(source.index):
                return None
            source = source.source
        if source is None:
            return None
        sources.append(source)
    if set(indices) & set(expr.plates):
        return None
    plates = union_plates(*(source.plates for source in sources))
    found: Expr = dataclasses.replace(expr, args=tuple(sources), plates=plates)
    for axis, index in indices.items():
        found = gathered(found, index, axis)
    return found
