"""Numbers that constraints put in order, and coordinates in which every point keeps the order.

Where `m.constrain(t > t[parent])` compares elements of one variable, its elements are a partial order. One that is
above others lies between the largest of these and the upper end of its support: it is as far up that interval as its
coordinate says. The Jacobian is triangular in any order that goes upwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.known_order import order_of
from ...compiler.language.nodes import Expr, Random, gathers_of, inside, source_of
from ...factors.arrays import Array
from ...factors.errors import DataError
from ...factors.families.bijections import Bijection, interval
from ..values.evaluate import value
from ..values.plated import spread
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
    """What a constraint compares: elements of a variable, each `larger` one with a `smaller` one.

    An element that data compare with itself, as that of the root of a tree with its parent, is not compared.
    """

    variable: Random
    larger: np.ndarray
    smaller: np.ndarray


def compared_by(
    constraint: Expr, variables: Mapping[str, Random], data: Mapping[str, Array], sizes: Mapping[str, int]
) -> Compared | None:
    """What a constraint compares, one entry for each of its instances; None where it is no order in one variable."""
    pair = order_of(constraint)
    if pair is None or source_of(pair[0]) is not source_of(pair[1]):
        return None
    variable = source_of(pair[0])
    if not isinstance(variable, Random) or variable.name not in variables or variable.domain.event_ndim:
        return None
    chosen = [gather.index for side in pair for gather in gathers_of(side)]
    if any(isinstance(node, Random) and node.name not in data for node in inside(chosen)):
        return None
    shape = tuple(sizes[plate.name] for plate in variable.plates)
    numbers = jnp.arange(int(np.prod(shape))).reshape(shape)
    scope = Scope(dict(sizes), {**data, variable.name: numbers}, {})
    with jax.ensure_compile_time_eval():
        sides = [np.asarray(spread(value(side, scope), constraint.plates, sizes)) for side in pair]
    return Compared(variable, *(side.astype(np.int32) for side in sides))


def order_among(name: str, compared: list[Compared], count: int) -> Order:
    """The order of `count` elements that constraints state together. DataError where they contradict each other."""
    pairs = {
        (int(above), int(below))
        for one in compared
        for above, below in zip(one.larger.ravel(), one.smaller.ravel(), strict=True)
        if above != below
    }
    under: list[list[int]] = [[] for _ in range(count)]
    for above, below in sorted(pairs):
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
