"""The probit link (the normal cdf) and the positivity factor: the same Gaussian integral with or without unit noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Array
from ..factor import Link, Site, register
from ..moments import Real, Unit
from ..quadrature import gaussian_expectation, tilted_site
from ..special import hazard, log_ndtr, truncated_variance


def positive_site(out, mean, variance, power=1.0) -> Site:
    """The site of s > 0 (`out` true) or s < 0 (`out` false) for s ~ N(mean, variance).

    Powers of an indicator are itself. log evidence = log Phi(z), z = +-mean / sqrt(variance). Source: minka2001ep,
    herbrich2006trueskill.
    """
    sign = 2.0 * out - 1.0
    sd = jnp.sqrt(variance)
    z = sign * mean / sd
    ratio = truncated_variance(z)
    return Site(log_ndtr(z), sign * hazard(z) / sd, (1.0 - ratio) / variance, ratio)


def probit_site(out, mean, variance, power=1.0, noise=1.0) -> Site:
    """The site of Phi(s)^out Phi(-s)^(1 - out), which is s + noise > 0: closed form; for a power by quadrature."""
    if power != 1.0:
        sign = 2.0 * out - 1.0
        return tilted_site(lambda s: power * log_ndtr(sign * s), mean, variance)
    total = noise + variance
    noisy = positive_site(out, mean, total)
    return noisy._replace(ratio=(noise + variance * noisy.ratio) / total)


def _value(argument: Array) -> Array:
    return jax.scipy.stats.norm.cdf(argument)  # JAX loads these distributions when they are first named


def _moments(argument: Real, bound: str = "quadrature") -> Unit:
    return Unit(
        gaussian_expectation(log_ndtr, argument.mean, argument.variance),
        gaussian_expectation(lambda s: log_ndtr(-s), argument.mean, argument.variance),
    )


register(
    Link(
        "probit",
        value=_value,
        moments=_moments,
        bounds={"quadrature": "quadrature"},
        chance=probit_site,
        source="minka2001ep",
    )
)
