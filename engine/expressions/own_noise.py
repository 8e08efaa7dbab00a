"""Predicted Gaussian variables in an expression as their mean plus a noise of their own, where a parent ties them.

What nothing observed depends on has a marginal of its own, computed forward. In an expression of several that share
what they are made of, their marginals are not enough: b ~ N(a, v) is a + sqrt(v) e, and e is independent of all else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import jax.numpy as jnp
import numpy as np

from ...compiler.algebra.known import latent_names
from ...compiler.graph import Plan
from ...compiler.language.indexing import pushed
from ...compiler.language.nodes import Apply, Constant, Expr, Gather, Let, Random, inside, is_data, parents
from ...factors import domains
from ...factors.factor import Term
from ...factors.families import FOR_DOMAIN, Family
from ...factors.moments import Real
from ...factors.real.gaussian import factor as gaussian
from ...factors.roles import ScalarGaussian, gaussian_arguments

_STANDARD = Term(
    gaussian,
    {"mean": Constant(np.array(0.0), (), domains.real), "precision": Constant(np.array(1.0), (), domains.positive)},
)
MOST = 32  # variables that are written out in one expression


def written_out(graph: Plan, expr: Expr) -> tuple[Expr, tuple[Random, ...]]:
    """The expression, with those predicted Gaussian variables written out that share a parent, and their noises."""
    noises: list[Random] = []
    while len(noises) < MOST and (node := _youngest_tied(graph, expr)) is not None:
        assert isinstance(node.term, Term)
        mean, precision = gaussian_arguments(node.term)
        noise = Random(f"noise of {node.name}", _STANDARD, node.plates, domains.real)
        found = _replaced(expr, node, mean + noise * precision**-0.5)
        if found is None:
            break
        expr = found
        noises.append(noise)
    return expr, tuple(noises)


def standard(noises: Iterable[Random], sizes: Mapping[str, int]) -> dict[str, Family]:
    """The families of such noises."""
    shapes = {noise.name: tuple(sizes[plate.name] for plate in noise.plates) for noise in noises}
    return {n: FOR_DOMAIN["real"].from_moments(Real(jnp.zeros(s), jnp.ones(s))) for n, s in shapes.items()}


def _youngest_tied(graph: Plan, expr: Expr) -> Random | None:
    """The last declared of the predicted Gaussian variables that share random parents with other parts."""
    names = latent_names(graph, [expr])
    ancestors = {name: _above(graph, name) for name in names}
    own = {name: names_read(expr, name) for name in names}
    for name in reversed([*graph.model.randoms]):
        if name not in ancestors or name not in graph.forward or not _is_gaussian(graph.model.randoms[name]):
            continue
        others = set().union(*(ancestors[other] | {other} for other in names if other != name))
        if ancestors[name] & others or (own[name] > 1 and ancestors[name]):
            return graph.model.randoms[name]
    return None


def names_read(expr: Expr, name: str) -> int:
    """In how many ways an expression reads elements of a variable; more than one where it folds a plate of it."""
    ways, stack = 0, [(expr, False)]
    while stack:
        node, folded = stack.pop()
        if isinstance(node, Random) and node.name == name:
            ways += 2 if folded and node.plates else 1
        elif isinstance(node, (Apply, Gather, Let)):
            several = isinstance(node, Apply) and node.over is not None
            stack += [(child, folded or several) for child in parents(node)]
    return ways


def _above(graph: Plan, name: str) -> set[str]:
    """The random variables that a predicted one is made of, directly or not; of one with a belief none."""
    found: set[str] = set()
    stack = [name]
    while stack:
        here = stack.pop()
        if here in graph.forward and here in graph.model.randoms:
            more = set(latent_names(graph, [*parents(graph.model.randoms[here])])) - found
            found |= more
            stack += more
    return found


def _is_gaussian(node: Random) -> bool:
    return isinstance(node.term, Term) and isinstance(node.term.factor.role, ScalarGaussian)


def _replaced(expr: Expr, node: Random, by: Expr) -> Expr | None:
    """The expression with one variable written out; None where a random index chooses among its elements."""
    if expr is node:
        return by
    if not any(part is node for part in inside([expr])):
        return expr
    if isinstance(expr, Let):
        return _replaced(expr.expression, node, by)
    if isinstance(expr, Gather):
        source = _replaced(expr.source, node, by)
        if source is None or not is_data(expr.index):
            return None
        return pushed(source, expr.index, expr.axis)
    if isinstance(expr, Apply):
        args = [_replaced(arg, node, by) for arg in expr.args]
        return None if None in [a if a is None else 0 for a in args] else dataclasses.replace(expr, args=tuple(args))
    return None
