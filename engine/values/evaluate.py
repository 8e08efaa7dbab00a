"""Values of expressions without random variables, or with observed ones only."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...compiler.language.indexing import positions
from ...compiler.language.nodes import Apply, Constant, Expr, Gather, Input, Let, Position, Random, parents
from ...compiler.passes.join import Direction
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
        return scope.seen(positions(expr, scope.sizes), expr.plates)
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


def known(expr: Expr, scope: Scope) -> bool:
    """True when the value of `expr` follows from the data."""
    if isinstance(expr, (Input, Random, Let)) and expr.name in scope.data:
        return True
    if isinstance(expr, Random):
        return False
    return all(known(child, scope) for child in parents(expr))
