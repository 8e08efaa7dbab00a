"""The Weibull factor: lifetimes whose risk of ending rises or falls with age as a power."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import positive
from ..factor import Factor, Site, Term, register
from ..quadrature import tilted_site
from ..special import lgamma


def _log_density(out, scale, shape):
    return _log_density_of(out, jnp.log(scale), shape)


def _log_density_of(out, log_scale, shape):
    z = jnp.log(out) - log_scale
    return jnp.log(shape) - jnp.log(out) + shape * z - jnp.exp(shape * z)


def _exp_site(out, mean, variance, power=1.0, shape=1.0) -> Site:
    return tilted_site(lambda s: power * _log_density_of(out, s, shape), mean, variance)


def _risk(x, scale, shape):
    """(x / scale)^shape, of which the exponential is the chance to outlive x."""
    return jnp.exp(jnp.clip(shape * (jnp.log(x) - jnp.log(scale)), -690.0, 690.0))


def _moment(order: int, scale, shape):
    return scale**order * jnp.exp(lgamma(1.0 + order / shape))


def _variance(scale, shape):
    return scale**2 * (jnp.exp(lgamma(1.0 + 2.0 / shape)) - jnp.exp(2.0 * lgamma(1.0 + 1.0 / shape)))


factor = register(
    Factor(
        name="weibull",
        joined="0.6.0",
        edges={"scale": "positive", "shape": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        sites={"exp": _exp_site},
        site_edge="scale",
        link_densities={"exp": lambda out, s, shape: _log_density_of(out, s, shape)},
        conditional={
            "mean": lambda scale, shape: _moment(1, scale, shape),
            "variance": _variance,
            "below": lambda x, scale, shape: -jnp.expm1(-((jnp.maximum(x, 0.0) / scale) ** shape)),
            "draw": lambda key, scale, shape: scale * jax.random.exponential(key) ** (1.0 / shape),
        },
        log_below=lambda x, scale, shape: jnp.log(-jnp.expm1(-_risk(x, scale, shape))),
        log_above=lambda x, scale, shape: -_risk(x, scale, shape),
        unsupported={
            "shape": "the average of (x / scale)^shape over its Gamma beliefs is infinite wherever an event is late; "
            "EP, which integrates the density itself, serves it: method='ep' or 'auto'"
        },
        divides={"scale": 2},
        source="rinne2008weibull",
    )
)


@call_checked
def weibull(shape: Argument, scale: Argument) -> Term:
    """A Weibull variable: shape / scale (x / scale)^(shape - 1) exp(-(x / scale)^shape), the time until an event.

    `shape` > 0 and `scale` > 0: numbers, inputs or positive variables; `scale` also `exp` of a real expression, which
    is a regression of lifetimes. The risk rises with age for shapes above one; at one it is exponential. The average of
    the log density over vague beliefs is infinite, so method="auto" serves observed times by EP. Returns a term for
    `Model.random`, which raises ModelError for numbers outside these domains; as data they are a DataError. Source:
    rinne2008weibull.
    """
    return Term(factor, {"scale": scale, "shape": shape})
