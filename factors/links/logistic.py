"""The logistic link 1 / (1 + exp(-s)): bounds and quadrature for NCVMP, a quadrature site for EP."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..factor import Link, Site, register
from ..moments import Real, Unit
from ..quadrature import bracketed_newton, tilted_site
from ..special import log_sigmoid, ndtr, sigmoid, softplus
from .probit import probit_site

_SPREAD = math.pi**2 / 3.0  # the variance of the logistic distribution
_STEP = 0.3  # in the log of a variance: the mixture is the logistic distribution to 1e-12


def _mixture() -> tuple[np.ndarray, np.ndarray]:
    """Variances and weights of normal distributions whose mixture is the logistic distribution; stefanski1991logistic.

    The variance is 4 K^2 with K of the Kolmogorov distribution. Its density vanishes double exponentially at both ends
    of a log scale, where equidistant nodes therefore are worth a Gauss rule.
    """
    variance = np.exp(np.arange(math.log(0.2), math.log(55.0), _STEP))
    k = np.arange(1.0, 60.0)[:, None]
    wide = (-1.0) ** (k - 1.0) * k**2 * np.exp(-0.5 * k**2 * variance)
    rate = 0.5 * (math.pi * (2.0 * k - 1.0)) ** 2
    narrow = 2.0 * np.sqrt(2.0 * math.pi / variance) * np.exp(-rate / variance) * (rate / variance - 0.5) / variance
    weight = variance * np.where(variance > 3.0, wide.sum(0), narrow.sum(0))  # the same series, transformed
    return variance, weight / weight.sum()


_VARIANCES, _WEIGHTS = _mixture()


def logistic_site(out, mean, variance, power=1.0) -> Site:
    """The site of sigma(s)^out sigma(-s)^(1 - out) for s ~ N(mean, variance), by quadrature at the tilted mode."""
    sign = 2.0 * out - 1.0
    centre = sign * mean  # sigma(-s) at s is sigma(s) at -s: solve one case

    def derivatives(x):
        p = sigmoid(-x)
        return centre + power * variance * p - x, -1.0 - power * variance * p * (1.0 - p)

    mode = bracketed_newton(derivatives, centre, centre + power * variance, 12)
    scale = jnp.sqrt(variance / -derivatives(mode)[1])
    site = tilted_site(lambda s: power * log_sigmoid(s), centre, variance, peak=(mode, scale))
    site = site._replace(score=sign * site.score)
    if power != 1.0:
        return site
    # Under a very wide cavity the step is a spike to any quadrature, and a probit of equal variance to a wide Gaussian.
    wide = (variance > 1e3) & (jnp.abs(mean) < 0.02 * variance)
    return jax.tree.map(lambda a, b: jnp.where(wide, a, b), probit_site(out, mean, variance, noise=_SPREAD), site)


@jax.custom_jvp
def _quadrature(m, v):
    """E log(1 + exp(s)), to 1e-11 under any variance: each normal of the mixture smooths a hinge in closed form."""
    return smoothed_hinge(m, v)[0]


def smoothed_hinge(m, v):
    """sum over the mixture of E max(0, x) for x ~ N(m, v + its variance), and the derivatives in m and in v."""
    variances, weights = (jnp.asarray(a, m.dtype) for a in (_VARIANCES, np.stack([_WEIGHTS, _WEIGHTS * _VARIANCES])))
    total = v + variances.reshape((-1,) + (1,) * jnp.ndim(m))
    sd = jnp.sqrt(total)
    slope = jnp.tensordot(weights[0], ndtr(m / sd), axes=1)
    density, spread = jnp.tensordot(weights, jnp.exp(-0.5 * m**2 / total) / (math.sqrt(2.0 * math.pi) * sd), axes=1)
    return m * slope + v * density + spread, slope, 0.5 * density


@_quadrature.defjvp
def _(primals, tangents):
    value, in_mean, in_variance = smoothed_hinge(*primals)
    return value, in_mean * tangents[0] + in_variance * tangents[1]


def _tilted(m, v):
    """min over a of a^2 v / 2 + log(1 + exp(m + (1 - 2 a) v / 2)); saul1999mean.

    The minimiser solves a = sigma(m + (1 - 2 a) v / 2).
    """
    m_fixed, v_fixed = jax.lax.stop_gradient((m, v))

    def derivatives(a):
        p = sigmoid(m_fixed + 0.5 * (1.0 - 2.0 * a) * v_fixed)
        return p - a, -v_fixed * p * (1.0 - p) - 1.0

    a = bracketed_newton(derivatives, jnp.zeros_like(m_fixed), jnp.ones_like(m_fixed), 40)
    return 0.5 * a**2 * v + softplus(m + 0.5 * (1.0 - 2.0 * a) * v)


def _jaakkola(m, v):
    """m / 2 + log(2 cosh(t / 2)) at the best t^2 = m^2 + v; jaakkola2000."""
    t = jnp.sqrt(m**2 + v + 1e-16)  # zero would have no slope
    return 0.5 * m - 0.5 * t + softplus(t)


BOUNDS = {"quadrature": _quadrature, "tilted": _tilted, "jaakkola": _jaakkola}


def _moments(argument: Real, bound: str = "quadrature") -> Unit:
    partition = BOUNDS[bound](argument.mean, argument.variance)
    return Unit(argument.mean - partition, -partition)


register(
    Link(
        "logistic",
        value=sigmoid,
        moments=_moments,
        bounds={"quadrature": "quadrature", "tilted": "bound", "jaakkola": "bound"},
        chance=logistic_site,
        source="saul1999mean, jaakkola2000, knowles2011ncvmp, stefanski1991logistic",
    )
)
