"""The Pareto factor: a power law above a smallest value."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..conditional import moment_above
from ..domains import Domain, positive
from ..factor import Factor, Term, register
from ..families import Gamma
from ..moments import Positive
from ..rules import Given, Holds, Rule
from ..special import digamma, tetragamma, trigamma

_HARD = "the density is zero below the smallest value, where every Gamma belief has mass; EP serves it: method='auto'"


def _above(domain: Domain, out: Given, scale: Given) -> Holds:
    return out >= scale


def _log_density(out, shape, scale):
    inside = jnp.log(shape) - jnp.log(scale) + (shape + 1.0) * (jnp.log(scale) - jnp.log(out))
    return jnp.where(out >= scale, inside, -jnp.inf)


def _expected_log(out: Positive, shape: Positive, scale: Positive):
    inside = shape.log + shape.mean * (scale.log - out.log) - out.log
    return jnp.where(out.mean >= scale.mean, inside, -jnp.inf)  # both are points


def _with_trigamma(y):
    """The x > 0 with trigamma(x) = y: Newton's steps in 1 / trigamma, which is convex, from below the root."""
    x = 0.5 + 1.0 / y
    for _ in range(8):
        value = trigamma(x)
        x = x + value * (1.0 - value / y) / tetragamma(x)
    return x


def _predict(shape: Positive, scale: Positive) -> Gamma:
    """Of equal mean and variance of the logarithm, which is exponential: the mean itself may be infinite."""
    width = _with_trigamma(shape.mean**-2.0)
    return Gamma.from_parameters(shape=width, rate=jnp.exp(digamma(width) - scale.log - 1.0 / shape.mean))


def _variance(shape, scale):
    return moment_above(2.0, lambda a: scale**2 * a / (a - 1.0) ** 2 / (a - 2.0), shape)


factor = register(
    Factor(
        name="pareto",
        joined="0.6.0",
        edges={"shape": "positive", "scale": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"shape"}),
        conditional={
            "mean": lambda shape, scale: moment_above(1.0, lambda a: scale * a / (a - 1.0), shape),
            "variance": _variance,
            "below": lambda x, shape, scale: -jnp.expm1(shape * (jnp.log(scale) - jnp.log(jnp.maximum(x, scale)))),
            "draw": lambda key, shape, scale: scale * jnp.exp(jax.random.exponential(key) / shape),
        },
        unsupported={"out": _HARD, "scale": _HARD},
        rules=(
            Rule(
                ("out", "scale"),
                _above,
                "an observation must be at least `scale`, the smallest possible value",
                "Correct the data, or give a smaller `scale`.",
            ),
        ),
        source="johnson1994continuous",
    )
)


@call_checked
def pareto(shape: Argument, scale: Argument) -> Term:
    """A Pareto variable: shape scale^shape / x^(shape + 1) for x >= `scale`, the tail of incomes and of sizes.

    `shape` > 0 (the exponent of the tail, often alpha) and `scale` > 0 (the smallest value): numbers, inputs, or
    positive variables. A Gamma prior of the shape is conjugate. The mean is infinite for `shape` <= 1. Observations
    below the smallest value are a DataError. Returns a term for `Model.random`, which raises ModelError for numbers
    outside these domains. Source: johnson1994continuous.
    """
    return Term(factor, {"shape": shape, "scale": scale})
