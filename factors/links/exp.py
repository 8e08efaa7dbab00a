"""The exp link: a Gaussian argument gives a log-normal, whose moments are exact."""

from __future__ import annotations

import jax.numpy as jnp

from ..factor import Link, register
from ..moments import Positive, Real


def _moments(argument: Real, bound: str = "exact") -> Positive:
    return Positive(jnp.exp(argument.mean + 0.5 * argument.variance), argument.mean)


register(Link("exp", value=jnp.exp, moments=_moments, source="knowles2011ncvmp"))
