"""The multinomial probit link: p_k = P(s_k + e_k > s_j + e_j for all j), the e independent N(0, 1).

For independent s_k ~ N(m_k, v_k) the utilities z_k = s_k + e_k are N(m_k, 1 + v_k), so that values, predictions and the
EP moments are one integral over the largest utility,

    log Z_y = log of the integral of N(u; m_y, 1 + v_y) prod_(j != y) Phi((u - m_j) / sqrt(1 + v_j)) du.

The integrand is log-concave and entire: a trapezoid rule over the interval where it is not negligible converges
exponentially. Classes are on the last axis.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Argument, Array
from ..factor import Link, Site, register
from ..moments import Real, Simplex
from ..quadrature import HALF_LOG_2PI
from ..special import hazard, log_ndtr, truncated_mean, truncated_variance

_T = np.linspace(0.0, 1.0, 128)
_DEPTH = 38.0  # how far the log integrand has fallen at the ends of the interval
_CLIMB, _TRIM = 10, 6  # Newton steps to the mode and to each end


class _Interval(NamedTuple):
    low: Array
    high: Array
    level: Array  # the log integrand near its mode


def _interval(own: Array, mean: Array, sd: Array) -> _Interval:
    """Where the integrand is not negligible; a wider interval is only slower.

    Newton's method climbs monotonically from m_y, since the slope is convex, and comes back to each end from outside,
    since the log integrand is concave: it never passes its aim, and few steps will do.
    """
    wide = jnp.sum(jnp.where(own, sd, 0.0), axis=-1)

    def at(u):
        return (u[..., None] - mean) / sd

    def height(u):
        x = at(u)
        return jnp.sum(jnp.where(own, -0.5 * x * x, log_ndtr(x)), axis=-1)

    def slope(u):
        x = at(u)
        return jnp.sum(jnp.where(own, -x, hazard(x)) / sd, axis=-1)

    def bend(u):
        x = at(u)
        return -jnp.sum(jnp.where(own, 1.0, hazard(x) * truncated_mean(x)) / sd**2, axis=-1)

    top = jnp.sum(jnp.where(own, mean, 0.0), axis=-1)
    top = jax.lax.fori_loop(0, _CLIMB, lambda _, u: u - slope(u) / bend(u), top)
    level, rise = height(top), slope(top)
    # The curvature is at least that of the Gaussian, so the integrand lies below a parabola.
    reach = jnp.sqrt(rise**2 + 2.0 * _DEPTH / wide**2)
    ends = top + wide**2 * jnp.stack([rise - reach, rise + reach])
    ends = jax.lax.fori_loop(0, _TRIM, lambda _, u: u - (height(u) - level + _DEPTH) / slope(u), ends)
    return _Interval(ends[0], ends[1], level)


def choice_site(out: Argument, mean: Array, variance: Array) -> Site:
    """The site of "class `out` has the largest utility" for independent scores s_k ~ N(mean_k, variance_k).

    `out` (...) holds class numbers, `mean` and `variance` (..., K) the cavities. Returns the log evidence (...) and by
    class (..., K) its derivatives in the means. With E z and Var z of the tilted utilities and t = 1 + v,

        score = (E z - m) / t,   curvature = (1 - Var z / t) / t,   ratio = (1 + v Var z / t) / t,

    where nothing cancels. Relative accuracy 1e-11 for variances of like size. Source: girolami2006multinomial,
    riihimaki2013nested.
    """
    own = jnp.asarray(out)[..., None] == jnp.arange(mean.shape[-1])
    total = 1.0 + variance
    sd = jnp.sqrt(total)
    low, high, level = _interval(*jax.lax.stop_gradient((own, mean, sd)))
    u = low + (high - low) * jnp.asarray(_T, mean.dtype).reshape((-1,) + (1,) * low.ndim)
    x = (u[..., None] - mean) / sd
    weight = jnp.exp(jnp.sum(jnp.where(own, -0.5 * x * x, log_ndtr(x)), axis=-1) - level)
    sum_ = jnp.sum(weight, axis=0)
    step = (high - low) * (_T[1] - _T[0])
    own_sd = jnp.sum(jnp.where(own, sd, 0.0), axis=-1)
    log_evidence = level + jnp.log(sum_ * step) - jnp.log(own_sd) - HALF_LOG_2PI
    weight = (weight / sum_)[..., None]
    # (z - m) / sd given u: x itself for the largest, a normal truncated above at x for the others.
    centre = jnp.where(own, x, -hazard(x))
    shift = jnp.sum(weight * centre, axis=0)
    spread = jnp.sum(weight * ((centre - shift) ** 2 + jnp.where(own, 0.0, truncated_variance(x))), axis=0)
    return Site(log_evidence, shift / sd, (1.0 - spread) / total, (1.0 + variance * spread) / total)


@jax.custom_jvp
def log_choice(out: Argument, mean: Array, variance: Array) -> Array:
    """log Z_out for classes on the last axis of `mean` and `variance`; without variance the log probability of `out`.

    Its derivatives are those of the site: no node of the quadrature is kept.
    """
    return choice_site(out, mean, variance).log_evidence


@log_choice.defjvp
def _log_choice_jvp(primals, tangents):
    site = choice_site(*primals)
    _, in_mean, in_variance = tangents
    change = site.score * in_mean + 0.5 * (site.score**2 - site.curvature) * in_variance
    return site.log_evidence, jnp.sum(change, axis=-1)


def log_choices(mean: Array, variance: Array) -> Array:
    """log Z_k of all classes k (..., K), one class at a time."""
    mean, variance = jnp.broadcast_arrays(mean, variance)

    def one(k):
        return log_choice(jnp.full(mean.shape[:-1], k), mean, variance)

    return jnp.moveaxis(jax.lax.map(one, jnp.arange(mean.shape[-1])), 0, -1)


def expected_choice(mean: Array, variance: Array) -> Array:
    """The class probabilities for independent scores s_k ~ N(mean_k, variance_k); they sum to one."""
    return jax.nn.softmax(log_choices(mean, variance), axis=-1)


def _moments(argument: Real, bound: str = "auxiliary") -> Simplex:
    """E log p_k >= log p_k(m) - sum_j v_j / 2.

    With q(z) any density of the utilities that make k the largest, E log p_k >= E_q E log N(z; s, I) + entropy of q;
    the expectation over s costs sum v / 2 and moves s to m, and the best q is N(m, I) truncated.
    """
    logs = log_choices(argument.mean, jnp.zeros_like(argument.mean))
    return Simplex(logs - 0.5 * jnp.sum(argument.variance, axis=-1, keepdims=True))


register(
    Link(
        "multinomial_probit",
        value=lambda s: expected_choice(s, jnp.zeros_like(s)),
        moments=_moments,
        bounds={"auxiliary": "bound"},
        site=choice_site,
        source="girolami2006multinomial",
    )
)
