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

from ...compiler.language.atoms import atom_key
from ...compiler.language.known_order import order_of
from ...compiler.language.nodes import Apply, Expr, Input, Random, gathers_of, inside, source_of, unnamed
from ...compiler.language.operations import DIVIDE, LOG, MULTIPLY, POWER, SUBTRACT, WHERE
from ...factors.arrays import Array
from ...factors.errors import DataError
from ...factors.factor import all_terms
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
    over: list[list[int]] = [[] for _ in range(count)]
    for above, below in sorted(stated):
        under[above].append(below)
        over[below].append(above)
    waits, levels = [len(below) for below in under], []
    level = [i for i in range(count) if not under[i]]
    while level:
        levels.append(level)
        for above in (above for i in level for above in over[i]):
            waits[above] -= 1
        level = sorted({above for i in level for above in over[i] if not waits[above]})
    if any(waits):
        stuck = next(i for i in range(count) if waits[i])
        raise DataError(
            f"Constraints put element {stuck} of '{name}' above itself, or above others that are, by way of others: no "
            "values are in such an order. Correct the index data, which must not go in a circle."
        )
    return Order(_rectangle(levels), _rectangle(under))


def _rectangle(rows: list[list[int]]) -> np.ndarray:
    found = np.full((len(rows), max([1, *map(len, rows)])), -1, np.int32)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return found


def _chain_above(order: Order) -> np.ndarray:
    """How many elements the longest chain upwards from each has, itself among them."""
    found = np.ones(len(order.below))
    for level in order.levels[::-1]:
        for i in level[level >= 0]:
            below = order.below[i][order.below[i] >= 0]
            found[below] = np.maximum(found[below], found[i] + 1.0)
    return found


def check_lengths(
    compared: Iterable[Compared], factors: Iterable[Random], scope: Scope, moved: Collection[str] = ()
) -> None:
    """DataError where a difference is zero, as data choose one element twice, and a positive number is needed.

    In the steps of a tree it is not asked for at roots.
    """
    known = [one for one in compared if not one.index_data & set(moved)]
    with jax.ensure_compile_time_eval():
        zero = [one for one in known if np.any(np.asarray(one.same(scope).value))]
    keys = {(atom_key(one.larger), atom_key(one.smaller)) for one in zero}
    for node in factors if keys else ():
        for term in all_terms(node.term):
            for edge, arg in term.args.items():
                kind = getattr(wanted := term.factor.edges.get(edge), "kind", wanted)
                if (length := _needed_above_zero(arg, kind in ("positive", "unit"), keys)) is not None:
                    raise DataError(
                        f"'{node.name}' needs '{length}' above zero, and the data choose one element twice, as that of "
                        "a root and its parent: there it is zero. Leave such rows out, or write cv.where(...) with a "
                        "number for them; the steps of a tree (m.tree) need neither."
                    )


def _needed_above_zero(expr: Expr, needed: bool, keys: Collection[tuple]) -> Expr | None:
    """A difference of such elements that must be above zero for an expression to have a value and a slope."""
    expr = unnamed(expr)
    if not isinstance(expr, Apply) or expr.operation is WHERE:
        return None
    if expr.operation is SUBTRACT and needed and tuple(map(atom_key, expr.args)) in keys:
        return expr
    for place, arg in enumerate(expr.args):
        is_whole = expr.operation is POWER and expr.option("exponent") > 0 and expr.option("exponent") % 1 == 0
        singular = expr.operation is LOG or (expr.operation is POWER and not is_whole)
        singular = singular or (expr.operation is DIVIDE and place == 1)
        passes = needed and expr.operation in (MULTIPLY, DIVIDE, POWER)
        if (found := _needed_above_zero(arg, singular or passes, keys)) is not None:
            return found
    return None


def in_order(order: Order, low: float, high: float, shape: tuple[int, ...]) -> Bijection:
    """Numbers between `low` and `high`, in an order, from unconstrained coordinates.

    x_i = l_i + exp(z_i), or l_i + (high - l_i) / (1 + m_i exp(-z_i)) where there is an upper end, with l_i the largest
    element below it and m_i the length of the longest chain from it upwards: at zero a chain is evenly spaced. Those
    that are above none are as everywhere, by `interval`, but for m_i.
    """
    count, free = len(order.below), np.flatnonzero((order.below < 0).all(1))
    first, bounded = interval(low, high).over((len(free),)), np.isfinite(high)
    is_free = np.zeros(count, bool)
    is_free[free] = True
    shift = np.log(_chain_above(order)) if bounded else np.zeros(count)

    def floors(x: Array) -> Array:
        """Where the interval of each element begins, given all of them."""
        return jnp.max(jnp.where(order.below < 0, -jnp.inf, x[order.below]), axis=1, initial=-jnp.inf)

    def forward(z: Array) -> Array:
        def climb(x: jax.Array, level: Array) -> tuple[jax.Array, None]:
            own = jnp.where(level < 0, count, level)
            floor = jnp.max(jnp.where(below[own] < 0, -jnp.inf, x[below[own]]), axis=1)
            up = (high - floor) * jax.nn.sigmoid(z[own]) if bounded else jnp.exp(z[own])
            return x.at[own].set(floor + up, mode="drop"), None

        z = jnp.append(z - shift, 0.0)
        below = jnp.concatenate([order.below, jnp.full((1, order.below.shape[1]), 0)])
        x = jnp.zeros(count).at[free].set(first.forward(z[free]))
        return jax.lax.scan(climb, x, jnp.asarray(order.levels[1:]))[0].reshape(shape)

    def backward(x: Array) -> Array:
        x = jnp.asarray(x, float).ravel()
        above = x - jnp.where(is_free, x - 1.0, floors(x))
        z = jnp.log(above) - (jnp.log(high - x) if bounded else 0.0)
        return z.at[free].set(first.backward(x[free])) + shift

    def log_jacobian(z: Array) -> Array:
        own = z - shift
        room = jnp.log(high - jnp.where(is_free, high - 1.0, floors(forward(z).ravel()))) if bounded else 0.0
        each = room + jax.nn.log_sigmoid(own) + jax.nn.log_sigmoid(-own) if bounded else z
        return jnp.sum(jnp.where(is_free, 0.0, each)) + first.log_jacobian(own[free])

    return Bijection(count, forward, backward, log_jacobian)
