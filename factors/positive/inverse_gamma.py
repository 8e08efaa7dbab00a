"""The inverse Gamma factor: the reciprocal is Gamma; the conjugate prior of a variance."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaincc

from ..arrays import Argument
from ..calls import call_checked
from ..conditional import moment_above
from ..domains import positive
from ..factor import Factor, Term, register
from ..families import Gamma
from ..moments import Positive
from ..scalars import power_of
from ..special import TINY, digamma, lgamma
from .gamma import expected_lgamma


def _log_density(out, shape, scale):
    return shape * jnp.log(scale) - lgamma(shape) - (shape + 1.0) * jnp.log(out) - scale / out


def _with_random(random: frozenset[str]):
    """E 1 / out in closed form; it is infinite where a belief of the outcome has a shape of one or less."""

    def expected(out: Positive, shape: Positive, scale: Positive):
        inverse = power_of(out, -1).mean if "out" in random else 1.0 / out.mean
        level = expected_lgamma(shape) if "shape" in random else lgamma(shape.mean)
        return shape.mean * scale.log - level - (shape.mean + 1.0) * out.log - scale.mean * inverse

    return expected


def _predict(shape: Positive, scale: Positive) -> Gamma:
    """Of equal mean and variance of the logarithm: the mean itself may be infinite."""
    return Gamma.from_parameters(shape=shape.mean, rate=jnp.exp(2.0 * digamma(shape.mean) - scale.log))


factor = register(
    Factor(
        name="inverse_gamma",
        joined="0.6.0",
        edges={"shape": "positive", "scale": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_with_random(frozenset()),
        predict=_predict,
        with_random=_with_random,
        conjugate=frozenset({"scale"}),
        conditional={
            "mean": lambda shape, scale: moment_above(1.0, lambda a: scale / (a - 1.0), shape),
            "variance": lambda shape, scale: moment_above(2.0, lambda a: (scale / (a - 1.0)) ** 2 / (a - 2.0), shape),
            "below": lambda x, shape, scale: jnp.where(x > 0.0, gammaincc(shape, scale / jnp.maximum(x, TINY)), 0.0),
            "draw": lambda key, shape, scale: scale / jax.random.gamma(key, shape),
        },
        divides={"out": 1},
        source="gelman2006prior",
    )
)


@call_checked
def inverse_gamma(shape: Argument, scale: Argument) -> Term:
    """An inverse Gamma variable: scale^shape x^(-shape - 1) exp(-scale / x) / Gamma(shape) for x > 0.

    Its reciprocal is `gamma(shape, rate=scale)`. `shape` > 0 and `scale` > 0: numbers, inputs, or positive variables.
    The mean is scale / (shape - 1), infinite for `shape` <= 1. As the variance of Gaussian observations it is
    conjugate. Returns a term for `Model.random`, which raises ModelError for numbers outside these domains; as data
    they are a DataError. Source: gelman2006prior.
    """
    return Term(factor, {"shape": shape, "scale": scale})
