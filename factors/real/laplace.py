"""The Laplace factor: absolute errors instead of squared ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..closed import Closed, Formula
from ..domains import real
from ..factor import Factor, Site, Term, register
from ..families import Gamma, Gaussian
from ..moments import Positive, Real
from ..quadrature.derived import positive_expectation
from ..special import TINY, hazard, log_ndtr, ndtr, truncated_variance
from .gaussian import about


def _log_density(out, mean, scale):
    return -jnp.log(2.0 * scale) - jnp.abs(out - mean) / scale


def _log_tail(z):
    """log P(Z <= z) for a Laplace number of scale one around zero."""
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z < 0, z - math.log(2.0), jnp.log1p(-half))


def _distance(out: Real, mean: Real):
    """E |out - mean|."""
    gap, variance = out.mean - mean.mean, out.variance + mean.variance
    sd = jnp.sqrt(jnp.maximum(variance, TINY))
    z = gap / sd
    return gap * (2.0 * ndtr(z) - 1.0) + 2.0 * sd * jnp.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)


def _expected_log(out: Real, mean: Real, scale: Positive):
    return -math.log(2.0) - scale.log - _distance(out, mean) / scale.mean


def _with_random_scale(out: Real, mean: Real, scale: Positive):
    # E[1 / scale] of a belief of shape <= 1 is infinite: the points stop where exp does.
    inverse = positive_expectation(lambda x, log_x: jnp.exp(-jnp.maximum(log_x, -300.0)), scale)
    return -math.log(2.0) - scale.log - _distance(out, mean) * inverse


def _predict(mean: Real, scale: Positive) -> Gaussian:
    return Gaussian.from_parameters(mean=mean.mean, variance=mean.variance + 2.0 * jnp.exp(2.0 * scale.log))


def _site(out, mean, variance, power=1.0, scale=1.0) -> Site:
    """Two truncated Gaussians, one on each side of `out`: closed form."""
    rate, gap, sd = power / scale, out - mean, jnp.sqrt(variance)
    above, below = (gap - rate * variance) / sd, (-gap - rate * variance) / sd
    half = 0.5 * rate**2 * variance
    log_above, log_below = half - rate * gap + log_ndtr(above), half + rate * gap + log_ndtr(below)
    total = jnp.logaddexp(log_above, log_below)
    p, q = jnp.exp(log_above - total), jnp.exp(log_below - total)
    up, down = rate - hazard(above) / sd, hazard(below) / sd - rate
    ratio = p * truncated_variance(above) + q * truncated_variance(below) + p * q * variance * (up - down) ** 2
    return Site(total - power * jnp.log(2.0 * scale), p * up + q * down, (1.0 - ratio) / variance, ratio)


def _closed(arguments: Mapping[str, Formula]) -> Closed | None:
    """A Gaussian mean: a Gaussian whose variance is exponential, times twice the square of the scale."""
    mean, scale = arguments["mean"], arguments["scale"]
    if mean.belief(Gaussian) is None or not mean.alone(scale):
        return None
    mixing = mean.draw(Gamma.from_parameters(shape=jnp.asarray(1.0), rate=jnp.asarray(1.0)))
    return about({"mean": mean, "precision": (mixing * (mean.number(2.0) * scale**2)) ** -1})


factor = register(
    Factor(
        name="laplace",
        edges={"mean": "real", "scale": "positive"},
        out=lambda domains: real,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        with_random=lambda random: _with_random_scale if "scale" in random else None,
        sites={"linear": _site},
        closed_sites=frozenset({"linear"}),
        site_edge="mean",
        closed=_closed,
        divides={"scale": 2},
        log_below=lambda x, mean, scale: _log_tail((x - mean) / scale),
        log_above=lambda x, mean, scale: _log_tail((mean - x) / scale),
        source="seeger2008sparse",
    )
)


@call_checked
def laplace(mean: Argument, scale: Argument) -> Term:
    """A Laplace variable: exp(-|x - mean| / scale) / (2 scale), with variance 2 scale^2.

    `mean` is real; `scale` > 0: numbers, an input, or a positive variable. Returns a term for `Model.random`, which
    raises ModelError for numbers outside these domains; as data they are a DataError. Source: seeger2008sparse.
    """
    return Term(factor, {"mean": mean, "scale": scale})
