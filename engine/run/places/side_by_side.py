"""Many runs side by side, dealt to the devices of a mesh: each has some of them whole."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from ..runner import OneProcess
from .place import Shardings


class SideBySide(OneProcess):
    """On the devices of a mesh, of this process."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh, self.each = mesh, NamedSharding(mesh, PartitionSpec(mesh.axis_names))
        self.whole = NamedSharding(mesh, PartitionSpec())

    def shardings(self, given: tuple[Any, ...], form: PyTree) -> Shardings:
        """Where the arguments `given` of a program are, and carries of this form."""
        values, data, _ = given
        inside = dict.fromkeys(values, self.each), jax.tree.map(lambda leaf: self.whole, data), self.whole
        return Shardings(inside, jax.tree.map(lambda leaf: self.each, form), self.whole)

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree[jax.Array]:
        """Zeros of this form on the devices."""
        zeros = jax.jit(
            lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), form), out_shardings=self.each
        )
        return zeros()
