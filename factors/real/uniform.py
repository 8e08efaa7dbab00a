"""The uniform factors: an interval of the real line, and the first `size` whole numbers."""

from __future__ import annotations

import operator

import jax.numpy as jnp
import numpy as np

from ..arrays import Argument
from ..calls import call_checked
from ..discrete.categorical import categorical
from ..domains import real
from ..errors import ModelError
from ..factor import Factor, Site, Term, register, told_with_name
from ..families import Gaussian
from ..moments import Real
from ..numbers import brief
from ..positive.beta import beta
from ..quadrature.truncation import interval_site
from ..rules import FINITE_BOUNDS, WITHIN

_MOST = 10**6  # values, each of which has a probability in memory
_HARD = "the density is zero beyond the bounds, where every Gaussian belief has mass; EP serves it"


def _log_density(out, low, high):
    return jnp.where((out >= low) & (out <= high), -jnp.log(high - low), -jnp.inf)


def _predict(low: Real, high: Real) -> Gaussian:
    spread = (high.mean - low.mean) ** 2 + low.variance + high.variance
    variance = spread / 12.0 + 0.25 * (low.variance + high.variance)
    return Gaussian.from_parameters(mean=0.5 * (low.mean + high.mean), variance=variance)


def _site(out, mean, variance, power=1.0, low=0.0, high=1.0) -> Site:
    site = interval_site(low, high, mean, variance)
    return site._replace(log_evidence=site.log_evidence - power * jnp.log(high - low))


factor = register(
    Factor(
        name="uniform",
        edges={"low": "real", "high": "real"},
        out=lambda domains: real,
        log_density=_log_density,
        predict=_predict,
        sites={"out": _site},
        closed_sites=frozenset({"out"}),
        unsupported={"out": _HARD, "low": _HARD, "high": _HARD},
        bounds=frozenset({"low", "high"}),
        rules=(FINITE_BOUNDS, WITHIN),
        support=("low", "high"),
        source="minka2001ep",
    )
)


@call_checked
def uniform(low: Argument, high: Argument) -> Term:
    """A uniform variable between `low` and `high`: 1 / (high - low).

    Numbers, inputs or real variables. With the numbers 0 and 1 it is the Beta variable of parameters 1 and 1, in (0,
    1); all others are real, and a latent one needs EP, since VMP has no expectation of a hard bound. `low` must be
    below `high`, and an observation between them: ModelError for numbers, DataError for data. Returns a term for
    `Model.random`. Source: minka2001ep.
    """
    numbers = all(isinstance(b, (int, float, np.ndarray)) and np.asarray(b).dtype.kind in "biuf" for b in (low, high))
    if numbers and np.all(np.asarray(low) == 0) and np.all(np.asarray(high) == 1):
        return beta(1.0, 1.0)
    return Term(factor, {"low": low, "high": high})


@told_with_name
def discrete_uniform(size: int) -> Term:
    """A variable with values 0, ..., size - 1, all equally probable.

    `size` is a positive integer. Returns a term for `Model.random`, which raises ModelError for any other.
    """
    try:
        number = operator.index(size)
    except TypeError:
        number = 0
    if not 1 <= number <= _MOST or isinstance(size, (bool, np.bool_)):
        raise ModelError(
            f"discrete_uniform(): size must be a positive integer of at most {_MOST}; found {brief(size)}. "
            "Give a number of values."
        )
    return categorical(np.full(number, 1.0 / number))
