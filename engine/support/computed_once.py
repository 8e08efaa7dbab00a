"""A barrier between computations: what passes through it XLA's CPU compiler computes once, not once for each use.

It drops `optimization_barrier` before it fuses, and fusion copies cheap-looking producers into all their consumers: the
digammas of ten component weights were computed again for every one of a million rows, and the scalar evidence inside
each of twenty selects. What passes through a loop is computed once.
"""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from ...factors.arrays import Array

LARGEST = 1 << 16
_Tree = TypeVar("_Tree")  # a pytree of arrays


def computed_once(tree: _Tree, always: Bool[Array, ""]) -> _Tree:
    """`tree` itself, computed once. `always` is a boolean scalar that is true, though the compiler cannot know it."""
    if sum(jnp.size(leaf) for leaf in jax.tree.leaves(tree)) > LARGEST:
        return tree

    def once(carry: tuple[Bool[Array, ""], _Tree]) -> tuple[Bool[Array, ""], _Tree]:
        return jnp.asarray(True), jax.tree.map(lambda a: jnp.where(always, a, jnp.zeros_like(a)), carry[1])

    return jax.lax.while_loop(lambda carry: ~carry[0], once, (~always, tree))[1]
