"""Draws of Polya-Gamma numbers PG(b, c), all elements at once, exact to rounding.

PG(1, c) is a quarter of J*(1, z), z = |c| / 2, whose density is proportional to

    exp(-z^2 x / 2) a(x) (1 - 3 q + 5 q^3 - 7 q^6 + ...),

below T with a(x) = sqrt(2 / (pi x^3)) exp(-1 / (2 x)) and q = exp(-4 / x), above it with a(x) = pi / 2 exp(-pi^2 x / 8)
and q = exp(-pi^2 x): two expansions of one theta function. The next term is below 1e-26, so four of them are the sum.
Proposals: above T an exponential of rate K = pi^2 / 8 + z^2 / 2; below it 1 / (1 / T + 2 E), E exponential, of density
proportional to exp(-1 / (2 x)) / x^2, and for large z an inverse Gaussian. At any z six of seven are accepted.
A try takes two uniform numbers, which are used again: what is left of one after a choice is uniform too.

PG(b, c) is a sum of b of them, and of one of the fraction of b, which has one expansion. Source: polson2013polya,
windle2014sampling.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc, ndtri
from jaxtyping import Float

from ...factors import draws
from ...factors.arrays import Array, Key, Numeric
from ...factors.special import lgamma, log

T = 0.64  # where the density goes from one expansion to the other
GAUSSIAN = 2.37  # z from which on the inverse Gaussian is the better proposal below T
HALVES = 2.0**26  # a uniform number of 52 digits is used as two of 26
CUT, FAR = 1.0, 20.0  # where the fraction of b goes from one proposal to the other; where its tail is a gamma density
MARGIN = 1e-3  # of the bound on its tail, which lies up to 1e-4 higher between its ends
LEAST = 1e-9  # of a fraction, whose number has that mean at most
TERMS = 24  # of its expansion
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

    At a price in proportion to the largest b, and of one more where any is not whole. NaN where b is negative, or where
    b or c are not finite.
    """
    count, tilt = jnp.broadcast_arrays(jnp.asarray(b), jnp.asarray(c, float))
    whole = count if jnp.issubdtype(count.dtype, jnp.integer) else jnp.floor(count)
    fine = jnp.isfinite(tilt) & jnp.isfinite(count) & (count >= 0)
    tilt, left = jnp.where(fine, tilt, 0.0), jnp.where(fine, whole, 0).astype(int)
    own = jax.random.split(key)
    total = _sum(own[0], left, tilt)
    if whole is not count:
        fraction = jnp.where(fine, count - whole, 0.0)
        there = fraction > LEAST
        total = total + jnp.where(there, _fraction(own[1], jnp.where(there, fraction, 0.5), tilt), 0.0)
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


@jax.jit  # as above
def _fraction(key: Key, shape: Array, tilt: Array) -> Array:
    """PG(shape, tilt) for 0 < shape < 1: the tilted density of J*(h, z), h = shape, is exp(-z^2 x / 2) times

        2^h h / sqrt(2 pi x^3) exp(-h^2 / (2 x)) (1 - c_1 + c_2 - ...),
        c_n = (h)_n / n! (2 n + h) / h exp(-2 n (n + h) / x).

    Up to CUT it lies below its first term, an inverse Gaussian density; beyond, below a gamma density that meets it at
    CUT or far out: the ratio of both changes by a few parts in a hundred there. Source: windle2014sampling.
    """
    h, z = jnp.broadcast_arrays(shape, 0.5 * jnp.abs(tilt))
    fall = math.pi**2 / 8.0
    log_far = h * math.log(0.5 * math.pi) - lgamma(h)  # of x^(1 - h) exp(fall x) times the density, as x grows
    log_cut = (
        jnp.log(_of_first(jnp.full(h.shape, CUT), h)) + _log_first(CUT, h) + fall * CUT + (1.0 - h) * math.log(CUT)
    )
    height = jnp.maximum(log_cut, log_far) + MARGIN
    rate = fall + 0.5 * z**2
    levy = erfc(h / math.sqrt(2.0 * CUT))  # the mass up to CUT at z = 0
    few = levy < jnp.exp(-h * z)
    below = h * math.log(2.0) + jnp.where(few, jnp.log(levy), -h * z)
    above = height + (h - 1.0) * math.log(CUT) - rate * CUT - jnp.log(rate)
    tail = jax.nn.sigmoid(above - below)
    inverse_mean = h * jnp.where(few, 1.0, z)

    def tried(key: Key) -> Array:
        keys = jax.random.split(key, 4)
        beyond = draws.uniform(keys[0], h.shape) < tail
        far = CUT + draws.exponential(keys[1], h.shape) / rate
        normal = -ndtri(0.5 * levy * draws.uniform(keys[1], h.shape))
        near = jnp.where(few, (h / normal) ** 2, h**2 * draws.inverse_gaussian(keys[2], inverse_mean))
        x = jnp.where(beyond, far, near)
        ratio = _of_first(x, h)
        inside = jnp.exp(_log_first(x, h) + fall * x - height) * ratio * CUT ** (1.0 - h)
        ends = jnp.exp(log_far - height) * (CUT / x) ** (1.0 - h)
        chance = jnp.where(
            beyond,
            jnp.where(x > FAR, ends, inside),
            jnp.where(few, ratio * jnp.exp(-0.5 * z**2 * x), jnp.where(x < CUT, ratio, 0.0)),
        )
        return jnp.where(draws.uniform(keys[3], h.shape) < chance, x, 0.0)

    def again(now: _Tried) -> _Tried:
        proposal = tried(jax.random.fold_in(key, now.tries))
        return _Tried(jnp.where(now.value == 0.0, proposal, now.value), now.tries + 1)

    start = _Tried(jnp.zeros(h.shape), jnp.zeros((), int))
    return 0.25 * jax.lax.while_loop(lambda now: jnp.any(now.value == 0.0), again, start).value


def _log_first(x: Numeric, h: Array) -> Array:
    """The logarithm of the first term of the density of J*(h, 0)."""
    return h * math.log(2.0) + jnp.log(h) - 0.5 * jnp.log(2.0 * math.pi * jnp.asarray(x) ** 3) - 0.5 * h**2 / x


def _of_first(x: Array, h: Array) -> Array:
    """The density of J*(h, 0) over its first term: what alternates has no digits left beyond FAR."""
    n, h = jnp.arange(1.0, TERMS), h[..., None]
    weights = jnp.cumprod(-(n - 1.0 + h) / n, axis=-1) * (2.0 * n + h) / h
    return 1.0 + jnp.sum(weights * jnp.exp(-2.0 * n * (n + h) / x[..., None]), axis=-1)
