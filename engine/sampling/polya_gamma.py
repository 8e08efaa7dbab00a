"""Draws of Polya-Gamma numbers PG(b, c), all elements at once: exact where b is whole.

PG(1, c) is a quarter of J*(1, z), z = |c| / 2, whose density is proportional to

    exp(-z^2 x / 2) a(x) (1 - 3 q + 5 q^3 - 7 q^6 + ...),

below T with a(x) = sqrt(2 / (pi x^3)) exp(-1 / (2 x)) and q = exp(-4 / x), above it with a(x) = pi / 2 exp(-pi^2 x / 8)
and q = exp(-pi^2 x): two expansions of one theta function. The next term is below 1e-26, so four of them are the sum.
Proposals: above T an exponential of rate K = pi^2 / 8 + z^2 / 2; below it 1 / (1 / T + 2 E), E exponential, of density
proportional to exp(-1 / (2 x)) / x^2, and for large z an inverse Gaussian. At any z six of seven are accepted.
A try takes two uniform numbers, which are used again: what is left of one after a choice is uniform too.

PG(b, c) is a sum of b of them. Source: polson2013polya.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...factors import draws
from ...factors.arrays import Array, Key, Numeric
from ...factors.special import log

T = 0.64  # where the density goes from one expansion to the other
GAUSSIAN = 2.37  # z from which on the inverse Gaussian is the better proposal below T
HALVES = 2.0**26  # a uniform number of 52 digits is used as two of 26
TERMS = 32  # gamma numbers of the fraction of b
ONE = math.sqrt(8.0 / math.pi) * math.exp(-0.5 / T)  # the mass of a(x) / sqrt(x) below T


class _Envelope(NamedTuple):
    """What is proposed for each element: `height` is the largest log of sqrt(x) exp(-z^2 x / 2) below T."""

    z: Float[Array, "..."]
    rate: Float[Array, "..."]
    tail: Float[Array, "..."]  # how often a proposal lies above T
    height: Float[Array, "..."]


class _Tried(NamedTuple):
    """What was accepted, zero where nothing was, and how often all was tried."""

    value: Float[Array, "..."]
    tries: Array


def draw(key: Key, b: Numeric, c: Numeric) -> Float[Array, "..."]:
    """PG(b, c) for arrays of b >= 0 and real c, which are broadcast: of mean b tanh(c / 2) / (2 c).

    Exact for whole b, at a price in proportion to the largest. The fraction of another b is a truncated series: its
    first 32 gamma numbers, and one gamma number with mean and variance of the rest, whose third cumulant is off. At
    |c| below 20 that is beyond what 1e5 draws tell; for much larger |c| the fraction tends to a gamma number of the
    right mean and variance. NaN where b is negative, or b or c not finite.
    """
    count, tilt = jnp.broadcast_arrays(jnp.asarray(b), jnp.asarray(c, float))
    whole = count if jnp.issubdtype(count.dtype, jnp.integer) else jnp.floor(count)
    fine = jnp.isfinite(tilt) & jnp.isfinite(count) & (count >= 0)
    tilt, left = jnp.where(fine, tilt, 0.0), jnp.where(fine, whole, 0).astype(int)
    own = jax.random.split(key)
    total = _sum(own[0], left, tilt)
    if whole is not count:
        fraction = jnp.where(fine, count - whole, 0.0)
        total = total + jnp.where(fraction > 0.0, _series(own[1], fraction, tilt), 0.0)
    return jnp.where(fine, total, jnp.nan)


@jax.jit  # starts are drawn outside of any program: what runs there is compiled once
def _sum(key: Key, count: Array, tilt: Array) -> Array:
    """The sum of `count` numbers PG(1, tilt)."""
    around = _envelope(0.5 * jnp.abs(tilt))

    def add(i: Array, total: Array) -> Array:
        return total + _one(jax.random.fold_in(key, i), around, count > i)

    return 0.25 * jax.lax.fori_loop(0, jnp.max(count, initial=0), add, jnp.zeros(tilt.shape))


def _one(key: Key, around: _Envelope, wanted: Array) -> Array:
    """J*(1, z) where it is wanted, and zero elsewhere."""

    def again(now: _Tried) -> _Tried:
        proposal = _tried(jax.random.fold_in(key, now.tries), around)
        return _Tried(jnp.where(now.value == 0.0, proposal, now.value), now.tries + 1)

    start = _Tried(jnp.where(wanted, 0.0, -1.0), jnp.zeros((), int))
    found = jax.lax.while_loop(lambda now: jnp.any(now.value == 0.0), again, start).value
    return jnp.maximum(found, 0.0)


def _envelope(z: Array) -> _Envelope:
    rate = 0.125 * math.pi**2 + 0.5 * z**2
    peak = jnp.where(z * math.sqrt(T) > 1.0, 1.0 / jnp.maximum(z, 1.0) ** 2, T)
    height = 0.5 * jnp.log(peak) - 0.5 * z**2 * peak
    below = jnp.where(z < GAUSSIAN, math.log(ONE) + height, math.log(2.0) - z)
    above = math.log(0.5 * math.pi) - jnp.log(rate) - rate * T
    return _Envelope(z, rate, jax.nn.sigmoid(above - below), height)


def _tried(key: Key, around: _Envelope) -> Array:
    """A proposal for each element where it is accepted, zero where it is not."""
    z, few = around.z, around.z < GAUSSIAN
    uniform = draws.uniform(key, (2, *z.shape))
    above, rest = _choice(uniform[0], around.tail)
    exponential = -log(rest)
    level = jnp.floor(uniform[1] * HALVES)
    turn, level = uniform[1] * HALVES - level, (level + 0.5) / HALVES
    mean = 1.0 / jnp.where(few, 1.0, z)
    half = mean * exponential * _sine(math.pi * (turn - 0.5)) ** 2  # a normal number squared: by Box and Muller
    small = mean / (1.0 + half + jnp.sqrt(2.0 * half + half**2))
    is_small, level_there = _choice(level, mean / (mean + small))
    gaussian = jnp.where(is_small, small, mean**2 / small)
    below = jnp.where(few, 1.0 / (1.0 / T + 2.0 * exponential), gaussian)
    x = jnp.where(above, T + exponential / around.rate, below)
    q = jnp.exp(-jnp.where(x > T, math.pi**2 * x, 4.0 / x))
    series = 1.0 - 3.0 * q + 5.0 * q**3 - 7.0 * q**6
    tilted = jnp.where(few & ~above, jnp.sqrt(x) * jnp.exp(-0.5 * z**2 * x - around.height), 1.0)
    level = jnp.where(above | few, level, level_there)
    return jnp.where((level <= series * tilted) & (above | (x < T)), x, 0.0)


def _choice(uniform: Array, chance: Array) -> tuple[Array, Array]:
    """Whether something of this chance happens, and a uniform number that knows nothing of it."""
    happens = uniform <= chance
    return happens, jnp.where(happens, uniform / chance, (uniform - chance) / (1.0 - chance))


def _sine(x: Array) -> Array:
    """The sine between -pi / 2 and pi / 2: its series, which is five times as fast as XLA's own."""
    square, found = x**2, jnp.zeros(())
    for k in reversed(range(10)):
        found = found * square + (-1.0) ** k / math.factorial(2 * k + 1)
    return x * found


def _series(key: Key, b: Array, tilt: Array) -> Array:
    """PG(b, tilt) as the sum of gamma numbers over (2 pi^2 (k - 1/2)^2 + tilt^2 / 2), the last one for all others."""
    mean, variance = _rest(jnp.abs(tilt)[..., None])
    rate = _rates(tilt[..., None])
    shape = jnp.concatenate([jnp.ones_like(rate), mean**2 / variance], -1)
    scale = jnp.concatenate([1.0 / rate, variance / mean], -1)
    return jnp.sum(scale * jnp.exp(draws.log_gamma(key, b[..., None] * shape)), -1)


def _rates(c: Array) -> Array:
    return 2.0 * math.pi**2 * (jnp.arange(TERMS) + 0.5) ** 2 + 0.5 * c**2


def _rest(c: Array) -> tuple[Array, Array]:
    """Mean and variance of PG(1, c) less those of its first terms."""
    c = jnp.maximum(c, 0.1)  # below they have no digits, and change by less than 1e-6
    mean = 0.5 * jnp.tanh(0.5 * c) / c
    variance = (jnp.tanh(0.5 * c) - 0.5 * c / jnp.cosh(0.5 * c) ** 2) / (2.0 * c**3)
    rate = _rates(c)
    return mean - jnp.sum(1.0 / rate, -1, keepdims=True), variance - jnp.sum(1.0 / rate**2, -1, keepdims=True)
