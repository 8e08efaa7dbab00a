"""Random numbers for sweeps: arrays of independent draws in few loops, which fuse with what reads them.

`jax.random` computes the same function, Threefry-2x32 with 20 rounds, but stores its bits, is not vectorised inside
larger programs, and has a loop for each gamma number: these took most of the time of a sweep. A key of `jax.random`
goes in; the same key gives the same numbers. Source: salmon2011parallel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from .arrays import Array, Key
from .special import log

Shape = tuple[int, ...]

ROUNDS = 255  # the last of the tries of a gamma number, of which nineteen in twenty end it
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_VECTOR = 8
_FEW = 16  # states whose sums are written out: these fuse


def uniform(key: Key, shape: Shape = ()) -> Float[Array, "*shape"]:
    """Uniform numbers in (0, 1), neither end included."""
    size = math.prod(shape)
    return _row(seed_of(key), jnp.uint32(0), whole(size))[:size].reshape(shape)


def normal(key: Key, shape: Shape = ()) -> Float[Array, "*shape"]:
    """Standard normal numbers."""
    return normal_of(uniform(key, shape))


def exponential(key: Key, shape: Shape = ()) -> Float[Array, "*shape"]:
    """Exponential numbers of rate one."""
    return -log(uniform(key, shape))


def log_gamma(key: Key, concentration: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logarithms of Gamma(concentration, rate 1) numbers, all in one loop.

    NaN where the concentration is none, minus infinity where it is zero.
    """
    flat = jnp.ravel(concentration)
    size, seed = flat.size, seed_of(key)
    a = jnp.pad(flat.astype(float), (0, whole(size) - size), constant_values=1.0)
    valid = (a > 0.0) & (a < jnp.inf)
    drawn = log_gamma_of(lambda again: _row(seed, (again + 1) & ROUNDS, a.size), jnp.where(valid, a, 1.0))
    found = jnp.where(valid, drawn, jnp.where(a == 0.0, -jnp.inf, jnp.where(a > 0.0, jnp.inf, jnp.nan)))
    return found[:size].reshape(jnp.shape(concentration))


def log_gamma_of(uniforms: Callable[[Array], Array], concentration: Array) -> jax.Array:
    """Logarithms of Gamma(concentration, rate 1) numbers, by the rejection of Marsaglia and Tsang.

    `uniforms(again)` are the uniform numbers of each place, others for each `again` up to ROUNDS. Concentrations below
    one are drawn one higher and multiplied by uniform^(1 / concentration): as logarithms they do not underflow. Source:
    marsaglia2000simple.
    """
    small = concentration < 1.0
    d = jnp.where(small, concentration + 1.0, concentration) - 1.0 / 3.0
    c = lax.rsqrt(9.0 * d)

    def attempt(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        again, value = carry
        x, u = normal_of(uniforms(again)), uniforms(again + 1)
        root = 1.0 + c * x
        cube = jnp.where(root > 0.0, root, 1.0) ** 3
        log_cube = log(cube)
        good = (root > 0.0) & (log(u) < 0.5 * x * x + d * (1.0 - cube + log_cube))
        return again + 2, jnp.where(jnp.isnan(value) & good, log_cube, value)

    # What waits is NaN: one array, so that one fused loop computes it.
    start = jnp.uint32(0), jnp.full_like(concentration, jnp.nan)
    _, value = lax.while_loop(lambda carry: jnp.isnan(carry[1]).any() & (carry[0] < ROUNDS - 1), attempt, start)
    boost = log(uniforms(jnp.uint32(ROUNDS))) / jnp.where(small, concentration, 1.0)
    return value + log(d) + jnp.where(small, boost, 0.0)


def inverse_gaussian(key: Key, inverse_mean: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Inverse Gaussian (Wald) numbers of shape one and the mean of which this is one over, zero or more."""
    keys = jax.random.split(key)
    shape = jnp.shape(inverse_mean)
    return inverse_gaussian_of(inverse_mean, normal(keys[0], shape), uniform(keys[1], shape))


def inverse_gaussian_of(inverse_mean: Array, normal: Array, uniform: Array) -> jax.Array:
    """The same from a normal and a uniform number: of two roots one, at zero the limit 1 / chi^2.

    Source: michael1976generating.
    """
    q = 0.5 * normal * normal
    small = 1.0 / (inverse_mean + q + jnp.sqrt(q * (q + 2.0 * inverse_mean)))
    lower = uniform * (1.0 + inverse_mean * small) < 1.0
    return jnp.where(lower, small, 1.0 / jnp.where(lower, 1.0, inverse_mean * (inverse_mean * small)))


def categorical(key: Key, logits: Float[Array, "*shape state"]) -> Int[Array, "*shape"]:
    """The number of a state of probability proportional to exp(logits), by one uniform number for each."""
    return state_at(uniform(key, jnp.shape(logits)[:-1]), logits)


def state_at(number: Float[Array, "*shape"], logits: Float[Array, "*shape state"]) -> Int[Array, "*shape"]:
    """The state in which a number in (0, 1) lies, where states are as wide as they are probable, one after the other.

    A state whose logit is minus infinity holds none, where another is finite.
    """
    states = jnp.moveaxis(logits, -1, 0)
    weight = jnp.exp(states - jnp.max(states, axis=0))
    if len(weight) > _FEW:
        sums = jnp.cumsum(weight, axis=0)
        return jnp.sum(number * sums[-1] >= sums[:-1], axis=0)
    sums = list(itertools.accumulate(weight))
    return sum((number * sums[-1] >= each for each in sums[:-1]), jnp.zeros(number.shape, int))


def whole(number: int) -> int:
    """The next multiple of 8: only loops over such numbers of entries are vectorised by XLA's compiler for CPUs."""
    return -(-number // _VECTOR) * _VECTOR


def seed_of(key: Key) -> jax.Array:
    """(2,) uint32 of a key of `jax.random`."""
    return jax.random.bits(key, (2,), jnp.uint32)


def normal_of(uniform: Array) -> jax.Array:
    """The standard normal number at this quantile."""
    return jnp.sqrt(2.0) * lax.erf_inv(2.0 * uniform - 1.0)


def numbers_at(seed: Array, high: Array, low: Array) -> jax.Array:
    """The uniform numbers of a seed at counters of two words each.

    52 bits and a half: no 0, no 1, and never exactly the middle, where a normal number would be 0.
    """
    one, two = threefry(seed[0], seed[1], high, low)
    number = (one >> 6).astype(jnp.float64) * 2.0**26 + (two >> 6).astype(jnp.float64)
    return jnp.asarray((number + 0.5) * 2.0**-52)


def _row(seed: Array, high: Array, size: int) -> jax.Array:
    """Numbers 0, 1, ..., size - 1 of the row `high`."""
    low = lax.iota(jnp.uint32, size)
    return numbers_at(seed, jnp.full_like(low, high), low)


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
