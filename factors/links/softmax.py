"""The softmax link: E log sum_k exp(s_k) for Gaussian s_k.

It is had by quadrature (log_sum_exp.py; joint_log_sum_exp.py where the scores share one belief), and for independent
scores by five bounds and by a Taylor expansion. Each function maps means and
variances with the classes on the last axis to (an upper bound of) that expectation; a lower value is tighter. Free
parameters are set to their optimum and held there: at the optimum their derivative vanishes, so the gradient is that
of the bound.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..factor import Link, register
from ..moments import Real, Simplex, Vector
from ..quadrature import bracketed_root, joint_log_sum_exp
from ..quadrature.log_sum_exp import expected_log_sum_exp, statistics
from ..special import TINY, softplus

logsumexp = jax.scipy.special.logsumexp


def _log(m, v):
    """log sum exp(m + v / 2): Jensen's inequality; blei2007correlated."""
    return logsumexp(m + 0.5 * v, axis=-1)


def _tilted(m, v):
    """sum a^2 v / 2 + log sum exp(m + (1 - 2 a) v / 2) with a = softmax(m + (1 - 2 a) v / 2); knowles2011ncvmp."""
    a = jax.lax.stop_gradient(_tilted_weights(*jax.lax.stop_gradient((m, v))))
    return 0.5 * (a**2 * v).sum(-1) + logsumexp(m + 0.5 * (1.0 - 2.0 * a) * v, axis=-1)


def _tilted_weights(m, v):
    """The minimiser of the tilted bound.

    Given the normaliser L, each class solves log a + a v = m + v / 2 - L alone, through w = a v with w + log w = y, and
    L is the zero of sum a(L) - 1. That sum is convex and decreasing in L: Newton's steps from the left cannot
    overshoot, and need no damping, where the plain fixed point oscillates as soon as v a (1 - a) > 1.
    """
    v = jnp.maximum(v, 1e-12)
    target = m + 0.5 * v + jnp.log(v)
    # Here the sum is at least one, since a <= 1 gives log a >= target - v - L.
    start = logsumexp(m - 0.5 * v, axis=-1, keepdims=True)

    def step(state):
        i, normaliser, _, _ = state
        w = _lambert(jnp.maximum(target - normaliser, -600.0))
        move = ((w / v).sum(-1, keepdims=True) - 1.0) / (w / (v * (1.0 + w))).sum(-1, keepdims=True)
        return i + 1, normaliser + move, w, jnp.any(jnp.abs(move) > 1e-13 * (1.0 + jnp.abs(normaliser)))

    begin = (0, start, jnp.zeros_like(target), jnp.asarray(True))
    a = jax.lax.while_loop(lambda state: state[-1] & (state[0] < 100), step, begin)[2] / v
    return a / a.sum(-1, keepdims=True)


def _lambert(y):
    """The root w of w + log w = y: two steps of fourth order; fritsch1973lambert."""
    small = jnp.exp(jnp.minimum(y, 1.0))
    w = jnp.where(y > 1.0, y - jnp.log(jnp.maximum(y, 1.0)), small / (1.0 + 0.6 * small))
    for _ in range(2):
        gap = y - jnp.log(w) - w
        q = 2.0 * (1.0 + w) * (1.0 + w + gap / 1.5)
        w = w * (1.0 + gap / (1.0 + w) * (q - gap) / (q - 2.0 * gap))
    return w


def _quadratic(m, v):
    """alpha + sum_k [(m_k - alpha - t_k) / 2 + softplus(t_k)], t_k^2 = (m_k - alpha)^2 + v_k, at the best alpha.

    Source: bouchard2007. Coordinate descent in (alpha, t) is slow; with t substituted the function of alpha is convex
    and bracketed Newton takes a few steps.
    """
    m_fixed, v_fixed = jax.lax.stop_gradient((m, v))

    def derivatives(alpha):
        gap = m_fixed - alpha
        t = jnp.sqrt(gap**2 + v_fixed + TINY)
        slope_t, bend_t = -gap / t, v_fixed / t**3
        p = jax.nn.sigmoid(t)
        slope = 1.0 + (-0.5 * (1.0 + slope_t) + slope_t * p).sum(-1, keepdims=True)
        bend = (bend_t * (p - 0.5) + slope_t**2 * p * (1.0 - p)).sum(-1, keepdims=True)
        return -slope, -bend

    spread = jnp.sqrt(v_fixed.max(-1, keepdims=True)) + m_fixed.shape[-1]
    low, high = m_fixed.min(-1, keepdims=True) - spread, m_fixed.max(-1, keepdims=True) + spread
    alpha = bracketed_root(derivatives, low, high)
    t = jnp.sqrt((m - alpha) ** 2 + v + TINY)
    return alpha[..., 0] + (0.5 * (m - alpha - t) + softplus(t)).sum(-1)


def _bohning(m, v):
    """log sum exp(m) + (1 - 1/K) sum v / 4; bohning1992."""
    classes = m.shape[-1]
    return logsumexp(m, axis=-1) + 0.25 * (1.0 - 1.0 / classes) * v.sum(-1)


def _taylor(m, v):
    """log sum exp(m) + sum v p (1 - p) / 2, p = softmax(m): second order, not a bound; blei2007correlated."""
    p = jax.nn.softmax(m, axis=-1)
    return logsumexp(m, axis=-1) + 0.5 * (v * p * (1.0 - p)).sum(-1)


def _adaptive(m, v):
    """The lower of the tilted and the quadratic bound, row by row; knowles2011ncvmp."""
    return jnp.minimum(_tilted(m, v), _quadratic(m, v))


BOUNDS = {
    "quadrature": expected_log_sum_exp,
    "tilted": _tilted,
    "log": _log,
    "quadratic": _quadratic,
    "adaptive": _adaptive,
    "bohning": _bohning,
    "taylor": _taylor,
}


def _moments(argument: Real, bound: str = "quadrature") -> Simplex:
    return Simplex(argument.mean - BOUNDS[bound](argument.mean, argument.variance)[..., None])


def _joint_moments(argument: Vector) -> Simplex:
    total = joint_log_sum_exp.expected_log_sum_exp(argument.mean, argument.covariance)
    return Simplex(argument.mean - total[..., None])


def expected_softmax(m, v):
    """E softmax(s) for independent s_k ~ N(m_k, v_k): the gradient of E log sum exp in the means."""
    return statistics(m, v)[1]


def expected_softmax_jointly(m, covariance):
    """E softmax(s) for s ~ N(m, covariance)."""
    return joint_log_sum_exp.statistics(m, covariance)[1]


register(
    Link(
        "softmax",
        value=lambda s: jax.nn.softmax(s, axis=-1),
        moments=_moments,
        bounds={
            "quadrature": "quadrature",
            "tilted": "bound",
            "log": "bound",
            "quadratic": "bound",
            "adaptive": "bound",
            "bohning": "bound",
            "taylor": "expansion, not a bound",
        },
        jointly=_joint_moments,
        most=joint_log_sum_exp.MOST,
        source="knowles2011ncvmp, blei2007correlated, bouchard2007, bohning1992",
    )
)
