"""Many runs side by side, dealt to the devices of a mesh: each has some of them whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from ..result import Outputs
from .place import Arrays, Shardings


class SideBySide:
    """On the devices of a mesh, of this process."""

    def __init__(self, mesh: Mesh) -> None:
        self.each = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
        self.whole = NamedSharding(mesh, PartitionSpec())

    def shardings(self, given: tuple[Any, ...], form: PyTree) -> Shardings:
        """Where the arguments `given` of a program are, and carries of this form."""
        values, data, _ = given
        inside = dict.fromkeys(values, self.each), jax.tree.map(lambda leaf: self.whole, data), self.whole
        return Shardings(inside, jax.tree.map(lambda leaf: self.each, form), self.whole)

    def agreed(self, number: int) -> int:
        """There is but one process."""
        return number

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree[jax.Array]:
        """Zeros of this form on the devices."""
        zeros = jax.jit(
            lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), form), out_shardings=self.each
        )
        return zeros()

    def placed(self, data: Arrays) -> Arrays:
        """The data that all runs have, where the run reads them."""
        return data

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program."""
        return data

    def outputs(self, outputs: Outputs) -> Outputs:
        """What the runs leave, as elsewhere."""
        return outputs

    def told(self, found: Any) -> Any:
        """What a checkpoint has of carries, as elsewhere."""
        return jax.tree.map(np.asarray, found)

    def together(self, last_words: Callable[[], str]) -> AbstractContextManager[None]:
        """There is no other process."""
        return nullcontext()
