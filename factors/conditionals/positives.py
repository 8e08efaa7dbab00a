"""Conditionals of positive numbers and of probabilities."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import betainc, gammainc

from ..arrays import Array, Key
from ..conditional import Table, inverted
from ..positive.truncated_gamma import log_mass_between
from ..special import TINY, ndtr

POSITIVES = Table()
_HALF_NORMAL_MEAN = math.sqrt(2.0 / math.pi)


POSITIVES.add(
    "gamma",
    "positive",
    mean=lambda shape, rate: shape / rate,
    variance=lambda shape, rate: shape / rate**2,
    below=lambda x, shape, rate: gammainc(shape, rate * jnp.maximum(x, 0.0)),
    draw=lambda key, shape, rate: jax.random.gamma(key, shape) / rate,
)
POSITIVES.add(
    "half_cauchy",
    "positive",
    mean=lambda scale: jnp.full_like(scale, jnp.inf),
    variance=lambda scale: jnp.full_like(scale, jnp.inf),
    below=lambda x, scale: 2.0 / jnp.pi * jnp.arctan(jnp.maximum(x, 0.0) / scale),
    draw=lambda key, scale: scale * jnp.abs(jax.random.cauchy(key)),
)
POSITIVES.add(
    "half_normal",
    "positive",
    mean=lambda scale: _HALF_NORMAL_MEAN * scale,
    variance=lambda scale: (1.0 - _HALF_NORMAL_MEAN**2) * scale**2,
    below=lambda x, scale: jax.scipy.special.erf(jnp.maximum(x, 0.0) / scale / math.sqrt(2.0)),
    draw=lambda key, scale: scale * jnp.abs(jax.random.normal(key)),
)
POSITIVES.add(
    "log_normal",
    "positive",
    mean=lambda mean, precision: jnp.exp(mean + 0.5 / precision),
    variance=lambda mean, precision: jnp.exp(2.0 * mean + 1.0 / precision) * jnp.expm1(1.0 / precision),
    below=lambda x, mean, precision: jnp.where(
        x > 0, ndtr((jnp.log(jnp.maximum(x, TINY)) - mean) * jnp.sqrt(precision)), 0.0
    ),
    draw=lambda key, mean, precision: jnp.exp(mean + jax.random.normal(key) / jnp.sqrt(precision)),
)


def _cut_gamma(power: int, shape: Array, rate: Array, low: Array, high: Array) -> Array:
    """E x^power of a Gamma between bounds."""
    rise = {0: 1.0, 1: shape / rate, 2: shape * (shape + 1.0) / rate**2}[power]
    return rise * jnp.exp(log_mass_between(shape + power, rate, low, high) - log_mass_between(shape, rate, low, high))


def _cut_gamma_below(x: Array, shape: Array, rate: Array, low: Array, high: Array) -> Array:
    inside = jnp.clip(x, jnp.maximum(low, 0.0), high)
    return jnp.exp(log_mass_between(shape, rate, low, inside) - log_mass_between(shape, rate, low, high))


def _cut_gamma_draw(key: Key, **arguments: Array) -> Array:
    level = jax.random.uniform(key)
    return inverted(lambda x: _cut_gamma_below(x, **arguments) < level, "positive")


POSITIVES.add(
    "truncated_gamma",
    "positive",
    mean=lambda **a: _cut_gamma(1, **a),
    variance=lambda **a: _cut_gamma(2, **a) - _cut_gamma(1, **a) ** 2,
    below=_cut_gamma_below,
    draw=_cut_gamma_draw,
)


def _beta(a: Array, b: Array) -> dict[str, Array]:
    total = a + b
    return {"mean": a / total, "variance": a * b / total**2 / (total + 1.0)}


POSITIVES.add(
    "beta",
    "unit",
    mean=lambda a, b: _beta(a, b)["mean"],
    variance=lambda a, b: _beta(a, b)["variance"],
    below=lambda x, a, b: betainc(a, b, jnp.clip(x, 0.0, 1.0)),
    draw=lambda key, a, b: jax.random.beta(key, a, b),
)
POSITIVES.add(
    "beta_of_mean",
    "unit",
    mean=lambda mean, total: mean,
    variance=lambda mean, total: mean * (1.0 - mean) / (total + 1.0),
    below=lambda x, mean, total: betainc(total * mean, total * (1.0 - mean), jnp.clip(x, 0.0, 1.0)),
    draw=lambda key, mean, total: jax.random.beta(key, total * mean, total * (1.0 - mean)),
)
