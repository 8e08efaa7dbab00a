"""Values of expressions without random variables, or with observed ones only."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ...compiler.language.indexing import positions
from ...compiler.language.nodes import (
    Apply,
    Constant,
    Expr,
    Gather,
    Input,
    Let,
    Member,
    Once,
    Position,
    Random,
    parents,
)
from ...compiler.passes.join import Direction
from ...factors.arrays import Array
from ...factors.factor import Switch
from .joint_beliefs import direction_value
from .operations import over_plate, point_function
from .plated import Placed, mapped, to_event
from .scope import Scope


def value(expr: Expr, scope: Scope) -> Placed:
    """The value of an expression without random variables, or with observed ones only."""
    if isinstance(expr, Constant):
        return scope.seen(jnp.asarray(expr.value), expr.plates)
    if isinstance(expr, (Input, Random, Let)) and expr.name in scope.data:
        return scope.seen(scope.data[expr.name], expr.plates)
    if isinstance(expr, Position):
        return scope.seen(positions(expr, scope.whole_sizes), expr.plates)
    if isinstance(expr, Member):
        whole = dataclasses.replace(scope, window=None, sizes=scope.whole_sizes)
        sizes = [whole.sizes[plate.name] for plate in expr.plates]
        return scope.seen(members(value(expr.by, whole).value, *sizes)[expr.present], expr.plates)
    if isinstance(expr, Once):
        return once(expr, scope)
    if isinstance(expr, Direction):
        return direction_value(expr, lambda e, extra: value(e, scope.with_data(extra)), scope.sizes)
    if isinstance(expr, Let):
        return value(expr.expression, scope)
    if isinstance(expr, Gather):
        return gather(value(expr.source, scope), value(expr.index, scope), expr)
    assert isinstance(expr, Apply), f"{expr} has no value without inference"
    args = [value(arg, scope) for arg in expr.args]
    if "over" in dict(expr.options):
        return over_plate(expr, args[0], scope)
    return mapped(point_function(expr), *args, order=expr.plates)


def gather(source: Placed, index: Placed, expr: Gather) -> Placed:
    """source[index] on placed values; a source that is the same along the axis stays."""
    if expr.axis not in set(source.plates):
        return source
    position = jnp.asarray(index.value).astype(jnp.int32)
    return mapped(
        lambda s, i: jax.tree.map(lambda a: a[i], s),
        to_event(source, expr.axis),
        Placed(position, index.plates),
        order=expr.plates,
    )


def members(groups: Array, number: int, places: int) -> tuple[Array, Array]:
    """The rows of each group, by place, and whether there is one: those of a group follow each other in order."""
    order = jnp.argsort(groups, stable=True)
    edges = jnp.searchsorted(groups[order], jnp.arange(number + 1))
    place = edges[:-1, None] + jnp.arange(places)
    row = order[jnp.minimum(place, groups.shape[0] - 1)]
    return row.astype(jnp.int32), (place < edges[1:, None]).astype(float)


def once(expr: Once, scope: Scope) -> Placed:
    """The coefficients of a sum, those of equal elements added up at the first of them."""

    def event(placed: Placed) -> Placed:
        if expr.over in set(placed.plates):
            return to_event(placed, expr.over)
        size = scope.sizes[expr.over.name]
        return mapped(lambda x: jnp.broadcast_to(x, (size,)), placed)

    def added(coefficients: Array, *indices: Array) -> Array:
        key = jnp.zeros(coefficients.shape, int)
        for chosen, gather in zip(indices, expr.gathers, strict=True):
            key = key * scope.sizes[gather.axis.name] + chosen
        order = jnp.argsort(key, stable=True)
        first = jnp.concatenate([jnp.ones(1, bool), jnp.diff(key[order]) != 0])
        run = jnp.cumsum(first) - 1
        totals = jax.ops.segment_sum(coefficients[order], run, coefficients.shape[0])
        return jnp.zeros_like(coefficients).at[order].set(jnp.where(first, totals[run], 0.0))

    operands = [event(value(node, scope)) for node in parents(expr)]
    found = mapped(added, *operands, order=expr.plates)
    return Placed(found.value, (*found.plates, expr.over))


def known(expr: Expr, scope: Scope) -> bool:
    """True when the value of `expr` follows from the data."""
    if isinstance(expr, (Input, Random, Let)) and expr.name in scope.data:
        return True
    if isinstance(expr, Random):
        return False
    return all(known(child, scope) for child in parents(expr))


def case_number(switch: Switch, scope: Scope) -> Placed:
    """The number of the case that a known selector chooses: that of true is the first."""
    selector = value(switch.selector, scope)
    number = jnp.asarray(selector.value).astype(jnp.int32)
    return Placed(1 - number if switch.selector.domain.is_boolean else number, selector.plates)
