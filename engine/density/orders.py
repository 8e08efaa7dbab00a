"""Numbers that constraints put in order, and coordinates in which every point keeps the order.

Where `m.constrain(t > t[parent])` compares elements of one variable, its elements are a partial order. One that is
above others lies between the largest of these and the upper end of its support: it is as far up that interval as its
coordinate says. The Jacobian is triangular in any order that goes upwards.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.known_order import order_of
from ...compiler.language.nodes import Expr, Input, Random, gathers_of, inside, source_of
from ...factors.arrays import Array
from ...factors.errors import DataError
from ...factors.families.bijections import Bijection, interval
from ..values.evaluate import value
from ..values.plated import Placed, mapped, spread
from ..values.scope import Scope


class Order(NamedTuple):
    """A partial order of the elements of a variable, numbered in the order of its array.

    Attributes:
        levels: (levels, widest) the elements, those that are above none first; -1 where a level has fewer.
        below: (elements, most) the elements that constraints say to be right below each; -1 where there are fewer.
    """

    levels: np.ndarray
    below: np.ndarray


class Compared(NamedTuple):
    """A constraint that compares elements of one variable, in each instance a `larger` one with a `smaller` one."""

    constraint: Expr
    variable: Random
    larger: Expr
    smaller: Expr

    @property
    def index_data(self) -> set[str]:
        """The names of the data that choose the elements."""
        chosen = [gather.index for side in (self.larger, self.smaller) for gather in gathers_of(side)]
        return {node.name for node in inside(chosen) if isinstance(node, (Input, Random))}

    def numbers(self, scope: Scope) -> tuple[Array, Array]:
        """The elements compared in each instance, as numbers in the order of the variable's array."""
        shape = [scope.sizes[plate.name] for plate in self.variable.plates]
        every = jnp.arange(math.prod(shape), dtype=jnp.int32).reshape(shape)
        inside = scope.with_data({self.variable.name: every})
        larger, smaller = (
            spread(value(side, inside), self.constraint.plates, scope.sizes) for side in (self.larger, self.smaller)
        )
        return larger, smaller

    def same(self, scope: Scope) -> Placed:
        """Where an element is compared with itself, as a root with its parent: that says nothing."""
        larger, smaller = self.numbers(scope)
        return Placed(larger == smaller, self.constraint.plates)

    def holds(self, scope: Scope) -> Array:
        """Whether the values in `scope` are in the order that the constraint states."""
        larger, smaller = value(self.larger, scope), value(self.smaller, scope)
        return jnp.all(mapped(lambda a, b, same: (a > b) | same, larger, smaller, self.same(scope)).value)


def compared_by(constraint: Expr, variables: Mapping[str, Random], data: Collection[str]) -> Compared | None:
    """What a constraint compares; None where these are no elements of one of the variables, chosen by data."""
    pair = order_of(constraint)
    if pair is None or source_of(pair[0]) is not source_of(pair[1]):
        return None
    variable = source_of(pair[0])
    if not isinstance(variable, Random) or variable.name not in variables or variable.domain.event_ndim:
        return None
    found = Compared(constraint, variable, *pair)
    return found if found.index_data <= set(data) else None


def order_among(name: str, pairs: Iterable[tuple[np.ndarray, np.ndarray]], count: int) -> Order:
    """The order of `count` elements of which constraints put larger ones above smaller ones.

    DataError where they contradict each other.
    """
    stated = {
        (int(above), int(below))
        for larger, smaller in pairs
        for above, below in zip(np.ravel(larger), np.ravel(smaller), strict=True)
        if above != below
    }
    under: list[list[int]] = [[] for _ in range(count)]
    for above, below in sorted(stated):
        under[above].append(below)
    levels, placed = [], np.zeros(count, bool)
    while not placed.all():
        level = [i for i in np.flatnonzero(~placed) if placed[under[i]].all()]
        if not level:
            raise DataError(
                f"Constraints put element {int(np.flatnonzero(~placed)[0])} of '{name}' above itself, by way of "
                "others: no values are in such an order. Correct the index data, which must not go in a circle."
            )
        levels.append(level)
        placed[level] = True
    return Order(_rectangle(levels), _rectangle(under))


def _rectangle(rows: list[list[int]]) -> np.ndarray:
    found = np.full((len(rows), max([1, *map(len, rows)])), -1, np.int32)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return found


def in_order(order: Order, low: float, high: float, shape: tuple[int, ...]) -> Bijection:
    """Numbers between `low` and `high`, in an order, from unconstrained coordinates.

    x_i = l_i + exp(z_i), or l_i + (high - l_i) / (1 + exp(-z_i)) where there is an upper end, with l_i the largest
    element below it; those that are above none as everywhere, by `interval`.
    """
    count, free = len(order.below), np.flatnonzero((order.below < 0).all(1))
    first, bounded = interval(low, high).over((len(free),)), np.isfinite(high)
    is_free = np.zeros(count, bool)
    is_free[free] = True

    def floors(x: Array) -> Array:
        """Where the interval of each element begins, given all of them."""
        return jnp.max(jnp.where(order.below < 0, -jnp.inf, x[order.below]), axis=1, initial=-jnp.inf)

    def forward(z: Array) -> Array:
        def climb(x: jax.Array, level: Array) -> tuple[jax.Array, None]:
            own = jnp.where(level < 0, count, level)
            floor = jnp.max(jnp.where(below[own] < 0, -jnp.inf, x[below[own]]), axis=1)
            up = (high - floor) * jax.nn.sigmoid(z[own]) if bounded else jnp.exp(z[own])
            return x.at[own].set(floor + up, mode="drop"), None

        z = jnp.append(z, 0.0)
        below = jnp.concatenate([order.below, jnp.full((1, order.below.shape[1]), 0)])
        x = jnp.zeros(count).at[free].set(first.forward(z[free]))
        return jax.lax.scan(climb, x, jnp.asarray(order.levels[1:]))[0].reshape(shape)

    def backward(x: Array) -> Array:
        x = jnp.asarray(x, float).ravel()
        above = x - jnp.where(is_free, x - 1.0, floors(x))
        z = jnp.log(above) - (jnp.log(high - x) if bounded else 0.0)
        return z.at[free].set(first.backward(x[free]))

    def log_jacobian(z: Array) -> Array:
        room = jnp.log(high - jnp.where(is_free, high - 1.0, floors(forward(z).ravel()))) if bounded else 0.0
        each = room + jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z) if bounded else z
        return jnp.sum(jnp.where(is_free, 0.0, each)) + first.log_jacobian(z[free])

    return Bijection(count, forward, backward, log_jacobian)
