"""The half-normal factor: a prior of a scale with light tails."""

from __future__ import annotations

import math

import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import positive
from ..factor import Factor, Term, register
from ..families import Gamma
from ..moments import Positive
from ..scalars import power_of

_MEAN = math.sqrt(2.0 / math.pi)
_LOG = -0.635181422730739  # E log x for scale one: (digamma(1/2) + log 2) / 2


def _log_density(out, scale):
    return 0.5 * math.log(2.0 / math.pi) - jnp.log(scale) - 0.5 * (out / scale) ** 2


def _expected_log(random: frozenset[str]):
    """E x^2 / scale^2 in closed form; the second is infinite where a belief of the scale has a shape of two or less."""

    def expected(out: Positive, scale: Positive):
        square = power_of(out, 2).mean if "out" in random else out.mean**2
        inverse = power_of(scale, -2).mean if "scale" in random else scale.mean**-2
        return 0.5 * math.log(2.0 / math.pi) - scale.log - 0.5 * square * inverse

    return expected


def _predict(scale: Positive) -> Gamma:
    """Of equal mean and mean logarithm."""
    return Gamma.from_stats((_MEAN * scale.mean, _LOG + scale.log))


factor = register(
    Factor(
        name="half_normal",
        edges={"scale": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_expected_log(frozenset()),
        predict=_predict,
        with_random=_expected_log,
        divides={"scale": 2},
        source="gelman2006prior",
    )
)


@call_checked
def half_normal(scale: Argument) -> Term:
    """A half-normal variable: sqrt(2 / pi) / scale exp(-x^2 / (2 scale^2)) for x > 0, a Gaussian's absolute value.

    `scale` > 0: numbers, an input, or a positive variable. It is positive, as `truncated_gaussian` is not, so that it
    may be a scale. Returns a term for `Model.random`, which raises ModelError for numbers outside these domains; as
    data they are a DataError. Source: gelman2006prior.
    """
    return Term(factor, {"scale": scale})
