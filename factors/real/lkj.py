"""The LKJ factor: correlations of a few effects, as independent partial correlations."""

from __future__ import annotations

import math
import operator

import jax
import jax.numpy as jnp
from jax.scipy.special import betainc

from ..arrays import Argument
from ..domains import real
from ..errors import ModelError
from ..factor import Factor, Term, register, told_with_name
from ..families import Gaussian
from ..moments import Positive
from ..numbers import brief, given_number
from ..rules import Rule
from ..special import lgamma

_MOST = 6
_HARD = "a correlation lies between -1 and 1, beyond which every Gaussian belief has mass; the default integrates it"


def _log_density(out, concentration):
    """Of Beta(b, b) stretched to (-1, 1)."""
    b = concentration
    inside = jnp.where(jnp.abs(out) < 1.0, out, 0.0)
    constant = lgamma(2.0 * b) - 2.0 * lgamma(b) - (2.0 * b - 1.0) * math.log(2.0)
    return jnp.where(jnp.abs(out) < 1.0, (b - 1.0) * jnp.log1p(-(inside**2)) + constant, -jnp.inf)


def _predict(concentration: Positive) -> Gaussian:
    variance = 1.0 / (2.0 * concentration.mean + 1.0)
    return Gaussian.from_parameters(mean=jnp.zeros_like(variance), variance=variance)


factor = register(
    Factor(
        name="lkj",
        joined="0.6.0",
        edges={"concentration": "positive"},
        out=lambda domains: real,
        log_density=_log_density,
        predict=_predict,
        conditional={
            "mean": lambda concentration: jnp.zeros_like(concentration),
            "variance": lambda concentration: 1.0 / (2.0 * concentration + 1.0),
            "below": lambda x, concentration: betainc(concentration, concentration, jnp.clip(0.5 + 0.5 * x, 0.0, 1.0)),
            "draw": lambda key, concentration: 2.0 * jax.random.beta(key, concentration, concentration) - 1.0,
        },
        unsupported={"out": _HARD},
        rules=(
            Rule(
                ("out",),
                lambda domain, out: (out > -1.0) & (out < 1.0),
                "a correlation must lie strictly between -1 and 1",
                "Correct the data.",
            ),
        ),
        support=(-1.0, 1.0),
        source="lewandowski2009generating",
    )
)


@told_with_name
def lkj(concentration: Argument, effects: int = 2, given: int = 0) -> Term:
    """A correlation in (-1, 1) with the LKJ prior: p(R) proportional to det(R)^(concentration - 1), in Stan often eta.

    `concentration` > 0: 1 is uniform over correlation matrices, more is nearer to none; a number, an input or a
    positive variable. For two effects the variable is their correlation, with `cv.covariance(scales, correlation)` for
    the effects. For more, up to six, declare one variable for each pair (i, j), j < i, with `effects` = d and `given` =
    j: the partial correlation of i and j given the effects before j, which are independent under the LKJ prior; those
    with effect 0 are the correlations. Returns a term for `Model.random`, which raises ModelError for numbers outside
    these domains; as data they are a DataError. Source: lewandowski2009generating.
    """
    size, before = _whole("effects", effects, 2, _MOST), _whole("given", given, 0, _MOST - 2)
    if before > size - 2:
        raise ModelError(f"lkj(): of {size} effects a pair is given at most {size - 2} others; found given={before}.")
    concentration = given_number("lkj", "concentration", concentration)
    more = 0.5 * (size - 2 - before)
    return Term(factor, {"concentration": concentration + more if more else concentration})


def _whole(name: str, value: Argument, low: int, high: int) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        found = low - 1
    if not low <= found <= high:
        raise ModelError(f"lkj(): {name} must be a whole number from {low} to {high}; found {brief(value)}.")
    return found
