"""Marginals of named probabilities and positive numbers that are functions of real ones: matched mean and variance."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...compiler.algebra.averages import POLYNOMIAL
from ...compiler.language.nodes import Apply, Expr, unnamed
from ...factors import LINKS
from ...factors.errors import UnsupportedError
from ...factors.families import Beta, Gamma
from ...factors.moments import Positive, Real
from ...factors.quadrature import gaussian_expectation
from ..blocks.site.sites import SMALLEST_VARIANCE
from ..values.moments import moments
from ..values.plated import Placed, mapped
from ..values.scope import Scope


def probability(expr: Expr, scope: Scope) -> Placed:
    """The Beta distribution of the mean and variance of a link of a Gaussian number."""
    expr = unnamed(expr)
    if not isinstance(expr, Apply) or expr.op not in ("logistic", "probit"):
        raise UnsupportedError(
            f"The marginal of the probability '{expr}' has no family of its own. Read the marginals of its arguments."
        )
    link = LINKS[expr.op].value

    def matched(argument: Real) -> Beta:
        variance = jnp.maximum(argument.variance, SMALLEST_VARIANCE)
        mean = gaussian_expectation(link, argument.mean, variance)
        spread = gaussian_expectation(lambda s: (link(s) - mean) ** 2, argument.mean, variance)
        total = mean * (1.0 - mean) / spread - 1.0
        return Beta.from_parameters(a=mean * total, b=(1.0 - mean) * total)

    return mapped(matched, moments(expr.args[0], scope, "real"))


def positive(expr: Expr, scope: Scope) -> Placed:
    """The Gamma distribution of the mean and variance of a positive expression.

    Where the variance is infinite, as that of 1 / x is for a Gamma of shape 2 or less, that of E x and E log x.
    """
    expr = unnamed(expr)
    if isinstance(expr, Apply) and expr.op == "exp":
        return mapped(_of_exponential, moments(expr.args[0], scope, "real"))
    try:
        number = moments(expr, scope, POLYNOMIAL)
    except UnsupportedError:
        return mapped(_of_moments, moments(expr, scope, "positive"))
    try:
        stats = moments(expr, scope, "positive")
    except UnsupportedError:
        return mapped(_matched, number)
    return mapped(_of_either, number, stats)


def _matched(found: Real) -> Gamma:
    shape = found.mean**2 / jnp.maximum(found.variance, SMALLEST_VARIANCE)
    return Gamma.from_parameters(shape=shape, rate=shape / found.mean)


def _of_either(found: Real, stats: Positive) -> Gamma:
    finite = jnp.isfinite(found.variance)
    matched = _matched(Real(jnp.where(finite, found.mean, 1.0), jnp.where(finite, found.variance, 1.0)))
    return jax.tree.map(lambda a, b: jnp.where(finite, a, b), matched, _of_moments(stats))


def _of_exponential(argument: Real) -> Gamma:
    shape = 1.0 / jnp.expm1(jnp.maximum(argument.variance, SMALLEST_VARIANCE))
    return Gamma.from_parameters(shape=shape, rate=shape * jnp.exp(-argument.mean - 0.5 * argument.variance))


def _of_moments(found: Positive) -> Gamma:
    return Gamma.from_stats((found.mean, found.log))
