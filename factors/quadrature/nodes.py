"""Quadrature under the beliefs of a factor's arguments, rebuilt from their moments.

A `Rule` holds points with weights and knows the message rule under its own measure: the gradient of an expectation in
the moments is the regression of the function on the statistics, Cov(t, t)^-1 Cov(t, f), with both covariances from the
same points, so a function that is linear in the statistics gives its exact message. Source: knowles2011ncvmp (the
message), salimans2013fixedform (the regression), takahasi1974double (the coordinate).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from ..arrays import Array, Numeric
from ..families import Beta, Gamma
from ..moments import Boolean, Category, Count, Moments, Positive, Real, Sparse, Unit
from ..special import TINY, lgamma, log_sigmoid

Scalar: TypeAlias = Float[Array, ""]
Values: TypeAlias = Float[Array, " point"]
Found: TypeAlias = tuple[Shaped[Array, " point"], Values, Callable[[Values], Any]]  # points, weights, the gradient
NODES = 80
_REACH = 38.0  # log of the density that is cut off, below the peak
_LOWEST = -700.0  # exp of less is no number
_CLOSEST = 1e-14  # to a point: log E x - E log x of a belief that has not lost its width to rounding


class Rule(NamedTuple):
    """Points of one or several arguments, by argument with the points on the first axis, and what may be done there.

    `weights` sum to one; `mean(values)` is the expectation of a function with these values at the points, and
    `gradient(values)` its gradient in the moments, by argument.
    """

    points: dict[str, Shaped[Array, "point ..."]]
    weights: Values
    mean: Callable[[Values], Scalar]
    gradient: Callable[[Values], dict[str, Moments]]


def scalar_rule(edge: str, kind: str, moments: Moments) -> Rule:
    """The rule of one argument on the real, positive or unit line, or with a discrete domain."""
    points, weights, gradient = _SCALAR[kind](moments)
    if isinstance(moments, Count) and edge == "out":
        gradient = _with_base_measure(moments, points, gradient)
    return Rule({edge: points}, weights, lambda values: weights @ values, lambda values: {edge: gradient(values)})


def _with_base_measure(moments: Count, points: Values, plain: Callable[[Values], Count]) -> Callable[[Values], Count]:
    """The gradient where the base measure 1 / x! of the family comes from the factor."""

    def gradient(values: Values) -> Count:
        return plain(values + lgamma(points + 1.0))._replace(log_factorial=-jnp.ones_like(moments.mean))

    return gradient


def regression(features: tuple[Values, Values], weights: Values, values: Values) -> tuple[Scalar, Scalar]:
    """The coefficients of two features in the weighted least-squares fit of `values`, a constant included."""
    one, two = (feature - weights @ feature for feature in features)
    values = values - weights @ values
    slope = _ratio(weights @ (one * two), weights @ one**2)
    rest = two - slope * one
    second = _ratio(weights @ (rest * values), weights @ rest**2)
    return _ratio(weights @ (one * (values - second * two)), weights @ one**2), second


def _ratio(a: Scalar, b: Scalar) -> Scalar:
    return jnp.where(b > 0, a / jnp.where(b > 0, b, 1.0), 0.0)


_Z = np.linspace(-8.5, 8.5, NODES)
_W = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()


def _real(moments: Real) -> Found:
    sd = jnp.sqrt(jnp.maximum(moments.variance, 1e-24))
    weights = jnp.asarray(_W, sd.dtype)
    z = jnp.asarray(_Z, sd.dtype)

    def gradient(values: Values) -> Real:
        one, two = regression((z, z**2), weights, values)
        return Real(one / sd, two / sd**2)

    return moments.mean + sd * z, weights, gradient


def _sparse(moments: Sparse) -> Found:
    """The zero, then the slab's points."""
    p = moments.probability
    share = jnp.where(p > 0.0, p, 1.0)
    mean = moments.mean / share
    variance = (moments.variance - (1.0 - p) * mean * moments.mean) / share
    points, weights, slope = _real(Real(mean, variance))

    def gradient(values: Values) -> Sparse:
        slab = slope(values[1:])
        linear = slab.mean - 2.0 * mean * slab.variance
        height = weights @ (values[1:] - linear * points - slab.variance * points**2)
        return Sparse(height - values[0], linear + 2.0 * moments.mean * slab.variance, slab.variance)

    return jnp.append(0.0, points), jnp.append(1.0 - p, p * weights), gradient


def stretched(
    centre: Scalar, low: Scalar, high: Scalar, left: Scalar, right: Scalar, nodes: int = NODES
) -> tuple[Values, Values]:
    """Points u = centre + t + right expm1(t) - left expm1(-t) that reach from `low` to `high`, and their spacings.

    A tail that decays exponentially at the rate a needs u ~ -1/a: the stretch covers it with equally spaced t.
    """
    down, up = jnp.maximum(centre - low, 0.0), jnp.maximum(high - centre, 0.0)
    first = -jnp.minimum(down / (1.0 + left), jnp.log1p(down / left))
    last = jnp.minimum(up / (1.0 + right), jnp.log1p(up / right))
    t = first + (last - first) * jnp.linspace(0.0, 1.0, nodes, dtype=jnp.result_type(float))
    return centre + t + right * jnp.expm1(t) - left * jnp.expm1(-t), 1.0 + right * jnp.exp(t) + left * jnp.exp(-t)


def _normal(log_weights: Values) -> Values:
    weights = jnp.exp(log_weights - jnp.max(log_weights))
    return weights / weights.sum()


def gamma_rule(moments: Positive) -> tuple[Values, Values, Scalar]:
    """log(x r / a) at the points of Gamma(a, rate r) with these moments, the weights, and log(a / r)."""
    log = jnp.minimum(moments.log, jnp.log(moments.mean) - _CLOSEST)
    belief = Gamma.from_stats((moments.mean, log))
    v, weights = gamma_points(jnp.asarray(belief.shape))
    return v, weights, jnp.log(moments.mean)


def gamma_points(shape: Scalar, reach: Numeric = _REACH, nodes: int = NODES) -> tuple[Values, Values]:
    """log(x r / a) at the points of Gamma(a, rate r) and the weights; `reach` is the log of the density cut off."""
    # Where shape (exp(v) - 1 - v) reaches the cut-off, from outside.
    q = reach / shape
    low = -0.5 * (q + jnp.sqrt(q**2 + 8.0 * q))
    high = jnp.log1p(q + jnp.sqrt(2.0 * q))
    centre, left = jnp.log1p(1.0 / shape), 1.0 / (1.0 + shape)
    v, spacing = stretched(centre, low, high, left, jnp.asarray(1e-6), nodes)
    return v, _normal(shape * (v - jnp.expm1(v)) + jnp.log(spacing))


def _positive(moments: Positive) -> Found:
    v, weights, scale = gamma_rule(moments)

    def gradient(values: Values) -> Positive:
        one, two = regression((v, jnp.expm1(v) - v), weights, values)
        return Positive(two / moments.mean, one - two)

    return jnp.exp(jnp.maximum(v + scale, _LOWEST)), weights, gradient


def _unit(moments: Unit) -> Found:
    belief = Beta.from_stats((moments.log, moments.log_complement))
    a, b = jnp.asarray(belief.a), jnp.asarray(belief.b)
    peak = jnp.log(a) - jnp.log(b)
    u, weights = beta_points(a, b)
    share, delta = a / (a + b), u - peak
    bend = share * delta - jnp.log1p(share * jnp.expm1(jnp.minimum(delta, 30.0)))
    bend = jnp.where(delta > 30.0, share * delta - delta - jnp.log(share), bend)

    def gradient(values: Values) -> Unit:
        one, two = regression((delta, bend), weights, values)
        return Unit(one + two * share, two - one - two * share)

    point = jnp.clip(jax.nn.sigmoid(u), np.exp(_LOWEST), 1.0 - np.finfo(float).epsneg)
    return point, weights, gradient


def beta_points(a: Scalar, b: Scalar, reach: Numeric = _REACH, nodes: int = NODES) -> tuple[Values, Values]:
    """log(p / (1 - p)) at the points of Beta(a, b) and the weights; `reach` is the log of the density cut off."""
    peak = jnp.log(a) - jnp.log(b)
    centre = jnp.log1p(a) - jnp.log1p(b)
    low, high = peak - _drop(a, b, reach), peak + _drop(b, a, reach)
    u, spacing = stretched(centre, low, high, 1.0 / (1.0 + a), 1.0 / (1.0 + b), nodes)
    return u, _normal(a * log_sigmoid(u) + b * log_sigmoid(-u) + jnp.log(spacing))


def _drop(a: Scalar, b: Scalar, reach: Numeric) -> Scalar:
    """How far below its peak in log(p / (1 - p)) the density p^a (1 - p)^b falls by the cut-off.

    Newton's method on a convex function, from a bound beyond the zero.
    """
    share = a / (a + b)
    q = reach / (a * (1.0 - share))
    z = 0.5 * (q + jnp.sqrt(q**2 + 8.0 * q))
    for _ in range(2):
        gone = -jnp.expm1(-z)
        rest = (1.0 - share) + share * jnp.exp(-z)
        z = z - (a * z + (a + b) * jnp.log(rest) - reach) / jnp.maximum(a * (1.0 - share) * gone / rest, TINY)
    return z


def _boolean(moments: Boolean) -> Found:
    p = moments.probability
    return jnp.asarray([0.0, 1.0]), jnp.stack([1.0 - p, p]), lambda values: Boolean(values[1] - values[0])


def _category(moments: Category) -> Found:
    return jnp.arange(moments.probability.shape[-1]), moments.probability, Category


def _count(moments: Count) -> Found:
    """A lattice of whole numbers that covers a Poisson belief: all of them, or equally spaced ones of a wide one."""
    rate = jnp.maximum(moments.mean, TINY)
    width = 9.0 * jnp.sqrt(rate)
    stride = jnp.ceil(2.0 * width / NODES)
    start = jnp.maximum(jnp.floor(rate - width), 0.0)
    points = start + stride * jnp.arange(NODES)
    weights = _normal(points * jnp.log(rate) - rate - lgamma(points + 1.0))

    def gradient(values: Values) -> Count:
        centred = points - weights @ points
        return Count(_ratio(weights @ (centred * values), weights @ centred**2), jnp.zeros_like(moments.log_factorial))

    return points, weights, gradient


_SCALAR: dict[str, Callable[..., Found]] = {
    "real": _real,
    "sparse": _sparse,
    "positive": _positive,
    "unit": _unit,
    "boolean": _boolean,
    "category": _category,
    "count": _count,
}
