"""The joint density of a tree and its leaves, and closed derivatives of it from one sweep up and one down."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import Kernel, native, put, row
from ..messages import squared
from .density import intensity, log_prior_, places_
from .plan import linked_, links_, queue_, top_
from .sweep import evidence_, start_, sweep_on, up_


def joint_(arrays: Any, leaves: Any, tables: Any) -> Any:
    """Log joint density alone, for use inside a compiled function."""
    links = links_(arrays)
    return log_prior_(arrays, tables) + evidence_(links, up_(links, queue_(links, top_(links)), start_(leaves)))


def joint_gradient_(arrays: Any, leaves: Any, tables: Any) -> tuple[Any, Any, Any]:
    """`joint_gradient` for use inside a compiled function.

    The evidence knows the branch above a node by its length alone. With (m, V) and (n, W) the messages that meet on
    it, its derivative in the length is `sum over columns of ((m - n)^2 / S - 1) / (2 S)`, `S = V + W + length`. A
    scale of the data acts as a standard deviation of the diffusion, that is on all lengths at once.
    """
    links = links_(arrays)
    messages = sweep_on(links, queue_(links, top_(links)), start_(leaves))
    columns, entries = messages.up_mean.shape[1], messages.up_variance.shape[1]
    below = (arrays.parent >= 0)[:, None]
    total = messages.up_variance + messages.down_variance + links.length[:, None]
    precision = jnp.where(below & (total < jnp.inf), 1.0 / total, 0.0)
    difference = messages.up_mean - messages.down_mean
    distance = squared(difference, entries)
    by_length = (0.5 * precision * (distance * precision - columns // entries)).sum(1)
    weight = links.length[:, None] * precision
    by_scale = (weight * (difference * difference * precision - 1.0)).sum(0)

    points, depth, _ = places_(arrays)
    slope, curve = intensity(tables.coefficients, depth)
    after = jnp.where(points, tables.harmonic[jnp.maximum(arrays.count - 1, 0)], 0.0)
    of_children = sum_of_children_(arrays.parent, jnp.stack([by_length, after], 1), linked_(arrays))
    by_time = jnp.exp(-depth) * (by_length - of_children[:, 0])
    by_depth = curve / slope - slope * (after - of_children[:, 1]) + by_time
    log_joint = messages.log_evidence + log_prior_(arrays, tables)
    return log_joint, jnp.where(points, by_depth, 0.0), by_scale


@native
def sum_of_children_(parent: Any, values: Any, size: Any) -> Any:
    """(2N, F) sums over the children of every row, `size` rows having parents at most."""

    def body(node: Any, sums: Any) -> Any:
        above = row(parent, node)
        at = jnp.maximum(above, 0)
        return put(sums, at, row(sums, at) + jnp.where(above >= 0, row(values, node), 0.0))

    return lax.fori_loop(0, size, body, jnp.zeros_like(values))


joint_gradient = Kernel(joint_gradient_)
joint_gradient.__doc__ = """Log joint density (of leaves, structure and depths), its derivatives in the depths of branch
points (2N,), 0 in other rows, and in the logs of the scales the columns were divided by (D,), the Jacobian of that
included: `joint_gradient(arrays, leaves, tables)`.

Source: knowles2015pitman.
"""
