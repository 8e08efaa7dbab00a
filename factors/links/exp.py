"""The exp link: a Gaussian argument gives a log-normal, whose moments are exact."""

from __future__ import annotations

import jax.numpy as jnp

from ..arrays import Array
from ..factor import Link, register
from ..families import Family, Gamma
from ..moments import Positive, Real


def _moments(argument: Real, bound: str = "exact") -> Positive:
    return Positive(jnp.exp(argument.mean + 0.5 * argument.variance), argument.mean)


def belief(argument: Real, least: float) -> Family:
    """The Gamma of the mean and the variance of exp(s), s being Gaussian with a variance of `least` or more."""
    shape: Array = 1.0 / jnp.expm1(jnp.maximum(argument.variance, least))
    return Gamma.from_parameters(shape=shape, rate=shape * jnp.exp(-argument.mean - 0.5 * argument.variance))


register(Link("exp", value=jnp.exp, moments=_moments, source="knowles2011ncvmp"))
