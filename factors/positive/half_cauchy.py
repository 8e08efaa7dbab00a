"""The half-Cauchy factor: the standard prior of a scale."""

from __future__ import annotations

import math

import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import positive
from ..factor import Factor, Term, register
from ..families import Gamma
from ..moments import Positive
from ..special import digamma

# The shape of the Gamma whose logarithm has the variance of that of a half-Cauchy variable: trigamma(shape) = pi^2 / 4.
_SHAPE = 0.764423809521105


def _log_density(out, scale):
    z = jnp.log(out) - jnp.log(scale)  # log(1 + exp(2 z)) neither overflows nor loses the scale
    return math.log(2.0 / math.pi) - jnp.log(scale) - jnp.logaddexp(0.0, 2.0 * z)


def _predict(scale: Positive) -> Gamma:
    """Of equal mean and variance of the logarithm: the mean itself is infinite."""
    shape = jnp.full_like(scale.log, _SHAPE)
    return Gamma.from_parameters(shape=shape, rate=jnp.exp(digamma(shape) - scale.log))


factor = register(
    Factor(
        name="half_cauchy",
        edges={"scale": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        predict=_predict,
        divides={"scale": 2},
        source="gelman2006prior",
    )
)


@call_checked
def half_cauchy(scale: Argument) -> Term:
    """A half-Cauchy variable: 2 / (pi scale (1 + (x / scale)^2)) for x > 0, with median `scale`.

    `scale` > 0: numbers, an input, or a positive variable. Its mean is infinite. Returns a term for `Model.random`,
    which raises ModelError for numbers outside these domains; as data they are a DataError. Source: gelman2006prior.
    """
    return Term(factor, {"scale": scale})
