"""Which elements of a variable meet in a factor: those along some plates never do, and are drawn at once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ....compiler.language.nodes import Expr, Gather, Let, Plate, Random, parents
from ....compiler.rules.gaussian_process import process_of
from ....factors.arrays import Array
from ....factors.factor import Chain
from ...density.terms import is_process
from ..joint import Joint


@dataclasses.dataclass(frozen=True)
class Lanes:
    """The elements of a variable as rows that are independent given the rest; the numbers of a row may meet.

    `plates` are those along which elements never meet, `count` is how many rows there are.
    """

    plates: tuple[Plate, ...]
    count: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def rows(self, x: Array) -> jax.Array:
        """(count, numbers of a row)."""
        return jnp.moveaxis(x, self.axes, range(len(self.axes))).reshape((self.count, -1))

    @property
    def size(self) -> int:
        """How many numbers a row has."""
        return math.prod(self.shape) // max(self.count, 1)

    def one(self, row: Array) -> jax.Array:
        """A row as the array that it is of a variable without the plates of the lanes."""
        return jnp.reshape(row, tuple(size for axis, size in enumerate(self.shape) if axis not in self.axes))

    def back(self, rows: Array) -> jax.Array:
        """The array from its rows."""
        rest = tuple(size for axis, size in enumerate(self.shape) if axis not in self.axes)
        whole = rows.reshape((*(self.shape[axis] for axis in self.axes), *rest))
        return jnp.moveaxis(whole, range(len(self.axes)), self.axes)

    def precision(self, log_density: Callable[[Array], Array], rows: Array) -> jax.Array:
        """The precision (count, n, n) of a quadratic form, from as many derivatives as n."""
        slope = jax.grad(log_density)

        def column(unit: Array) -> Array:
            return -jax.jvp(slope, (rows,), (jnp.broadcast_to(unit, rows.shape),))[1]

        precision = jnp.moveaxis(jax.lax.map(column, jnp.eye(rows.shape[1]), batch_size=64), 0, -1)
        return 0.5 * (precision + jnp.swapaxes(precision, -1, -2))


def lanes_of(joint: Joint, name: str) -> Lanes:
    """The lanes of a variable, by the structure of the factors that read it."""
    variable = joint.variables[name]
    apart = set() if isinstance(variable.term, Chain) else set(variable.plates)
    if is_process(variable):
        apart -= set(process_of(variable).over)
    for factor in joint.touching([name]):
        apart &= set() if factor in joint.integrals else _kept(joint, factor, variable)
    return _lanes(joint, variable, tuple(plate for plate in variable.plates if plate in apart))


def all_apart(joint: Joint, name: str) -> Lanes:
    """Those of a variable whose elements are known to be independent given the rest."""
    return _lanes(joint, joint.variables[name], joint.variables[name].plates)


def _lanes(joint: Joint, variable: Random, plates: tuple[Plate, ...]) -> Lanes:
    shape = joint.contents.shape(variable)
    axes = tuple(variable.plates.index(plate) for plate in plates)
    return Lanes(plates, math.prod(shape[axis] for axis in axes), shape, axes)


def _kept(joint: Joint, factor: str, variable: Random) -> set[Plate]:
    """The plates of a variable that stay, from its element up to the instance of the factor that reads it."""
    found = set(variable.plates)
    stack: list[tuple[Expr, frozenset[Plate]]] = [
        (root, frozenset(joint.factors[factor].plates)) for root in joint.factors[factor].roots
    ]
    while stack:
        node, kept = stack.pop()
        kept = kept & set(node.plates)
        if node is variable:
            found &= kept
        elif not isinstance(node, Random) and not (isinstance(node, Let) and node.name in joint.data):
            if isinstance(node, Gather):
                stack += [(node.index, frozenset()), (node.source, kept - {node.axis})]
            else:
                stack += [(child, kept) for child in parents(node)]
    return found
