"""The binomial factor: out successes in n independent trials."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import betainc, xlog1py, xlogy

from ..arrays import Argument
from ..calls import call_checked
from ..conditional import counted
from ..domains import count
from ..factor import Factor, Site, Term, register
from ..families import Poisson
from ..moments import Count, Unit
from ..quadrature import tilted_site
from ..quadrature.predictive import unit_mean
from ..rules import TRIALS
from ..special import lgamma, log_ndtr, log_sigmoid

_BOUNDED = "the density is zero for more successes than trials, where a Poisson belief has mass; observe it, or use EP"


def _log_ways(out, n):
    return lgamma(n + 1.0) - lgamma(out + 1.0) - lgamma(n - out + 1.0)


def _log_density(out, n, probability):
    possible = out <= n
    inside = jnp.where(possible, out, 0.0)
    density = _log_ways(inside, n) + xlogy(inside, probability) + xlog1py(n - inside, -probability)
    return jnp.where(possible, density, -jnp.inf)


def _expected_log(out: Count, n: Count, probability: Unit):
    successes, failures = out.mean, n.mean - out.mean
    return _log_ways(out.mean, n.mean) + successes * probability.log + failures * probability.log_complement


def _predict(n: Count, probability: Unit) -> Poisson:
    return Poisson(jnp.log(n.mean * unit_mean(probability)))


def _site(log_link):
    def site(out, mean, variance, power=1.0, n=1.0) -> Site:
        ways = _log_ways(out, n)
        return tilted_site(lambda s: power * (ways + out * log_link(s) + (n - out) * log_link(-s)), mean, variance)

    return site


def binomial_below(x, n, probability):
    """P(X <= x) of X ~ Binomial(n, probability)."""

    def inside(k):
        left = jnp.maximum(n - k, 1.0)
        return jnp.where(k >= n, 1.0, betainc(left, k + 1.0, 1.0 - probability))

    return counted(x, inside)


factor = register(
    Factor(
        name="binomial",
        edges={"n": "count", "probability": "unit"},
        out=lambda domains: count,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"probability"}),
        sites={"logistic": _site(log_sigmoid), "probit": _site(log_ndtr)},
        site_edge="probability",
        unsupported={"out": _BOUNDED, "n": _BOUNDED},
        rules=(TRIALS,),
        source="winn2005vmp",
    )
)


@call_checked
def binomial(n: Argument, p: Argument) -> Term:
    """A binomial count: C(n, x) p^x (1 - p)^(n - x).

    `n` >= 0: whole numbers or an input. `p` in [0, 1]: numbers, an input, a `beta` variable, or `logistic` or `probit`
    of a real expression. Returns a term for `Model.random`, which raises ModelError for numbers outside these domains;
    as data they are a DataError. Source: winn2005vmp.
    """
    return Term(factor, {"n": n, "probability": p})
