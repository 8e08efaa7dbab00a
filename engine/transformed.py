"""Marginals of named probabilities and positive numbers that are functions of real ones: matched mean and variance."""

from __future__ import annotations

import jax.numpy as jnp

from ..compiler.expressions import Apply, Expr, unnamed
from ..factors import LINKS
from ..factors.errors import UnsupportedError
from ..factors.families import Beta, Gamma
from ..factors.moments import Positive, Real
from ..factors.quadrature import gaussian_expectation
from .evaluate import Scope, moments
from .placed import Placed, mapped
from .sites import SMALLEST_VARIANCE


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
    """The Gamma distribution of the mean and variance of an exponential, of E x and E log x of any other expression."""
    expr = unnamed(expr)
    if isinstance(expr, Apply) and expr.op == "exp":
        return mapped(_of_exponential, moments(expr.args[0], scope, "real"))
    return mapped(_of_moments, moments(expr, scope, "positive"))


def _of_exponential(argument: Real) -> Gamma:
    shape = 1.0 / jnp.expm1(jnp.maximum(argument.variance, SMALLEST_VARIANCE))
    return Gamma.from_parameters(shape=shape, rate=shape * jnp.exp(-argument.mean - 0.5 * argument.variance))


def _of_moments(found: Positive) -> Gamma:
    return Gamma.from_stats((found.mean, found.log))
