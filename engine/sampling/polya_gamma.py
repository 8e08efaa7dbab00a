"""Draws of Polya-Gamma numbers PG(1, c), exactly, by the alternating series of Devroye.

PG(1, c) is a quarter of J*(1, c / 2): a proposal of a truncated inverse Gaussian below TRUNCATION and of an exponential
above it, accepted by partial sums that bound the density from both sides. Source: polson2013polya.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ...factors.arrays import Array, Key
from ...factors.special import log_ndtr

TRUNCATION = 0.64
TERMS = 200  # of the series, at most: it settles after a few


class _Drawn(NamedTuple):
    """What is drawn, where that was accepted, and how often all was tried."""

    value: Float[Array, "..."]
    done: Bool[Array, "..."]
    tries: Array


def polya_gamma(key: Key, tilt: Float[Array, "..."]) -> Float[Array, "..."]:
    """PG(1, tilt) for each of an array of real numbers: of mean tanh(tilt / 2) / (2 tilt)."""
    half = 0.5 * jnp.abs(jnp.asarray(tilt, float))
    rate = 0.125 * math.pi**2 + 0.5 * half**2
    right = _share_of_exponential(half, rate)

    def again(now: _Drawn) -> _Drawn:
        own = jax.random.split(jax.random.fold_in(key, now.tries), 4)
        tail = TRUNCATION + jax.random.exponential(own[0], half.shape) / rate
        proposal = jnp.where(jax.random.uniform(own[1], half.shape) < right, tail, _inverse_gaussian(own[2], half))
        accepted = _accepted(jax.random.uniform(own[3], half.shape), proposal)
        return _Drawn(
            jnp.where(~now.done & accepted, proposal, now.value), now.done | accepted, now.tries + 1
        )  # fmt: skip

    start = _Drawn(jnp.ones(half.shape), jnp.zeros(half.shape, bool), jnp.zeros((), int))
    return 0.25 * jax.lax.while_loop(lambda now: ~jnp.all(now.done), again, start).value


def _share_of_exponential(half: Array, rate: Array) -> Array:
    """How often the proposal lies above TRUNCATION."""
    root = math.sqrt(1.0 / TRUNCATION)
    b, a = root * (TRUNCATION * half - 1.0), -root * (TRUNCATION * half + 1.0)
    x0 = jnp.log(rate) + rate * TRUNCATION
    both = jnp.logaddexp(x0 - half + log_ndtr(b), x0 + half + log_ndtr(a))
    return 1.0 / (1.0 + 4.0 / math.pi * jnp.exp(both))


def _inverse_gaussian(key: Key, half: Array) -> Array:
    """Inverse Gaussian numbers of mean 1 / half and shape one, below TRUNCATION."""
    few = half < 1.0 / TRUNCATION  # the mean lies above the truncation: reject from one over a truncated chi square

    def again(now: _Drawn) -> _Drawn:
        own = jax.random.split(jax.random.fold_in(key, now.tries), 5)
        first, second = (jax.random.exponential(k, half.shape) for k in own[:2])
        fits = first**2 <= 2.0 * second / TRUNCATION
        x = TRUNCATION / (1.0 + TRUNCATION * first) ** 2
        good = fits & (jax.random.uniform(own[2], half.shape) <= jnp.exp(-0.5 * half**2 * x))
        mean = 1.0 / jnp.where(few, 1.0, half)
        y = mean * jax.random.normal(own[3], half.shape) ** 2
        small = mean + 0.5 * mean * (y - jnp.sqrt(4.0 * y + y**2))
        other = jnp.where(jax.random.uniform(own[4], half.shape) <= mean / (mean + small), small, mean**2 / small)
        value, accepted = jnp.where(few, x, other), jnp.where(few, good, other < TRUNCATION)
        return _Drawn(jnp.where(~now.done & accepted, value, now.value), now.done | accepted, now.tries + 1)

    start = _Drawn(jnp.full(half.shape, 0.5 * TRUNCATION), jnp.zeros(half.shape, bool), jnp.zeros((), int))
    return jax.lax.while_loop(lambda now: ~jnp.all(now.done), again, start).value


def _accepted(uniform: Array, x: Array) -> Array:
    """Whether uniform times the first term of the series at x lies below its sum."""
    first = _coefficient(0, x)
    level = uniform * first

    def add(now: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        n, total, decided, good = now
        total = total + jnp.where(n % 2 == 1, -1.0, 1.0) * _coefficient(n, x)
        inside, outside = (n % 2 == 1) & (level <= total), (n % 2 == 0) & (level > total)
        return n + 1, total, decided | inside | outside, good | (inside & ~decided)

    start = jnp.ones((), int), first, jnp.zeros(x.shape, bool), jnp.zeros(x.shape, bool)
    return jax.lax.while_loop(lambda now: ~jnp.all(now[2]) & (now[0] < TERMS), add, start)[3]


def _coefficient(n: int | Array, x: Array) -> Array:
    """Of the series of J*(1, 0): one form below TRUNCATION, one above it."""
    k = n + 0.5
    low = math.pi * k * jnp.exp(1.5 * jnp.log(2.0 / (math.pi * x)) - 2.0 * k**2 / x)
    return jnp.where(x > TRUNCATION, math.pi * k * jnp.exp(-0.5 * (k * math.pi) ** 2 * x), low)
