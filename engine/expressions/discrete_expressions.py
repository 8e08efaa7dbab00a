"""The distribution of a discrete expression whose variables are taken to be independent.

Mostly the parts of an expression have no variable in common, and their distributions are combined. Where two parts read
the same elements of a variable (`b & cv.all(b, over=k)`, `b ^ b[index]`), all states of what they read are enumerated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import Apply, Expr, Gather, Let, Plate, Random, parents
from ...factors.errors import UnsupportedError
from ..blocks.discrete.tables import evaluate, key_of, states
from ..values.evaluate import gather, known, value
from ..values.plated import Placed, mapped, spread, to_event
from ..values.scope import Scope

JOINT_STATES = 4096  # of variables that several parts of an expression read
Read = tuple[Expr, tuple]  # a variable, and which of its elements an element of the expression reads


def distribution(expr: Expr, scope: Scope, families: Any) -> Placed:
    """The probabilities of all states of `expr` along a last axis, its variables independent with these `families`.

    An expression in which a variable occurs twice counts it once; a sum over a plate is a convolution. Raises
    UnsupportedError where parts that share variables have too many joint states.
    """
    number = states(expr, scope)
    axis = Plate("states of the result", number)
    if known(expr, scope):
        found = value(expr, scope)
        return mapped(lambda x: jax.nn.one_hot(jnp.asarray(x, int), number, dtype=float), found)
    if isinstance(expr, (Random, Let)) and expr.name in families:
        p = jnp.asarray(families[expr.name].mean())
        return Placed(jnp.stack([1.0 - p, p], axis=-1) if expr.domain.is_boolean else p, expr.plates)
    if isinstance(expr, Let):
        return distribution(expr.expression, scope, families)
    if _shared(reads := list(_reads(expr, scope, families))):
        return _jointly(expr, {variable.name: variable for variable, _ in reads}, scope, families)  # type: ignore[attr-defined]
    if isinstance(expr, Gather):
        source = distribution(expr.source, scope, families)
        if known(expr.index, scope):
            return gather(source, value(expr.index, scope), expr)
        chosen = distribution(expr.index, scope, families)
        return mapped(lambda p, weight: weight @ p, to_event(source, expr.axis), chosen, order=expr.plates)
    if isinstance(expr, Apply) and expr.operation.aggregate:
        return _over_plate(expr, scope, families)
    return _enumerated(expr, axis, scope, families)


def _reads(expr: Expr, scope: Scope, families: Any) -> Iterator[Read]:
    """The variables of an expression, each time with the elements that are read: a number of its own where unsure."""
    if known(expr, scope):
        return
    if isinstance(expr, (Random, Let)) and expr.name in families:
        yield expr, key_of(expr)
    elif isinstance(expr, Apply) and expr.operation.aggregate:
        for variable, key in _reads(expr.args[0], scope, families):
            each = key == key_of(variable) and expr.option("over") in variable.plates
            # An element that is the same along the plate is read once for each element of the plate.
            yield variable, (("over", expr.option("over"), key) if each else ("repeated", expr.option("over"), key))
    elif isinstance(expr, Gather):
        for variable, key in _reads(expr.source, scope, families):
            yield variable, ("gather", key_of(expr), key)
        yield from _reads(expr.index, scope, families)
    else:
        for part in parents(expr):
            yield from _reads(part, scope, families)


def _shared(reads: list[Read]) -> bool:
    """Whether some variable is read in two ways, so that the parts that read it depend on each other."""
    ways: dict[tuple, tuple] = {}
    return any(key[0] == "repeated" or ways.setdefault(key_of(variable), key) != key for variable, key in reads)


def _jointly(expr: Expr, variables: dict[str, Expr], scope: Scope, families: Any) -> Placed:
    """The expression at all joint states of its variables, all elements of each, weighted by their probabilities."""
    shapes = {name: tuple(scope.sizes[plate.name] for plate in v.plates) for name, v in variables.items()}
    each = {name: states(v, scope) for name, v in variables.items()}
    if sum(math.prod(shapes[name]) * math.log(each[name]) for name in variables) > math.log(JOINT_STATES) + 1e-9:
        raise UnsupportedError(
            f"'{expr}' reads {', '.join(repr(name) for name in variables)} in several ways, one element and all of "
            "them, say. Such parts depend on each other, and together the variables have more than "
            f"{JOINT_STATES:,} states. Name the parts apart, or plates of fewer elements."
        )
    ranges = [range(each[name]) for name in variables for _ in range(math.prod(shapes[name]))]
    table = np.array(list(itertools.product(*ranges)), int)
    weight, start, data = jnp.ones(len(table)), 0, {}
    for name, variable in variables.items():
        width = math.prod(shapes[name])
        own = table[:, start : start + width]
        p = spread(distribution(variable, scope, families), variable.plates, scope.sizes).reshape(width, each[name])
        weight = weight * jnp.prod(p[jnp.arange(width), own], axis=1)
        numbers = own.reshape(len(table), *shapes[name])
        data[name] = jnp.asarray(numbers > 0 if variable.domain.is_boolean else numbers)
        start += width

    def at(one: dict[str, Any]) -> Any:
        return spread(value(expr, scope.with_data(one)), expr.plates, scope.sizes)

    found = jax.nn.one_hot(jnp.asarray(jax.vmap(at)(data), int), states(expr, scope), dtype=float)
    return Placed(jnp.tensordot(weight, found, axes=1), expr.plates)


def _enumerated(expr: Expr, axis: Plate, scope: Scope, families: Any) -> Placed:
    """All combinations of the states of the atoms of an expression."""
    atoms: dict[tuple, Expr] = {}
    stack = list(parents(expr))
    while stack:
        node = stack.pop()
        if known(node, scope):
            continue
        if isinstance(node, Apply) and not node.operation.aggregate:
            stack.extend(node.args)
        elif isinstance(node, Let) and node.name not in families:
            stack.append(node.expression)
        else:
            atoms[key_of(node)] = node
    axes = [Plate(f"states of {node}", states(node, scope)) for node in atoms.values()]
    grids, weights = {}, []
    for (key, node), own in zip(atoms.items(), axes, strict=True):
        numbers = jnp.arange(own.size)
        grids[key] = Placed(numbers > 0 if node.domain.is_boolean else numbers, (own,))
        found = distribution(node, scope, families)
        weights.append(Placed(found.value, (*found.plates, own)))
    results = Placed(jnp.arange(axis.size), (axis,))
    joint = mapped(
        lambda x, result, *w: jnp.where(x == result, math.prod(w), 0.0), evaluate(expr, scope, grids), results, *weights
    )
    for own in axes:
        moved = to_event(joint, own)
        joint = Placed(jnp.sum(moved.value, axis=len(moved.plates)), moved.plates)
    return to_event(joint, axis)


def _over_plate(expr: Apply, scope: Scope, families: Any) -> Placed:
    """How many are true, whether all or any are; for categories the distribution of their sum."""
    inner = expr.args[0]
    element = spread(distribution(inner, scope, families), inner.plates, scope.sizes)
    elements = to_event(Placed(element, inner.plates), expr.option("over"))
    p = elements.value
    if expr.op != "sum":
        outcome = 1 if expr.op == "all" else 0
        same = jnp.prod(p[..., outcome], axis=-1)
        return Placed(jnp.stack([1.0 - same, same] if outcome else [same, 1.0 - same], axis=-1), elements.plates)
    size = states(expr, scope)

    def add(total: Any, own: Any) -> tuple[Any, None]:
        wide = jnp.pad(total, [(0, 0)] * (total.ndim - 1) + [(own.shape[-1], 0)])
        starts = range(own.shape[-1], 0, -1)
        return sum((own[..., [k]] * wide[..., at : at + size] for k, at in enumerate(starts)), jnp.zeros(())), None

    start = jnp.zeros((*p.shape[:-2], size)).at[..., 0].set(1.0)
    return Placed(jax.lax.scan(add, start, jnp.moveaxis(p, -2, 0))[0], elements.plates)
