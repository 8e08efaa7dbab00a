"""The exponential factor: the time until an event of a constant rate."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..domains import positive
from ..errors import ModelError
from ..factor import Factor, Site, Term, register, told_with_name
from ..families import Gamma
from ..moments import Positive
from ..numbers import given_number
from ..quadrature import tilted_site
from ..real.gaussian import checked_positive


def _log_density(out, rate):
    return jnp.log(rate) - rate * out


def _expected_log(out: Positive, rate: Positive):
    return rate.log - rate.mean * out.mean


def _predict(rate: Positive) -> Gamma:
    return Gamma(-rate.mean, jnp.zeros_like(rate.mean))


def _exp_site(out, mean, variance, power=1.0) -> Site:
    return tilted_site(lambda s: power * (s - out * jnp.exp(s)), mean, variance)


def _log_predictive(out, rate):
    """Lomax under a Gamma rate."""
    if not isinstance(rate, Gamma):
        return _log_density(out, rate)
    return jnp.log(rate.shape) - jnp.log(rate.rate) - (rate.shape + 1.0) * jnp.log1p(out / rate.rate)


factor = register(
    Factor(
        name="exponential",
        joined="0.6.0",
        edges={"rate": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "rate"}),
        sites={"exp": _exp_site},
        link_densities={"exp": lambda out, s: s - out * jnp.exp(s)},
        log_predictive=_log_predictive,
        keeps={},
        log_below=lambda x, rate: jnp.log(-jnp.expm1(-rate * x)),
        log_above=lambda x, rate: -rate * x,
        conditional={
            "mean": lambda rate: 1.0 / rate,
            "variance": lambda rate: rate**-2.0,
            "below": lambda x, rate: -jnp.expm1(-rate * jnp.maximum(x, 0.0)),
            "draw": lambda key, rate: jax.random.exponential(key) / rate,
        },
        source="knowles2011ncvmp",
    )
)


@told_with_name
def exponential(rate: Argument = None, *, mean: Argument = None) -> Term:
    """An exponential variable: rate exp(-rate x) for x > 0, with mean 1 / rate.

    Give `rate` > 0 (a rate, not a scale), or `mean` = 1 / rate: a number, an input, or a positive variable or
    expression; `rate=exp(s)` of a real s is a regression of waiting times. A Gamma prior of the rate is conjugate.
    Returns a term for `Model.random`, which raises ModelError when none or both are given, and for numbers that are not
    positive; as data they are a DataError. Source: knowles2011ncvmp.
    """
    if (rate is None) == (mean is None):
        raise ModelError(
            "exponential() needs exactly one of rate= and mean=. Write for example cv.exponential(rate=2.0)."
        )
    if rate is None:
        rate = 1.0 / checked_positive("exponential", "mean", given_number("exponential", "mean", mean))
    return Term(factor, {"rate": rate})
