"""Trees of arrays: NumPy's of what has values already, tracers of what JAX maps left alone, and whether all are finite.

A posterior may be asked of many runs at once: its outputs are then tracers of `jax.vmap`, and so are its answers.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ...factors.arrays import Array


def is_traced(tree: object) -> bool:
    """Whether JAX is tracing or mapping some of the arrays."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def as_numpy(tree: Any) -> Any:  # a pytree, as it came
    """The same with NumPy arrays, but for those that are traced."""
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, Tracer) else np.asarray(leaf), tree)


def all_finite(tree: Any) -> Array:
    """Whether every number of a tree is finite."""
    return jnp.all(jnp.asarray([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
