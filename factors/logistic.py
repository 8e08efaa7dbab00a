"""The logistic link 1 / (1 + exp(-s)): bounds and quadrature for NCVMP, a quadrature site for EP."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from .factor import Link, Site, register
from .moments import Real, Unit
from .probit import probit_site
from .quadrature import bracketed_newton, gaussian_expectation, tilted_site
from .special import log_sigmoid, ndtr, sigmoid, softplus

_SPREAD = math.pi**2 / 3.0  # the variance of the logistic distribution
_WIDE = 2.5  # variance
_STEP = 0.8  # trapezoids: the poles at +-i pi leave an error of exp(-2 pi^2 / step)
_NODES = _STEP * np.arange(-32, 33)


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


def _smoothed_hinge(m, v):
    """E max(0, x) for x ~ N(m, v)."""
    sd = jnp.sqrt(v)
    return m * ndtr(m / sd) + sd * jnp.exp(-0.5 * m**2 / v) / math.sqrt(2.0 * math.pi)


def _rest(x):
    """log(1 + exp(x)) less a hinge smoothed by a Gaussian, which has the same tails and the same integral."""
    return softplus(x) - _smoothed_hinge(x, jnp.full_like(x, _SPREAD))


def _quadrature(m, v):
    """E log(1 + exp(s)): a smoothed hinge, which is exact, and quadrature of what is left, small and local.

    Under a narrow Gaussian the nodes follow it, under a wide one they stay where the rest is. Either way to 1e-10.
    """
    wide = jnp.maximum(v, _WIDE)[..., None]
    nodes = jnp.asarray(_NODES, wide.dtype)
    density = jnp.exp(-0.5 * (nodes - m[..., None]) ** 2 / wide) / jnp.sqrt(2.0 * math.pi * wide)
    far = density @ (_STEP * _rest(nodes))
    near = gaussian_expectation(_rest, m, jnp.minimum(v, _WIDE))
    return _smoothed_hinge(m, v + _SPREAD) + jnp.where(v < _WIDE, near, far)


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
        source="saul1999mean, jaakkola2000, knowles2011ncvmp",
    )
)
