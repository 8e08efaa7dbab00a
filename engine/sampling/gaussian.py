"""Moves of real variables and vectors whose log density, given all others, is a quadratic form: an exact Gaussian draw.

Its precision and shift are the derivatives of the log density wherever the chain is. Elements that are independent given
the rest have a small matrix each, all others one together.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ...factors.arrays import Array, Key
from .joint import Data, Joint, Values
from .move import Move, stateless

DENSE = 400  # numbers that are drawn with one matrix


def size_of(joint: Joint, name: str) -> int:
    """How many numbers a variable has."""
    return math.prod(joint.density._shape(joint.variables[name]))


def _around(mean_shift: Array, precision: Array, noise: Array) -> Array:
    """precision^-1 shift plus noise of that covariance, for one Gaussian."""
    root = jnp.linalg.cholesky(precision)
    solve = jax.scipy.linalg.solve_triangular
    return solve(root.T, solve(root, mean_shift, lower=True) + noise, lower=False)


def jointly(joint: Joint, names: tuple[str, ...]) -> Move:
    """All elements of these variables together."""
    factors = joint.touching(names)

    def draw(key: Key, values: Values, data: Data) -> Values:
        start, back = ravel_pytree({name: values[name] for name in names})

        def log_density(x: Array) -> Array:
            return joint.total(factors, {**values, **back(x)}, data)

        slope = jax.grad(log_density)
        precision = -jax.lax.map(
            lambda v: jax.jvp(slope, (start,), (v,))[1], jnp.eye(len(start)), batch_size=64
        )  # fmt: skip
        precision = 0.5 * (precision + precision.T)
        return back(start + _around(slope(start), precision, jax.random.normal(key, start.shape)))

    return stateless(names, "jointly, from the Gaussian that the rest gives", draw)


def by_element(joint: Joint, names: tuple[str, ...]) -> Move:
    """Each element of these variables, of the same plates, together with the same element of the others."""
    factors = joint.touching(names)
    plates = len(joint.variables[names[0]].plates)
    shapes = [joint.density._shape(joint.variables[name]) for name in names]
    counts = [math.prod(shape[plates:]) for shape in shapes]

    def rows(values: Values) -> Array:
        return jnp.concatenate([values[n].reshape((*s[:plates], -1)) for n, s in zip(names, shapes, strict=True)], -1)

    def back(x: Array) -> Values:
        found, begin = {}, 0
        for name, shape, count in zip(names, shapes, counts, strict=True):
            found[name] = x[..., begin : begin + count].reshape(shape)
            begin += count
        return found

    def draw(key: Key, values: Values, data: Data) -> Values:
        start = rows(values)
        slope = jax.grad(lambda x: joint.total(factors, {**values, **back(x)}, data))
        units = [jnp.broadcast_to(unit, start.shape) for unit in jnp.eye(start.shape[-1])]
        precision = -jnp.stack([jax.jvp(slope, (start,), (unit,))[1] for unit in units], axis=-1)
        precision = 0.5 * (precision + jnp.swapaxes(precision, -1, -2))
        around = jnp.vectorize(_around, signature="(d),(d,d),(d)->(d)")
        return back(start + around(slope(start), precision, jax.random.normal(key, start.shape)))

    return stateless(names, "each element from its Gaussian conditional", draw)


def is_quadratic(joint: Joint, names: tuple[str, ...], states: list[Values], data: Data, key: Key) -> bool:
    """Whether the log density is a concave quadratic form in these variables, tried along random lines.

    A quadratic form has the same second derivative everywhere on a line, and its slope changes in proportion.
    """
    factors = joint.touching(names)
    for i, values in enumerate(states):
        start, back = ravel_pytree({name: values[name] for name in names})
        own = jax.random.split(jax.random.fold_in(key, i), 3)
        direction, other = (jax.random.normal(k, start.shape) for k in own[:2])

        def curvature(x: Array, values: Values = values, back=back, direction: Array = direction) -> Array:
            slope = jax.grad(lambda x: joint.total(factors, {**values, **back(x)}, data))
            return jax.jvp(slope, (x,), (direction,))[1]

        here, there = curvature(start), curvature(start + other)
        size = 1e-9 + jnp.max(jnp.abs(here))
        if not bool(jnp.max(jnp.abs(here - there)) < 1e-7 * size) or not bool(here @ direction < 0.0):
            return False
    return True
