"""The half-Student-t factor: a prior of a scale, between half-Cauchy and half-normal."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import betainc

from ..arrays import Argument
from ..calls import call_checked
from ..conditional import moment_above
from ..domains import positive
from ..factor import Factor, Term, register
from ..special import lgamma

_LOG_2 = math.log(2.0)


def _log_density(out, dof, scale):
    z = jnp.log(out) - jnp.log(scale)  # log(1 + exp(2 z) / dof) neither overflows nor loses the scale
    constant = lgamma(0.5 * (dof + 1.0)) - lgamma(0.5 * dof) - 0.5 * jnp.log(math.pi * dof)
    return _LOG_2 + constant - jnp.log(scale) - 0.5 * (dof + 1.0) * jnp.logaddexp(0.0, 2.0 * z - jnp.log(dof))


def _mean(dof, scale):
    """Of any degrees of freedom above one."""

    def ratio(a):
        return jnp.exp(lgamma(0.5 * (a + 1.0)) - lgamma(0.5 * a)) * jnp.sqrt(a / math.pi) / (a - 1.0)

    return moment_above(1.0, lambda a: 2.0 * scale * ratio(a), dof)


def _variance(dof, scale):
    return moment_above(2.0, lambda a: scale**2 * a / (a - 2.0) - _mean(a, scale) ** 2, dof)


def _below(x, dof, scale):
    z = jnp.maximum(x, 0.0) / scale
    return betainc(0.5, 0.5 * dof, z**2 / (dof + z**2))


factor = register(
    Factor(
        name="half_student_t",
        joined="0.6.0",
        edges={"dof": "positive", "scale": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        conditional={
            "mean": _mean,
            "variance": _variance,
            "below": _below,
            "draw": lambda key, dof, scale: scale * jnp.abs(jax.random.t(key, dof)),
        },
        divides={"scale": 2},
        source="gelman2006prior",
    )
)


@call_checked
def half_student_t(dof: Argument, scale: Argument) -> Term:
    """A half-Student-t variable: the absolute value of Student's t around zero, a prior of a scale.

    `dof` > 0 and `scale` > 0: numbers, inputs, or positive variables. With one degree of freedom it is `half_cauchy`,
    with many `half_normal`; the mean is infinite for `dof` <= 1. Returns a term for `Model.random`, which raises
    ModelError for numbers outside these domains; as data they are a DataError. Source: gelman2006prior.
    """
    return Term(factor, {"dof": dof, "scale": scale})
