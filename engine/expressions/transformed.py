"""Marginals of named probabilities and positive numbers that are functions of others: matched mean and variance."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...compiler.algebra.averages import POLYNOMIAL
from ...compiler.language.nodes import Apply, Expr, applies, unnamed
from ...compiler.language.operations import CUMPROD
from ...factors import LINKS
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.families import FOR_DOMAIN, Family, TwoMomentFamily
from ...factors.links import exp
from ...factors.moments import Positive, Real, Unit
from ...factors.quadrature import gaussian_expectation
from ..blocks.site.sites import SMALLEST_VARIANCE
from ..values.moments import moments
from ..values.operations import along, kept
from ..values.plated import Placed, mapped
from ..values.scope import Scope


def probability(expr: Expr, scope: Scope) -> Placed:
    """The member of the family of the mean and variance of a link of a Gaussian number, or of a product of sticks."""
    expr = unnamed(expr)
    if applies(expr, CUMPROD):
        return _product_along(expr, scope)
    if not isinstance(expr, Apply) or expr.op not in ("logistic", "probit"):
        raise UnsupportedError(
            f"The marginal of the probability '{expr}' has no family of its own. Read the marginals of its arguments."
        )
    link = LINKS[expr.op].value

    def matched(argument: Real) -> Family:
        variance = jnp.maximum(argument.variance, SMALLEST_VARIANCE)
        mean = gaussian_expectation(link, argument.mean, variance)
        spread = gaussian_expectation(lambda s: (link(s) - mean) ** 2, argument.mean, variance)
        return matching("unit", mean, spread)

    return mapped(matched, moments(expr.args[0], scope, "real"))


def _product_along(expr: Apply, scope: Scope) -> Placed:
    """Of independent probabilities, whose means and whose means of squares are multiplied."""

    def matched(sticks: Unit) -> Family:
        belief = FOR_DOMAIN["unit"].from_moments(sticks)
        mean, square = jnp.cumprod(belief.mean()), jnp.cumprod(belief.variance() + belief.mean() ** 2)
        return matching("unit", mean, jnp.maximum(square - mean**2, SMALLEST_VARIANCE))

    return kept(expr, mapped(matched, along(expr, moments(expr.args[0], scope, "unit"), scope), order=expr.plates))


def positive(expr: Expr, scope: Scope) -> Placed:
    """The member of the family of the mean and variance of a positive expression.

    Where the variance is infinite, as that of 1 / x may be, that of E x and E log x.
    """
    expr = unnamed(expr)
    if isinstance(expr, Apply) and expr.op == "exp":
        return mapped(lambda s: exp.belief(s, SMALLEST_VARIANCE), moments(expr.args[0], scope, "real"))
    try:
        number = moments(expr, scope, POLYNOMIAL)
    except UnsupportedError:
        return mapped(_of_moments, moments(expr, scope, "positive"))
    try:
        stats = moments(expr, scope, "positive")
    except UnsupportedError:
        return mapped(_matched, number)
    return mapped(_of_either, number, stats)


def matching(kind: str, mean: Array, variance: Array) -> Family:
    """The member of a domain's family that has this mean and this variance."""
    family = FOR_DOMAIN[kind]
    assert issubclass(family, TwoMomentFamily)
    return family.from_mean_and_variance(mean, variance)


def _matched(found: Real) -> Family:
    return matching("positive", found.mean, jnp.maximum(found.variance, SMALLEST_VARIANCE))


def _of_either(found: Real, stats: Positive) -> Family:
    finite = jnp.isfinite(found.variance)
    matched = _matched(Real(jnp.where(finite, found.mean, 1.0), jnp.where(finite, found.variance, 1.0)))
    return jax.tree.map(lambda a, b: jnp.where(finite, a, b), matched, _of_moments(stats))


def _of_moments(found: Positive) -> Family:
    return FOR_DOMAIN["positive"].from_moments(found)
