"""The distribution of a discrete expression whose variables are taken to be independent."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ..compiler.expressions import Apply, Expr, Gather, Let, Plate, Random, parents
from ..compiler.logic import AGGREGATES
from .evaluate import Scope, gather, known, value
from .placed import Placed, mapped, spread, to_event
from .tables import evaluate, key_of, states


def distribution(expr: Expr, scope: Scope, families: Any) -> Placed:
    """The probabilities of all states of `expr` along a last axis, its variables independent with these `families`.

    An expression in which a variable occurs twice counts it once; a sum over a plate is a convolution, and independent
    of the other variables of the expression too.
    """
    number = states(expr, scope)
    axis = Plate("states of the result", number)
    if known(expr, scope):
        found = value(expr, scope)
        return mapped(lambda x: jax.nn.one_hot(jnp.asarray(x, int), number, dtype=float), found)
    if isinstance(expr, (Random, Let)) and expr.name in families:
        p = jnp.asarray(families[expr.name].mean())
        return Placed(jnp.stack([1.0 - p, p], axis=-1) if expr.domain.kind == "boolean" else p, expr.plates)
    if isinstance(expr, Let):
        return distribution(expr.expression, scope, families)
    if isinstance(expr, Gather):
        source = distribution(expr.source, scope, families)
        if known(expr.index, scope):
            return gather(source, value(expr.index, scope), expr)
        chosen = distribution(expr.index, scope, families)
        return mapped(lambda p, weight: weight @ p, to_event(source, expr.axis), chosen, order=expr.plates)
    if isinstance(expr, Apply) and expr.op in AGGREGATES:
        return _over_plate(expr, scope, families)
    return _enumerated(expr, axis, scope, families)


def _enumerated(expr: Expr, axis: Plate, scope: Scope, families: Any) -> Placed:
    """All combinations of the states of the atoms of an expression."""
    atoms: dict[tuple, Expr] = {}
    stack = list(parents(expr))
    while stack:
        node = stack.pop()
        if known(node, scope):
            continue
        if isinstance(node, Apply) and node.op not in AGGREGATES:
            stack.extend(node.args)
        elif isinstance(node, Let) and node.name not in families:
            stack.append(node.expression)
        else:
            atoms[key_of(node)] = node
    axes = [Plate(f"states of {node}", states(node, scope)) for node in atoms.values()]
    grids, weights = {}, []
    for (key, node), own in zip(atoms.items(), axes, strict=True):
        numbers = jnp.arange(own.size)
        grids[key] = Placed(numbers > 0 if node.domain.kind == "boolean" else numbers, (own,))
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
