"""The distribution of a discrete expression whose variables are taken to be independent.

Mostly the parts of an expression have no variable in common, and their distributions are combined. Where two parts read
the same elements of a variable (`b & cv.all(b, over=k)`, `b ^ b[index]`), all states of what they read are enumerated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...compiler.language.nodes import Apply, Expr, Gather, Let, Plate, Random, parents
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ..blocks.discrete.tables import AtomKey, evaluate, key_of, states
from ..values.evaluate import gather, known, value
from ..values.plated import Placed, mapped, spread, to_event
from ..values.scope import Scope
from .parts import Families

JOINT_STATES = 4096  # of variables that several parts of an expression read


class Read(NamedTuple):
    """A variable, and which of its elements an element of the expression reads."""

    variable: Random | Let
    elements: AtomKey


def distribution(expr: Expr, scope: Scope, families: Families) -> Placed:
    """The probabilities of all states of `expr` along a last axis, its variables independent with these `families`.

    An expression in which a variable occurs twice counts it once; a sum over a plate is a convolution. Raises
    UnsupportedError where parts that share variables have too many joint states.
    """
    number = states(expr, scope)
    axis = Plate("states of the result", number)
    if known(expr, scope):
        return mapped(lambda x: jax.nn.one_hot(jnp.asarray(x, int), number, dtype=float), value(expr, scope))
    if isinstance(expr, (Random, Let)) and expr.name in families:
        p = jnp.asarray(families[expr.name].mean())
        return Placed(jnp.stack([1.0 - p, p], axis=-1) if expr.domain.is_boolean else p, expr.plates)
    if isinstance(expr, Let):
        return distribution(expr.expression, scope, families)
    if _shared(reads := list(_reads(expr, scope, families))):
        return _jointly(expr, {variable.name: variable for variable, _ in reads}, scope, families)
    if isinstance(expr, Gather):
        source = distribution(expr.source, scope, families)
        if known(expr.index, scope):
            return gather(source, value(expr.index, scope), expr)
        chosen = distribution(expr.index, scope, families)
        return mapped(lambda p, weight: weight @ p, to_event(source, expr.axis), chosen, order=expr.plates)
    if isinstance(expr, Apply) and expr.operation.aggregate:
        return _over_plate(expr, scope, families)
    return _enumerated(expr, axis, scope, families)


def _reads(expr: Expr, scope: Scope, families: Families) -> Iterator[Read]:
    """The variables of an expression, each time with the elements that are read: a number of its own where unsure."""
    if known(expr, scope):
        return
    if isinstance(expr, (Random, Let)) and expr.name in families:
        yield Read(expr, key_of(expr))
    elif isinstance(expr, Apply) and expr.operation.aggregate:
        for variable, key in _reads(expr.args[0], scope, families):
            each = key == key_of(variable) and expr.option("over") in variable.plates
            # An element that is the same along the plate is read once for each element of the plate.
            yield Read(variable, ("over" if each else "repeated", expr.option("over"), key))
    elif isinstance(expr, Gather):
        for variable, key in _reads(expr.source, scope, families):
            yield Read(variable, ("gather", key_of(expr), key))
        yield from _reads(expr.index, scope, families)
    else:
        for part in parents(expr):
            yield from _reads(part, scope, families)


def _shared(reads: list[Read]) -> bool:
    """Whether some variable is read in two ways, so that the parts that read it depend on each other."""
    ways: dict[AtomKey, AtomKey] = {}
    return any(key[0] == "repeated" or ways.setdefault(key_of(variable), key) != key for variable, key in reads)


def _jointly(expr: Expr, variables: dict[str, Random | Let], scope: Scope, families: Families) -> Placed:
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
        columns = table[:, start : start + width]
        p = spread(distribution(variable, scope, families), variable.plates, scope.sizes).reshape(width, each[name])
        weight = weight * jnp.prod(p[jnp.arange(width), columns], axis=1)
        numbers = columns.reshape(len(table), *shapes[name])
        data[name] = jnp.asarray(numbers > 0 if variable.domain.is_boolean else numbers)
        start += width

    def at(state: dict[str, Array]) -> Array:
        return spread(value(expr, scope.with_data(state)), expr.plates, scope.sizes)

    outcomes = jax.nn.one_hot(jnp.asarray(jax.vmap(at)(data), int), states(expr, scope), dtype=float)
    return Placed(jnp.tensordot(weight, outcomes, axes=1), expr.plates)


def _enumerated(expr: Expr, axis: Plate, scope: Scope, families: Families) -> Placed:
    """All combinations of the states of the atoms of an expression."""
    atoms: dict[AtomKey, Expr] = {}
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
    for (key, node), axis_of_states in zip(atoms.items(), axes, strict=True):
        numbers = jnp.arange(states(node, scope))
        grids[key] = Placed(numbers > 0 if node.domain.is_boolean else numbers, (axis_of_states,))
        p = distribution(node, scope, families)
        weights.append(Placed(p.value, (*p.plates, axis_of_states)))
    results = Placed(jnp.arange(states(expr, scope)), (axis,))
    joint = mapped(
        lambda x, result, *w: jnp.where(x == result, math.prod(w), 0.0), evaluate(expr, scope, grids), results, *weights
    )
    for axis_of_states in axes:
        moved = to_event(joint, axis_of_states)
        joint = Placed(jnp.sum(moved.value, axis=len(moved.plates)), moved.plates)
    return to_event(joint, axis)


def _over_plate(expr: Apply, scope: Scope, families: Families) -> Placed:
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

    def add(
        total: Float[jax.Array, "*plates states"], more: Float[jax.Array, "*plates k"]
    ) -> tuple[Float[jax.Array, "*plates states"], None]:
        wide = jnp.pad(total, [(0, 0)] * (total.ndim - 1) + [(more.shape[-1], 0)])
        starts = range(more.shape[-1], 0, -1)
        return sum((more[..., [k]] * wide[..., at : at + size] for k, at in enumerate(starts)), jnp.zeros(())), None

    start = jnp.zeros((*p.shape[:-2], size)).at[..., 0].set(1.0)
    return Placed(jax.lax.scan(add, start, jnp.moveaxis(p, -2, 0))[0], elements.plates)
