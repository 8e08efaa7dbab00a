"""Conditionals of counts."""

from __future__ import annotations

import jax
from jax.scipy.special import betainc, gammaincc

from ..arrays import Array, Key
from ..conditional import Table, counted
from ..discrete.binomial import binomial_below

COUNTS = Table()


def _negativebinomial_below(x: Array, successes: Array, probability: Array) -> Array:
    return counted(x, lambda k: betainc(successes, k + 1.0, probability))


def _draw_poisson(key: Key, rate: Array) -> Array:
    return jax.random.poisson(key, rate).astype(float)


def _draw_negative_binomial(key: Key, successes: Array, probability: Array) -> Array:
    one, other = jax.random.split(key)
    return _draw_poisson(other, jax.random.gamma(one, successes) * (1.0 - probability) / probability)


COUNTS.add(
    "poisson",
    "count",
    mean=lambda rate: rate,
    variance=lambda rate: rate,
    below=lambda x, rate: counted(x, lambda k: gammaincc(k + 1.0, rate)),
    draw=_draw_poisson,
)
COUNTS.add(
    "binomial",
    "count",
    mean=lambda n, probability: n * probability,
    variance=lambda n, probability: n * probability * (1.0 - probability),
    below=binomial_below,
    draw=lambda key, n, probability: jax.random.binomial(key, n, probability).astype(float),
)
COUNTS.add(
    "negative_binomial",
    "count",
    mean=lambda mean, dispersion: mean,
    variance=lambda mean, dispersion: mean + mean**2 / dispersion,
    below=lambda x, mean, dispersion: _negativebinomial_below(x, dispersion, dispersion / (dispersion + mean)),
    draw=lambda key, mean, dispersion: _draw_negative_binomial(key, dispersion, dispersion / (dispersion + mean)),
)
COUNTS.add(
    "negative_binomial_trials",
    "count",
    mean=lambda successes, probability: successes * (1.0 - probability) / probability,
    variance=lambda successes, probability: successes * (1.0 - probability) / probability**2,
    below=_negativebinomial_below,
    draw=_draw_negative_binomial,
)
