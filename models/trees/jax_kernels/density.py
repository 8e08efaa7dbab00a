"""The prior's density and the divergence function, on padded arrays."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import native, put, row

DEEPEST = 690.0  # exp(depth) is finite up to here; beyond, terms with a factor zero stay zero


def cumulative(coefficients: Any, depth: Any) -> Any:
    """Integral of the divergence function from the origin to finite depths."""
    constant, rate, square = coefficients[0], coefficients[1], coefficients[2]
    return rate * depth - constant * jnp.expm1(-depth) + square * jnp.expm1(jnp.minimum(depth, DEEPEST))


def intensity(coefficients: Any, depth: Any) -> tuple[Any, Any]:
    """The divergence function per unit of depth, and its derivative."""
    bounded, growing = coefficients[0] * jnp.exp(-depth), coefficients[2] * jnp.exp(jnp.minimum(depth, DEEPEST))
    return coefficients[1] + bounded + growing, growing - bounded


def inverse(tables: Any, level: Any) -> Any:
    """The depth where the integral of the divergence function has a value: Newton's steps, halving where they leave the
    bracket."""
    constant, rate, square = tables.coefficients[0], tables.coefficients[1], tables.coefficients[2]
    simple = (constant == 0.0) & (square == 0.0)
    by_rate = level / rate
    high = jnp.minimum(by_rate, jnp.log1p(level / square))

    def body(carry: Any) -> Any:
        low, high, depth, step = carry
        error = cumulative(tables.coefficients, depth) - level
        low, high = jnp.where(error < 0.0, depth, low), jnp.where(error < 0.0, high, depth)
        better = depth - error / intensity(tables.coefficients, depth)[0]
        inside = (better > low) & (better < high)
        return low, high, jnp.where(inside, better, 0.5 * (low + high)), step + 1

    started = jnp.zeros(()), high, 0.5 * high, jnp.where(simple, 80, 0)
    found = lax.while_loop(lambda carry: carry[3] < 80, body, started)[2]
    return jnp.where(simple, by_rate, found)


def places_(arrays: Any) -> tuple[Any, Any, Any]:
    """(2N,) whether a row is a branch point; finite depths, 0 elsewhere; and those of the parents."""
    points = (arrays.degree >= 2) & (arrays.parent >= 0)
    depth = jnp.where(points, arrays.depth, 0.0)
    return points, depth, depth[jnp.maximum(arrays.parent, 0)]


def log_prior_(arrays: Any, tables: Any) -> Any:
    """Log density of structure and depths."""
    points, depth, above = places_(arrays)
    passed = cumulative(tables.coefficients, depth) - cumulative(tables.coefficients, above)
    below = arrays.count - 1
    times = jnp.log(intensity(tables.coefficients, depth)[0]) - passed * tables.harmonic[jnp.maximum(below, 0)]
    new = sums_(tables.log_new, jnp.max(arrays.degree) + 1)[arrays.degree]
    structure = new - tables.log_total[arrays.count] - (arrays.degree - 1) * tables.log_unit
    child = (arrays.parent >= 0) & (arrays.parent < arrays.parent.shape[0] - 1)
    followed = jnp.where(child, tables.log_follow[arrays.count], 0.0)
    return jnp.where(points, times + structure, 0.0).sum() + followed.sum()


@native
def sums_(terms: Any, size: Any) -> Any:
    """Cumulative sums of the first entries."""

    def body(entry: Any, carry: Any) -> Any:
        sums, total = carry
        total = total + row(terms, entry)
        return put(sums, entry, total), total

    return lax.fori_loop(0, size, body, (jnp.zeros_like(terms), jnp.zeros((), terms.dtype)))[0]
