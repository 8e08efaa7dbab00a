"""Random numbers for sweeps: arrays of independent draws in few loops, which fuse with what reads them.

`jax.random` computes the same function, Threefry-2x32 with 20 rounds, but stores its bits, is not vectorised inside
larger programs, and has a loop for each gamma number: these took most of the time of a sweep. A key of `jax.random`
goes in; the same key gives the same numbers. Source: salmon2011parallel.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from .arrays import Array, Key
from .special import log

Shape = tuple[int, ...]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_VECTOR = 8  # only loops over a multiple of this are vectorised by XLA's compiler for CPUs
_FEW = 16  # states whose sums are written out: these fuse
_MOST = 255  # tries of a gamma number, of which nineteen in twenty end it


def uniform(key: Key, shape: Shape = ()) -> Float[Array, "*shape"]:
    """Uniform numbers in (0, 1), neither end included."""
    size = math.prod(shape)
    return _uniforms(_seed(key), jnp.uint32(0), _whole(size))[:size].reshape(shape)


def normal(key: Key, shape: Shape = ()) -> Float[Array, "*shape"]:
    """Standard normal numbers."""
    size = math.prod(shape)
    return _normal(_uniforms(_seed(key), jnp.uint32(0), _whole(size)))[:size].reshape(shape)


def exponential(key: Key, shape: Shape = ()) -> Float[Array, "*shape"]:
    """Exponential numbers of rate one."""
    size = math.prod(shape)
    return -log(_uniforms(_seed(key), jnp.uint32(0), _whole(size)))[:size].reshape(shape)


def log_gamma(key: Key, concentration: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logarithms of Gamma(concentration, rate 1) numbers, by the rejection of Marsaglia and Tsang, all in one loop.

    Those below one are drawn one higher and multiplied by uniform^(1 / concentration): as logarithms they do not
    underflow. NaN where the concentration is none, minus infinity where it is zero. Source: marsaglia2000simple.
    """
    flat = jnp.ravel(concentration)
    size, seed = flat.size, _seed(key)
    a = jnp.pad(flat.astype(float), (0, _whole(size) - size), constant_values=1.0)
    valid = (a > 0.0) & (a < jnp.inf)
    small = a < 1.0
    d = jnp.where(valid, jnp.where(small, a + 1.0, a), 1.0) - 1.0 / 3.0
    c = lax.rsqrt(9.0 * d)

    def attempt(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        number, value = carry
        x = _normal(_uniforms(seed, number, a.size))
        u = _uniforms(seed, number + 1, a.size)
        root = 1.0 + c * x
        cube = jnp.where(root > 0.0, root, 1.0) ** 3
        log_cube = log(cube)
        good = (root > 0.0) & (log(u) < 0.5 * x * x + d * (1.0 - cube + log_cube))
        return number + 2, jnp.where(jnp.isnan(value) & good, log_cube, value)

    # What waits is NaN: one array, so that one fused loop computes it.
    start = jnp.uint32(1), jnp.where(valid, jnp.nan, 0.0)
    _, value = lax.while_loop(lambda carry: jnp.isnan(carry[1]).any() & (carry[0] < 2 * _MOST), attempt, start)
    boost = log(_uniforms(seed, jnp.uint32(0), a.size)) / jnp.where(small & valid, a, 1.0)
    found = value + log(d) + jnp.where(small, boost, 0.0)
    found = jnp.where(valid, found, jnp.where(a == 0.0, -jnp.inf, jnp.where(a > 0.0, jnp.inf, jnp.nan)))
    return found[:size].reshape(jnp.shape(concentration))


def inverse_gaussian(key: Key, mean: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Inverse Gaussian (Wald) numbers of this mean and shape one: of two roots one.

    Source: michael1976generating.
    """
    keys = jax.random.split(key)
    square = mean * normal(keys[0], jnp.shape(mean)) ** 2
    smaller = 4.0 * mean / (jnp.sqrt(square) + jnp.sqrt(square + 4.0)) ** 2
    first = uniform(keys[1], jnp.shape(mean)) * (mean + smaller) <= mean
    return jnp.where(first, smaller, mean**2 / smaller)


def categorical(key: Key, logits: Float[Array, "*shape state"]) -> Int[Array, "*shape"]:
    """The number of a state of probability proportional to exp(logits), by one uniform number for each.

    A state whose logit is minus infinity is not drawn, where another is finite.
    """
    states = jnp.moveaxis(logits, -1, 0)
    weight = jnp.exp(states - jnp.max(states, axis=0))
    number = uniform(key, weight.shape[1:])
    if len(weight) > _FEW:
        sums = jnp.cumsum(weight, axis=0)
        return jnp.sum(number * sums[-1] >= sums[:-1], axis=0)
    sums = list(itertools.accumulate(weight))
    return sum((number * sums[-1] >= each for each in sums[:-1]), jnp.zeros(number.shape, int))


def _whole(number: int) -> int:
    return -(-number // _VECTOR) * _VECTOR


def _seed(key: Key) -> jax.Array:
    return jax.random.bits(key, (2,), jnp.uint32)


def _normal(quantile: Array) -> jax.Array:
    return jnp.sqrt(2.0) * lax.erf_inv(2.0 * quantile - 1.0)


def _uniforms(seed: Array, high: Array, size: int) -> jax.Array:
    """Numbers 0, 1, ..., size - 1 of the row `high` of this seed.

    52 bits and a half: no 0, no 1, and never exactly the middle, where a normal number would be 0.
    """
    low = lax.iota(jnp.uint32, size)
    one, two = threefry(seed[0], seed[1], jnp.full_like(low, high), low)
    number = (one >> 6).astype(jnp.float64) * 2.0**26 + (two >> 6).astype(jnp.float64)
    return jnp.asarray((number + 0.5) * 2.0**-52)


def threefry(one: Array, two: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Threefry-2x32: two random words of 32 bits for a key of two and a counter of two."""
    keys = (one, two, one ^ two ^ jnp.uint32(0x1BD11BDA))
    high, low = high + keys[0], low + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            high = high + low
            low = high ^ ((low << rotation) | (low >> (32 - rotation)))
        high, low = high + keys[(group + 1) % 3], low + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return high, low
