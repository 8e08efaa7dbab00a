"""Gaussian noise that only one comparison sees is integrated out of a joint log density: a probit remains.

`margin ~ N(m, v)` with the constraint `margin > 0` has no density that gradients can follow; the probability
Phi(m / sqrt v) of the constraint has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ..compiler.expressions import Apply, Expr, Let, Random, unnamed
from ..compiler.polynomial import variables
from ..factors.factor import Term
from .evaluate import Scope, value
from .placed import Placed, mapped


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """left > right, with the Gaussian variables that enter nowhere else; `outcome` is the observed let, if any."""

    name: str
    expression: Apply
    noise: tuple[Random, ...]
    outcome: Let | None = None


def comparisons(
    events: Mapping[str, tuple[Expr, Let | None]], consumers: Mapping[str, tuple[Expr, ...]], free: Mapping[str, Random]
) -> dict[str, Comparison]:
    """The events (constraints and observed booleans) that are comparisons with private Gaussian noise.

    `consumers` has the parts of every factor and event by name; `free` the variables that are not observed.
    """
    uses: dict[str, set[str]] = {}
    for consumer, roots in consumers.items():
        for variable in _names(roots):
            uses.setdefault(variable, set()).add(consumer)
    found = {}
    for name, (expr, outcome) in events.items():
        expr = unnamed(expr)
        if not isinstance(expr, Apply) or expr.op != "greater":
            continue
        noise = tuple(
            variable
            for variable in free.values()
            if uses.get(variable.name) == {name}
            and isinstance(variable.term, Term)
            and variable.term.factor.name == "gaussian"
            and set(variable.plates) == set(expr.plates)
            and all(_linear(side, variable) for side in expr.args)
        )
        if noise:
            found[name] = Comparison(name, expr, noise, outcome)
    return found


def comparison_density(event: Comparison, scope: Scope) -> Placed:
    """log P(event) of every instance: a normal distribution function of the expected difference over its sd."""
    difference = event.expression.args[0] - event.expression.args[1]
    parts: list[Any] = [variable.term for variable in event.noise]
    means = {v.name: value(t.args["mean"], scope) for v, t in zip(event.noise, parts, strict=True)}

    def at(values: dict[str, Placed]) -> Placed:
        return value(difference, Scope(scope.sizes, {**scope.data, **values}, {}))

    centre, variances = at(means), []
    for variable, term in zip(event.noise, parts, strict=True):
        moved = mapped(lambda m: m + 1.0, means[variable.name])
        slope = mapped(jnp.subtract, at({**means, variable.name: moved}), centre)
        variances.append(mapped(lambda s, p: s**2 / p, slope, value(term.args["precision"], scope)))
    sign = Placed(jnp.asarray(1.0), ())
    if event.outcome is not None:
        sign = mapped(lambda o: 2.0 * o - 1.0, Placed(scope.data[event.outcome.name], event.outcome.plates))

    def density(sign, mean, *variance):
        return jax.scipy.special.log_ndtr(sign * mean / jnp.sqrt(sum(variance)))

    return mapped(density, sign, centre, *variances)


def _names(roots: Iterable[Expr]) -> set[str]:
    """The names of the random variables directly below."""
    return {variable.name for root in roots for variable in variables(root)}


def _linear(expr: Expr, variable: Random) -> bool:
    """Whether `expr` is of first degree in a variable that it reads element by element."""
    if variable.name not in _names((expr,)):
        return True
    expr = unnamed(expr)
    if expr is variable:
        return True
    if not isinstance(expr, Apply):
        return False
    holds = [variable.name in _names((arg,)) for arg in expr.args]
    if expr.op in ("add", "subtract", "negate") or (expr.op == "multiply" and sum(holds) == 1):
        return all(_linear(arg, variable) for arg in expr.args)
    return expr.op == "divide" and not holds[1] and _linear(expr.args[0], variable)
