"""The Gamma factor Gamma(out; shape, rate)."""

from __future__ import annotations

import jax.numpy as jnp

from ..arrays import Argument
from ..domains import positive
from ..errors import ModelError
from ..factor import Factor, Term, register, told_with_name
from ..families import Gamma
from ..moments import Positive
from ..numbers import given_number
from ..quadrature.derived import positive_expectation
from ..special import lgamma


def _log_density(out, shape, rate):
    return shape * jnp.log(rate) - lgamma(shape) + (shape - 1) * jnp.log(out) - rate * out


def _expected_log(out: Positive, shape: Positive, rate: Positive):
    return shape.mean * rate.log - lgamma(shape.mean) + (shape.mean - 1) * out.log - rate.mean * out.mean


def _with_random_shape(out: Positive, shape: Positive, rate: Positive):
    linear = shape.mean * rate.log + (shape.mean - 1) * out.log - rate.mean * out.mean
    return linear - expected_lgamma(shape)


def expected_lgamma(shape: Positive):
    """E log gamma(x), written as log gamma(x + 1) - log x, so that an x that underflows loses nothing."""
    return positive_expectation(lambda x, log_x: lgamma(x + 1.0), shape) - shape.log


def _predict(shape: Positive, rate: Positive) -> Gamma:
    return Gamma(-rate.mean, shape.mean - 1.0)


factor = register(
    Factor(
        name="gamma",
        edges={"shape": "positive", "rate": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "rate"}),
        with_random=lambda random: _with_random_shape if "shape" in random else None,
        keeps={},
        source="winn2005vmp",
    )
)


@told_with_name
def gamma(
    shape: Argument = None,
    rate: Argument = None,
    *,
    mean: Argument = None,
    variance: Argument = None,
    sd: Argument = None,
) -> Term:
    """A Gamma variable: rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape), with mean shape / rate.

    `shape` > 0 and `rate` > 0 (a rate, not a scale): numbers, inputs, or positive variables; a random shape is learned
    by NCVMP. Or give `mean` and one of `variance` and `sd`, numbers or inputs: shape mean^2 / variance, rate mean /
    variance. Returns a term for `Model.random`, which raises ModelError for any other combination. Source: winn2005vmp.
    """
    if mean is None and variance is None and sd is None and shape is not None and rate is not None:
        return Term(factor, {"shape": shape, "rate": rate})
    if shape is not None or rate is not None or mean is None or (variance is None) == (sd is None):
        raise ModelError(
            "gamma() needs shape= and rate=, or mean= and one of variance= and sd=. Write for example "
            "cv.gamma(shape=2.0, rate=1.0)."
        )
    mean = given_number("gamma", "mean", mean)
    square = given_number("gamma", "variance", variance) if sd is None else given_number("gamma", "sd", sd) ** 2
    return Term(factor, {"shape": mean * mean / square, "rate": mean / square})
