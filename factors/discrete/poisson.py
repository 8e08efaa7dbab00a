"""The Poisson factor Poisson(out; rate)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..closed import Closed
from ..domains import count
from ..factor import Factor, Site, Term, register
from ..families import Gamma, Poisson
from ..moments import Count, Positive
from ..positive.truncated_gamma import log_mass_between
from ..quadrature import tilted_site
from ..special import lgamma


def _log_density(out, rate):
    return out * jnp.log(rate) - rate - lgamma(out + 1.0)


def _expected_log(out: Count, rate: Positive):
    return out.mean * rate.log - rate.mean - out.log_factorial


def _predict(rate: Positive) -> Poisson:
    return Poisson(jnp.log(rate.mean))


def _exp_site(out, mean, variance, power=1.0) -> Site:
    constant = lgamma(out + 1.0)
    return tilted_site(lambda s: power * (out * s - jnp.exp(s) - constant), mean, variance)


def _log_predictive(out, rate):
    """A negative binomial under a Gamma rate."""
    if not isinstance(rate, Gamma):
        return out * jnp.log(rate) - rate - jax.lax.lgamma(out + 1.0)
    a, b = rate.shape, rate.rate
    ways = jax.lax.lgamma(out + a) - jax.lax.lgamma(a) - jax.lax.lgamma(out + 1.0)
    return ways - a * jnp.log1p(1.0 / b) - out * jnp.log1p(b)


def _closed(arguments) -> Closed | None:
    """A Gamma rate: negative binomial."""
    rate = arguments["rate"].belief(Gamma)
    if rate is None:
        return None
    return Closed(
        "negative_binomial_trials",
        {"successes": rate.given(lambda q: q.shape), "probability": rate.given(lambda q: q.rate / (1.0 + q.rate))},
    )


factor = register(
    Factor(
        name="poisson",
        edges={"rate": "positive"},
        out=lambda domains: count,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "rate"}),
        sites={"exp": _exp_site},
        link_densities={"exp": lambda out, s: out * s - jnp.exp(s) - jax.lax.lgamma(out + 1.0)},
        log_predictive=_log_predictive,
        keeps={},
        closed=_closed,
        log_below=lambda x, rate: log_mass_between(jnp.maximum(x, 0.0) + 1.0, 1.0, rate, jnp.inf),
        log_above=lambda x, rate: jnp.where(x < 1.0, 0.0, log_mass_between(jnp.maximum(x, 1.0), 1.0, 0.0, rate)),
        source="knowles2011ncvmp",
    )
)


@call_checked
def poisson(rate: Argument) -> Term:
    """A Poisson count: rate^x exp(-rate) / x!.

    `rate` > 0: numbers, an input, a `gamma` variable, or `exp` of a real expression. Returns a term for `Model.random`,
    which raises ModelError for numbers outside these domains; as data they are a DataError. Source: knowles2011ncvmp.
    """
    return Term(factor, {"rate": rate})
