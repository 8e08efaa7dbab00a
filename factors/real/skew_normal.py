"""The skew-normal factor: a Gaussian that leans to one side."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Argument
from ..calls import call_checked
from ..domains import real
from ..factor import Factor, Site, Term, register
from ..quadrature import HALF_LOG_2PI, tilted_site
from ..special import log_ndtr, ndtr

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


def _log_density(out, location, scale, skew):
    z = (out - location) / scale
    return math.log(2.0) - jnp.log(scale) - HALF_LOG_2PI - 0.5 * z**2 + log_ndtr(skew * z)


def _site(out, mean, variance, power=1.0, scale=1.0, skew=0.0) -> Site:
    return tilted_site(lambda s: power * _log_density(out, s, scale, skew), mean, variance)


def _lean(skew):
    """The correlation with the normal number whose sign decides the side."""
    return skew / jnp.sqrt(1.0 + skew**2)


def _mean(location, scale, skew):
    return location + scale * math.sqrt(2.0 / math.pi) * _lean(skew)


def _variance(location, scale, skew):
    return scale**2 * (1.0 - 2.0 / math.pi * _lean(skew) ** 2)


def _owen(h, a):
    """Owen's T: the integral from zero to a of exp(-h^2 (1 + x^2) / 2) / (1 + x^2) / (2 pi).

    Over the angle arctan x, of which nothing is left beyond the angle where the exponential ends.
    """
    end = jnp.arctan(jnp.minimum(jnp.abs(a), 9.0 / jnp.maximum(jnp.abs(h), 1e-300)))
    angle = 0.5 * end[..., None] * (1.0 + jnp.asarray(_NODES, float))
    values = jnp.exp(-0.5 * (h[..., None] / jnp.cos(angle)) ** 2)
    return jnp.sign(a) * 0.25 / math.pi * end * (values @ jnp.asarray(_WEIGHTS, float))


def _below(x, location, scale, skew):
    z, a = jnp.broadcast_arrays((x - location) / scale, jnp.asarray(skew, float))
    return jnp.clip(ndtr(z) - 2.0 * _owen(z, a), 0.0, 1.0)


def _draw(key, location, scale, skew):
    side, rest = jax.random.normal(key, (2,))
    lean = _lean(skew)
    return location + scale * (lean * jnp.abs(side) + jnp.sqrt(1.0 - lean**2) * rest)


factor = register(
    Factor(
        name="skew_normal",
        joined="0.6.0",
        edges={"location": "real", "scale": "positive", "skew": "real"},
        out=lambda domains: real,
        log_density=_log_density,
        sites={"linear": _site},
        site_edge="location",
        conditional={"mean": _mean, "variance": _variance, "below": _below, "draw": _draw},
        divides={"scale": 2},
        source="azzalini1985skew",
    )
)


@call_checked
def skew_normal(location: Argument, scale: Argument, skew: Argument) -> Term:
    """A skew-normal variable: 2 / scale phi(z) Phi(skew z) with z = (x - location) / scale.

    `location` and `skew` are real, `scale` > 0: numbers, inputs, variables or expressions. It leans to the right for
    `skew` > 0 (often alpha) and is `gaussian(location, sd=scale)` for zero; `location` and `scale` are not its mean and
    standard deviation. Returns a term for `Model.random`, which raises ModelError for numbers outside these domains; as
    data they are a DataError. Source: azzalini1985skew.
    """
    return Term(factor, {"location": location, "scale": scale, "skew": skew})
