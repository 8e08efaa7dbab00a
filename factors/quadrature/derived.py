"""What follows from a log density alone: E[log f] with its messages, and the predictive distribution of the outcome.

So VMP and NCVMP serve every factor. Known arguments enter as their values; discrete ones are enumerated; up to two
continuous scalars get a product of quadrature rules, anything more a fixed cloud of quasi-random points.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, PyTree

from ..arrays import Array
from ..factor import Factor
from ..families.base import ExponentialFamily
from ..moments import Moments, Positive
from .cloud import POINTS, cloud
from .nodes import Rule, gamma_rule, regression, scalar_rule
from .predictive import predictive

_DISCRETE = frozenset({"boolean", "category", "count"})
_SCALARS = frozenset({"real", "sparse", "positive", "unit"})
MOST_SCALARS = 2


def completed(factor: Factor, random: Iterable[str], out_kind: str) -> Factor:
    """The factor with all that it does not declare derived from its log density.

    `random` names the arguments (and `out`) that are not known; `out_kind` is the kind of the domain of `out`. A factor
    that declares everything is returned as it is.
    """
    found, derived = factor, factor.expected_log is None
    random = frozenset(random)
    special = None if factor.with_random is None else factor.with_random(random)
    if special is not None:
        found = dataclasses.replace(found, expected_log=special, accuracy="quadrature", derived=derived)
    if found.expected_log is None:
        average = expected_log(factor, random, out_kind)
        accuracy = _accuracy(factor, random, out_kind)
        found = dataclasses.replace(found, expected_log=average, accuracy=accuracy, derived=True)
    if found.predict is None:
        found = dataclasses.replace(found, predict=functools.partial(_predict, factor, random, out_kind))
    return found


def _accuracy(factor: Factor, random: Iterable[str], out_kind: str) -> str:
    continuous = [kind for kind in (_kind(factor, edge, out_kind) for edge in random) if kind not in _DISCRETE]
    if len(continuous) <= MOST_SCALARS and set(continuous) <= _SCALARS:
        return "quadrature" if continuous else "exact"
    return f"monte carlo, {POINTS} fixed points"


def _kind(factor: Factor, edge: str, out_kind: str) -> str:
    kind = out_kind if edge == "out" else factor.edges[edge]
    return "vector" if kind == "concentration" else kind


def expected_log(factor: Factor, random: frozenset[str], out_kind: str) -> Callable[..., Array]:
    """E[log f] as a function of the moments of `out` and of the arguments, given which of them are random."""
    kinds = {edge: _kind(factor, edge, out_kind) for edge in ("out", *factor.edges)}
    expectation = expectation_of(
        lambda points, known: factor.log_density(**points, **known), {edge: kinds[edge] for edge in random}
    )

    def expected(out: Moments, **arguments: Moments) -> Array:
        moments = {"out": out, **arguments}
        known = {edge: value_of(kinds[edge], m) for edge, m in moments.items() if edge not in random}
        if not random:
            return factor.log_density(**known)
        return expectation({edge: moments[edge] for edge in random}, known)

    return expected


def expectation_of(
    function: Callable[[Mapping[str, Array], Mapping[str, PyTree]], Array], kinds: Mapping[str, str]
) -> Callable[[dict[str, Moments], dict[str, PyTree]], Array]:
    """E f(points, known) under independent beliefs of these kinds, as a function of their moments and of `known`.

    Its derivative in the moments is the message rule of `nodes` and `cloud`; in `known`, whatever that is, the
    expectation of the derivative.
    """
    order = tuple(sorted(kinds))

    def parts(moments: Mapping[str, Moments], known: Mapping[str, PyTree]) -> tuple[list[Rule], Array]:
        rules = rules_of({edge: kinds[edge] for edge in order}, moments)
        return rules, evaluated(lambda points: function(points, known), rules)

    @jax.custom_jvp
    def expectation(moments: dict[str, Moments], known: dict[str, PyTree]) -> Float[Array, ""]:
        return contracted(*parts(moments, known))

    def derivative(primals: PyTree, tangents: PyTree) -> tuple[Float[Array, ""], Float[Array, ""]]:
        moments, known = primals
        moved, shifted = tangents
        rules, values = parts(moments, known)
        tangent = jnp.zeros(())
        total = contracted(rules, values)
        possible = total != -jnp.inf  # what cannot be has no slope
        for number, rule in enumerate(rules):
            message = rule.gradient(marginal(rules, values, number))
            for edge, gradient in message.items():
                for slope, change in zip(gradient, moved[edge], strict=True):
                    if not _is_zero(change):
                        tangent = tangent + jnp.sum(jnp.where(possible, slope, 0.0) * change)
        leaves, structure = jax.tree.flatten(known)
        changes = structure.flatten_up_to(shifted)
        live = [number for number, change in enumerate(changes) if not _is_zero(change)]
        if live:

            def of_live(some: list[Array]) -> Array:
                filled = list(leaves)
                for number, leaf in zip(live, some, strict=True):
                    filled[number] = leaf
                known = jax.tree.unflatten(structure, filled)
                return contracted(rules, evaluated(lambda points: function(points, known), rules))

            tangent = tangent + jax.jvp(of_live, ([leaves[i] for i in live],), ([changes[i] for i in live],))[1]
        return total, tangent

    expectation.defjvp(derivative, symbolic_zeros=True)
    return expectation


def _is_zero(tangent: object) -> bool:
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


def value_of(kind: str, moments: Any) -> Array:
    """The value whose point has these moments."""
    if kind in ("unit", "simplex"):
        return jnp.exp(moments.log)
    if kind == "boolean":
        return moments.probability
    if kind == "category":
        return jnp.argmax(moments.probability, axis=-1)
    return moments.mean


def rules_of(kinds: Mapping[str, str], moments: Mapping[str, Moments]) -> list[Rule]:
    """The rules whose product covers all random arguments."""
    continuous = {edge: kind for edge, kind in kinds.items() if kind not in _DISCRETE}
    rules = [scalar_rule(edge, kind, moments[edge]) for edge, kind in kinds.items() if kind in _DISCRETE]
    if len(continuous) <= MOST_SCALARS and set(continuous.values()) <= _SCALARS:
        return rules + [scalar_rule(edge, kind, moments[edge]) for edge, kind in continuous.items()]
    return [*rules, cloud(continuous, moments)]


def evaluated(function: Callable[[dict[str, Array]], Array], rules: list[Rule]) -> Array:
    """The function at the product of all points, one axis for each rule; what has no weight counts nothing."""

    def over(fixed: dict[str, Array], rest: list[Rule]) -> Array:
        if not rest:
            return function(fixed)
        return jax.vmap(lambda here: over({**fixed, **here}, rest[1:]))(rest[0].points)

    values = over({}, rules)
    for axis, rule in enumerate(rules):
        shape = [1] * values.ndim
        shape[axis] = -1
        values = jnp.where((rule.weights == 0).reshape(shape) & ~jnp.isfinite(values), 0.0, values)
    return values


def contracted(rules: list[Rule], values: Array) -> Array:
    """The expectation over all rules."""
    for rule in reversed(rules):
        mean = rule.mean
        values = (
            mean(values)
            if values.ndim == 1
            else jax.vmap(mean)(values.reshape(-1, values.shape[-1])).reshape(values.shape[:-1])
        )
    return values


def marginal(rules: list[Rule], values: Array, kept: int) -> Array:
    """The expectation over all rules but one, at the points of that one."""
    moved = jnp.moveaxis(values, kept, 0)
    others = [rule for number, rule in enumerate(rules) if number != kept]
    return jax.vmap(lambda part: contracted(others, part))(moved) if others else moved


def positive_expectation(function: Callable[[Array, Array], Array], moments: Positive) -> Float[Array, ""]:
    """E f(x, log x) under the Gamma belief with these moments, with the gradient of the message rule.

    `function` takes x and log x, which need not be numbers apart: x may underflow. For log gamma(x), measured to 1e-12
    relative for shapes from 1e-3 to 1e6.
    """

    @jax.custom_jvp
    def expectation(mean, log):
        weights, values, _ = parts(mean, log)
        return weights @ values

    def parts(mean, log):
        v, weights, scale = gamma_rule(Positive(mean, log))
        return weights, function(jnp.exp(v + scale), v + scale), v

    @expectation.defjvp
    def _(primals, tangents):
        weights, values, v = parts(*primals)
        one, two = regression((v, jnp.expm1(v) - v), weights, values)
        return weights @ values, two / primals[0] * tangents[0] + (one - two) * tangents[1]

    return expectation(moments.mean, moments.log)


def _predict(factor: Factor, random: frozenset[str], out_kind: str, **arguments: Moments) -> ExponentialFamily:
    kinds = {edge: _kind(factor, edge, out_kind) for edge in arguments}
    known = {edge: value_of(kinds[edge], m) for edge, m in arguments.items() if edge not in random}
    moments = {edge: m for edge, m in arguments.items() if edge in random}
    rules = rules_of({edge: kinds[edge] for edge in moments}, moments)
    return predictive(factor.name, out_kind, lambda out, points: factor.log_density(out, **points, **known), rules)
