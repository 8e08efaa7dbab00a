"""Moves of Gaussian processes seen through what is not Gaussian: elliptical slice sampling.

A point on the ellipse through the function and one drawn from its prior has the prior's law; the likelihood decides how
far along it the function goes. There is nothing to tune. Source: murray2010elliptical.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ...blocks.gaussian_process import process_draw, process_mean
from ..joint import Data, Joint, Values
from ..move import Move, stateless
from .slices import LOWEST

TIMES = 5  # transitions of a sweep: each moves a function a little where data are sharp
NARROW = 1e-9  # an angle within which nothing was found: the function stays


def elliptical_move(joint: Joint, name: str) -> Move:
    """All elements of a process together, along ellipses of its prior."""
    variable = joint.variables[name]
    factors = tuple(factor for factor in joint.touching([name]) if factor != name)

    def draw(key: Key, values: Values, data: Data) -> Values:
        scope = joint.scope(values, data)
        mean = process_mean(variable, scope)

        def log_likelihood(x: Array) -> Array:
            found = joint.total(factors, {**values, name: mean + x}, data)
            return jnp.where(jnp.isnan(found), -jnp.inf, found)

        def transition(i: Array, x: Array) -> Array:
            keys = jax.random.split(jax.random.fold_in(key, i), 4)
            other = process_draw(variable, scope, keys[0]) - mean
            level = jnp.maximum(log_likelihood(x), LOWEST) - draws.exponential(keys[1])
            return _along(keys[2], x, other, level, log_likelihood)

        return {name: mean + jax.lax.fori_loop(0, TIMES, transition, values[name] - mean)}

    return stateless((name,), "the function jointly, by elliptical slice sampling", draw, exact=False)


def _along(key: Key, x: Array, other: Array, level: Array, log_likelihood) -> Array:
    """A point of the ellipse through both whose likelihood is above the level: from the whole of it, shrinking to x."""
    first = 2.0 * math.pi * draws.uniform(key)

    def at(angle: Array) -> Array:
        return x * jnp.cos(angle) + other * jnp.sin(angle)

    def shrink(now: tuple) -> tuple:
        i, angle, low, high, _ = now
        low, high = jnp.where(angle < 0.0, angle, low), jnp.where(angle < 0.0, high, angle)
        angle = low + (high - low) * draws.uniform(jax.random.fold_in(key, i))
        return i + 1, angle, low, high, log_likelihood(at(angle)) >= level

    def waits(now: tuple) -> Array:
        _, _, low, high, good = now
        return ~good & (high - low > NARROW)

    begin = jnp.ones((), int), first, first - 2.0 * math.pi, first, log_likelihood(at(first)) >= level
    _, angle, _, _, good = jax.lax.while_loop(waits, shrink, begin)
    return jnp.where(good, at(angle), x)
