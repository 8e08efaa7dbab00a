"""The truncated Gamma factor: a Gamma variable known to lie between two bounds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Argument
from ..calls import call_checked
from ..domains import positive
from ..factor import Factor, Term, register
from ..families import Gamma
from ..moments import Positive, Real
from ..rules import BOUNDS, WITHIN, Rule
from ..special import TINY, lgamma

_HARD = "the density is zero beyond the bounds, where every Gamma belief has mass; EP serves it"
_BOUND = "a random bound moves the normaliser and the support together; give it as a number or an input"
_UNDERFLOW = 1e-280
_REACH = 40.0
_X, _W = np.polynomial.legendre.leggauss(64)


def _between(shape, rate, low, high):
    """P(low < x < high) from whichever tail keeps the digits."""
    unbounded = jnp.isinf(high)
    a, b = rate * jnp.maximum(low, 0.0), rate * jnp.where(unbounded, 1.0, high)
    lower = jnp.where(unbounded, 1.0, jax.scipy.special.gammainc(shape, b)) - jax.scipy.special.gammainc(shape, a)
    above = jnp.where(unbounded, 0.0, jax.scipy.special.gammaincc(shape, b))
    upper = jax.scipy.special.gammaincc(shape, a) - above
    return jnp.where(a > shape, upper, lower)


def log_mass_between(shape, rate, low, high):
    """The logarithm of that probability, also where it underflows."""
    mass = _between(shape, rate, low, high)
    tiny = ~(mass > _UNDERFLOW)
    return jnp.where(tiny, _log_tail(shape, rate, low, high), jnp.log(jnp.where(tiny, 1.0, mass)))


def _log_tail(shape, rate, low, high):
    """The same for an interval far out in one tail: from its heavier end, over the length in which the density falls
    by exp(-40), by Gauss-Legendre.
    """
    low = jnp.maximum(low, TINY)
    upper = rate * low > shape
    end = jnp.where(upper, low, jnp.where(jnp.isinf(high), low, high))
    fall = jnp.maximum(jnp.abs((shape - 1.0) / end - rate), TINY)
    width = jnp.minimum(high - low, _REACH / fall)
    nodes, weights = (jnp.asarray(part).reshape((-1,) + (1,) * jnp.ndim(width)) for part in (_X, _W))
    points = jnp.maximum(end + jnp.where(upper, 1.0, -1.0) * 0.5 * width * (1.0 + nodes), TINY)
    logs = shape * jnp.log(rate) - lgamma(shape) + (shape - 1.0) * jnp.log(points) - rate * points
    return jax.scipy.special.logsumexp(logs, axis=0, b=0.5 * width * weights)


def _log_density(out, shape, rate, low, high):
    inside = shape * jnp.log(rate) - lgamma(shape) + (shape - 1.0) * jnp.log(out) - rate * out
    inside = inside - log_mass_between(shape, rate, low, high)
    return jnp.where((out >= low) & (out <= high), inside, -jnp.inf)


def _predict(shape: Positive, rate: Positive, low: Real, high: Real) -> Gamma:
    """Of equal mean and variance."""
    a, r = shape.mean, rate.mean
    mass, first, second = (log_mass_between(a + n, r, low.mean, high.mean) for n in (0.0, 1.0, 2.0))
    mean = a / r * jnp.exp(first - mass)
    square = a * (a + 1.0) / r**2 * jnp.exp(second - mass)
    variance = square - mean**2
    return Gamma.from_parameters(shape=mean**2 / variance, rate=mean / variance)


_SUPPORT = Rule(
    ("high",),
    lambda domain, high: high > 0,
    "`high` must be positive: a Gamma variable has no mass below zero",
    "Give high > 0.",
)


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
        bounds=frozenset({"low", "high"}),
        rules=(BOUNDS, WITHIN, _SUPPORT),
        source="minka2001ep",
    )
)


@call_checked
def truncated_gamma(shape: Argument, rate: Argument, low: Argument = 0.0, high: Argument = np.inf) -> Term:
    """A Gamma variable between `low` and `high`: its density over its mass there, zero elsewhere.

    `shape` > 0: numbers or an input. `rate` > 0: numbers, an input or a positive variable. `low` < `high` are numbers
    or inputs, infinite ones allowed. A latent one needs EP. Bounds that are reversed, and observations beyond them, are
    a ModelError as numbers and a DataError as data. Returns a term for `Model.random`. Source: minka2001ep.
    """
    return Term(factor, {"shape": shape, "rate": rate, "low": low, "high": high})
