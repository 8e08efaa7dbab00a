"""Gaussian noise that only one comparison sees is integrated out of a joint log density: a probit remains.

`margin ~ N(m, v)` with the constraint `margin > 0` has no density that gradients can follow; the probability
Phi(m / sqrt v) of the constraint has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...compiler.algebra.degree import degree_in
from ...compiler.language.atoms import variables
from ...compiler.language.nodes import Apply, Expr, Let, Random, unnamed
from ...factors.factor import Term
from ...factors.roles import ScalarGaussian, gaussian_arguments
from ..values.evaluate import value
from ..values.plated import Placed, mapped
from ..values.scope import Scope


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
            and isinstance(variable.term.factor.role, ScalarGaussian)
            and set(variable.plates) == set(expr.plates)
            and all(degree_in(side, variable) is not None for side in expr.args)
        )
        if noise:
            found[name] = Comparison(name, expr, noise, outcome)
    return found


class Margin(NamedTuple):
    """left - right of a comparison as a linear form of its noise: where that is at its means, and its slopes.

    `means`, `slopes` and `precisions` are those of the noise, by name; `sign` is -1 where the comparison is false.
    """

    centre: Placed
    sign: Placed
    means: dict[str, Placed]
    slopes: dict[str, Placed]
    precisions: dict[str, Placed]

    @property
    def variance(self) -> Placed:
        """That of the difference."""
        each = [mapped(lambda s, p: s**2 / p, self.slopes[name], self.precisions[name]) for name in self.means]
        return mapped(lambda *parts: sum(parts), *each)


def margin_of(event: Comparison, scope: Scope) -> Margin:
    """The difference that a comparison is about, given all but its noise."""
    difference = event.expression.args[0] - event.expression.args[1]
    parts = {v.name: gaussian_arguments(v.term) for v in event.noise if isinstance(v.term, Term)}  # as all are
    means = {name: value(mean, scope) for name, (mean, _) in parts.items()}

    def at(values: dict[str, Placed]) -> Placed:
        return value(difference, Scope(scope.sizes, {**scope.data, **values}, {}))

    centre, slopes = at(means), {}
    for name, mean in means.items():
        slopes[name] = mapped(jnp.subtract, at({**means, name: mapped(lambda m: m + 1.0, mean)}), centre)
    sign = Placed(jnp.asarray(1.0), ())
    if event.outcome is not None:
        sign = mapped(lambda o: 2.0 * o - 1.0, Placed(scope.data[event.outcome.name], event.outcome.plates))
    return Margin(centre, sign, means, slopes, {name: value(w, scope) for name, (_, w) in parts.items()})


def comparison_density(event: Comparison, scope: Scope) -> Placed:
    """log P(event) of every instance: a normal distribution function of the expected difference over its sd."""
    margin = margin_of(event, scope)

    def density(sign, mean, variance):
        return jax.scipy.special.log_ndtr(sign * mean / jnp.sqrt(variance))

    return mapped(density, margin.sign, margin.centre, margin.variance)


def _names(roots: Iterable[Expr]) -> set[str]:
    """The names of the random variables directly below."""
    return {variable.name for root in roots for variable in variables(root)}
