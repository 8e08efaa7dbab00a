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
