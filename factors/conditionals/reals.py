"""Conditionals of real numbers, sparse ones included."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import betainc

from ..arrays import Array, Key, Numeric
from ..conditional import Table
from ..quadrature import HALF_LOG_2PI, truncation
from ..special import log_ndtr, ndtr

REALS = Table()


REALS.add(
    "gaussian",
    "real",
    mean=lambda mean, precision: mean,
    variance=lambda mean, precision: 1.0 / precision,
    below=lambda x, mean, precision: ndtr((x - mean) * jnp.sqrt(precision)),
    draw=lambda key, mean, precision: mean + jax.random.normal(key) / jnp.sqrt(precision),
)


def _about(mean: Array, extra: Array, precision: Array) -> tuple[Array, Array]:
    return mean, extra + 1.0 / precision


def _log_density_about(out: Array, mean: Array, extra: Array, precision: Array) -> Array:
    _, variance = _about(mean, extra, precision)
    return -0.5 * jnp.log(variance) - HALF_LOG_2PI - 0.5 * (out - mean) ** 2 / variance


REALS.add(  # a Gaussian whose mean is Gaussian itself, with variance `extra`
    "gaussian_about",
    "real",
    log_density=_log_density_about,
    mean=lambda mean, extra, precision: mean,
    variance=lambda mean, extra, precision: _about(mean, extra, precision)[1],
    below=lambda x, mean, extra, precision: ndtr((x - mean) / jnp.sqrt(_about(mean, extra, precision)[1])),
    draw=lambda key, mean, extra, precision: (
        mean + jax.random.normal(key) * jnp.sqrt(_about(mean, extra, precision)[1])
    ),
)


def student_below(x: Array, dof: Array, mean: Array, scale: Array) -> Array:
    """P(X <= x) under Student's t."""
    z = (x - mean) / scale
    tail = 0.5 * betainc(0.5 * dof, 0.5, dof / (dof + z**2))
    return jnp.where(z > 0, 1.0 - tail, tail)


REALS.add(
    "student_t",
    "real",
    mean=lambda dof, mean, scale: jnp.where(dof > 1.0, mean, jnp.nan),
    variance=lambda dof, mean, scale: jnp.where(
        dof > 2.0, scale**2 * dof / jnp.where(dof > 2.0, dof - 2.0, 1.0), jnp.where(dof > 1.0, jnp.inf, jnp.nan)
    ),
    below=student_below,
    draw=lambda key, dof, mean, scale: mean + scale * jax.random.t(key, dof),
)


def _laplace_below(x: Array, mean: Array, scale: Array) -> Array:
    z = (x - mean) / scale
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z > 0, 1.0 - tail, tail)


REALS.add(
    "laplace",
    "real",
    mean=lambda mean, scale: mean,
    variance=lambda mean, scale: 2.0 * scale**2,
    below=_laplace_below,
    draw=lambda key, mean, scale: mean + scale * jax.random.laplace(key),
)
REALS.add(
    "uniform",
    "real",
    mean=lambda low, high: 0.5 * (low + high),
    variance=lambda low, high: (high - low) ** 2 / 12.0,
    below=lambda x, low, high: jnp.clip((x - low) / (high - low), 0.0, 1.0),
    draw=lambda key, low, high: low + (high - low) * jax.random.uniform(key),
)


def _cut(mean: Array, precision: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    sd = 1.0 / jnp.sqrt(precision)
    _, centre, shrunk = truncation.between((low - mean) / sd, (high - mean) / sd)
    return mean + sd * centre, shrunk / precision, sd


def _above_share(start: Array, at: Array, end: Array) -> Array:
    """P(Z <= at) of a standard normal number between `start`, above zero, and `end`."""
    tail = log_ndtr(-start)
    return jnp.expm1(log_ndtr(-at) - tail) / jnp.expm1(log_ndtr(-end) - tail)


def _truncated_below(x: Array, mean: Numeric, precision: Numeric, low: Numeric, high: Numeric) -> Array:
    mean, low, high = map(jnp.asarray, (mean, low, high))
    sd = 1.0 / jnp.sqrt(precision)
    a, b = (low - mean) / sd, (high - mean) / sd
    z = jnp.clip((x - mean) / sd, a, b)
    around = (ndtr(z) - ndtr(a)) / (ndtr(b) - ndtr(a))
    above, under = a > 1.0, b < -1.0  # there a tail keeps its digits, as a logarithm
    right = _above_share(jnp.where(above, a, 1.0), jnp.where(above, z, 1.5), jnp.where(above, b, 2.0))
    left = _above_share(jnp.where(under, -b, 1.0), jnp.where(under, -z, 1.5), jnp.where(under, -a, 2.0))
    return jnp.where(above, right, jnp.where(under, 1.0 - left, around))


def _truncated_draw(key: Key, mean: Array, precision: Array, low: Array, high: Array) -> Array:
    sd = 1.0 / jnp.sqrt(precision)
    a, b = (low - mean) / sd, (high - mean) / sd
    z = truncation.quantile(jax.random.uniform(key, jnp.shape(a), a.dtype), a, b)
    return jnp.clip(mean + sd * z, low, high)


REALS.add(
    "truncated_gaussian",
    "real",
    mean=lambda **a: _cut(**a)[0],
    variance=lambda **a: _cut(**a)[1],
    below=_truncated_below,
    draw=_truncated_draw,
)
REALS.add(
    "spike_and_slab",
    "sparse",
    mean=lambda probability, precision: jnp.zeros_like(precision),
    variance=lambda probability, precision: probability / precision,
    below=lambda x, probability, precision: (
        probability * ndtr(x * jnp.sqrt(precision)) + (1.0 - probability) * (x >= 0.0)
    ),
    draw=lambda key, probability, precision: (
        jax.random.bernoulli(jax.random.fold_in(key, 1), probability) * jax.random.normal(key) / jnp.sqrt(precision)
    ),
)


def _slab_density(out: Array, probability: Array, mean: Array, precision: Array) -> Array:
    slab = jnp.log(probability) + 0.5 * jnp.log(precision) - HALF_LOG_2PI - 0.5 * precision * (out - mean) ** 2
    return jnp.where(out == 0.0, jnp.log1p(-probability), slab)


REALS.add(  # a belief of this family, which need not be centred
    "spike_and_slab_about",
    "sparse",
    log_density=_slab_density,
    mean=lambda probability, mean, precision: probability * mean,
    variance=lambda probability, mean, precision: probability * (1.0 / precision + (1.0 - probability) * mean**2),
    below=lambda x, probability, mean, precision: (
        probability * ndtr((x - mean) * jnp.sqrt(precision)) + (1.0 - probability) * (x >= 0.0)
    ),
    draw=lambda key, probability, mean, precision: (
        jax.random.bernoulli(jax.random.fold_in(key, 1), probability)
        * (mean + jax.random.normal(key) / jnp.sqrt(precision))
    ),
)
