"""The truncated Gamma factor: a Gamma variable known to lie between two bounds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .domains import positive
from .factor import Factor, Term, register
from .families import Gamma
from .moments import Positive, Real
from .special import lgamma

_HARD = "the density is zero beyond the bounds, where every Gamma belief has mass; EP serves it"
_BOUND = "a random bound moves the normaliser and the support together; give it as a number or an input"


def _between(shape, rate, low, high):
    """P(low < x < high) from whichever tail keeps the digits."""
    a, b = rate * jnp.maximum(low, 0.0), rate * high
    end = jnp.where(jnp.isinf(b), 1.0, b)
    lower = jnp.where(jnp.isinf(b), 1.0, jax.scipy.special.gammainc(shape, end)) - jax.scipy.special.gammainc(shape, a)
    above = jnp.where(jnp.isinf(b), 0.0, jax.scipy.special.gammaincc(shape, end))
    upper = jax.scipy.special.gammaincc(shape, a) - above
    return jnp.where(a > shape, upper, lower)


def _log_density(out, shape, rate, low, high):
    inside = shape * jnp.log(rate) - lgamma(shape) + (shape - 1.0) * jnp.log(out) - rate * out
    inside = inside - jnp.log(_between(shape, rate, low, high))
    return jnp.where((out >= low) & (out <= high), inside, -jnp.inf)


def _predict(shape: Positive, rate: Positive, low: Real, high: Real) -> Gamma:
    """Of equal mean and variance."""
    a, r = shape.mean, rate.mean
    mass = _between(a, r, low.mean, high.mean)
    mean = a / r * _between(a + 1.0, r, low.mean, high.mean) / mass
    square = a * (a + 1.0) / r**2 * _between(a + 2.0, r, low.mean, high.mean) / mass
    variance = square - mean**2
    return Gamma.from_parameters(shape=mean**2 / variance, rate=mean / variance)


factor = register(
    Factor(
        name="truncated_gamma",
        edges={"shape": "positive", "rate": "positive", "low": "real", "high": "real"},
        out=lambda domains: positive,
        log_density=_log_density,
        predict=_predict,
        unsupported={
            "out": _HARD,
            "low": _BOUND,
            "high": _BOUND,
            "shape": "the incomplete Gamma function has no derivative in the shape; give it as a number or an input",
        },
        source="minka2001ep",
    )
)


def truncated_gamma(shape: Any, rate: Any, low: Any = 0.0, high: Any = np.inf) -> Term:
    """A Gamma variable between `low` and `high`: its density over its mass there, zero elsewhere.

    `shape` > 0: numbers or an input. `rate` > 0: numbers, an input or a positive variable. `low` < `high` are numbers
    or inputs, infinite ones allowed. A latent one needs EP; predictions are Gamma of equal mean and variance. Returns a
    term for `Model.random`.
    """
    return Term(factor, {"shape": shape, "rate": rate, "low": low, "high": high})
