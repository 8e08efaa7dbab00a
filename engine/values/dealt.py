"""Rows dealt to devices: which axis of an array is cut among them, and how arrays become even to be passed around.

Device d has rows d * each to (d + 1) * each of a dealt plate; the last ones may have fewer. Inside a program arrays
have the rows of the data, and the compiler cuts them; outside all devices have `each`, the last of them padded.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Float, PyTree

from ...compiler.language.nodes import Plate
from ...factors.arrays import Array

WHOLE = -1  # the axis of what every device has


@dataclasses.dataclass(frozen=True, eq=False)
class Dealt:
    """The plates that are dealt to the devices of a mesh, by rows that follow each other; `sizes` are those of all.

    `axes` has the dealt axis of whatever has plates, by name: of data, and of the moments of variables; `plate_of` the
    plate that it is of, where there is one.
    """

    mesh: Mesh
    plates: tuple[Plate, ...]
    sizes: Mapping[str, int]
    axes: Mapping[str, int]
    plate_of: Mapping[str, str]

    @cached_property
    def lengths(self) -> dict[str, int]:
        """The number of rows along it, by name."""
        return {name: self.sizes[plate] for name, plate in self.plate_of.items()}

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return self.mesh.size

    def each(self, plate: Plate) -> int:
        """The most rows that a device has."""
        return -(-self.sizes[plate.name] // self.devices)

    def axis(self, plates: tuple[Plate, ...]) -> int:
        """Which of the plates of an array is dealt; `WHOLE` where none is."""
        return axis_among(self.plates, plates)

    def spec(self, axis: int) -> PartitionSpec:
        """How an array is cut that is dealt along this axis."""
        return PartitionSpec() if axis == WHOLE else PartitionSpec(*[None] * axis, self.mesh.axis_names)

    def sharding(self, axis: int) -> NamedSharding:
        """The same, for arrays outside of programs."""
        return NamedSharding(self.mesh, self.spec(axis))

    def held(self, array: Array, axis: int) -> Array:
        """The array, known to be cut along this axis."""
        return jax.lax.with_sharding_constraint(array, self.sharding(axis))

    def inside(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Data with padded rows, by name, as they are inside of a program."""
        found = dict(data)
        for name, length in self.lengths.items():
            if name in found and isinstance(found[name], jax.Array):  # not what is read from files
                axis = self.axes[name]
                found[name] = self.held(jax.lax.slice_in_dim(found[name], 0, length, axis=axis), axis)
        return found

    def even(self, array: Array, axis: int) -> Array:
        """An array with as many rows for every device, those of the last ones padded with zeros."""
        if axis == WHOLE:
            return self.held(array, WHOLE)
        missing = -array.shape[axis] % self.devices
        if missing:
            array = jnp.pad(array, [(0, missing if i == axis else 0) for i in range(array.ndim)])
        return self.held(array, axis)

    def agreed(self, flag: Array) -> Array:
        """A whole number that all devices hold, the same one on all of them: the largest, should they differ."""
        names, whole = self.mesh.axis_names, PartitionSpec()
        reduce = jax.shard_map(
            lambda own: jax.lax.pmax(own, names), mesh=self.mesh, in_specs=whole, out_specs=whole, check_vma=False
        )
        return reduce(flag)

    def by_device(self, array: Array, axis: int) -> Float[Array, "device number"]:
        """What every device has of an array, in one row."""
        array = jnp.moveaxis(self.even(array, axis), axis, 0)
        return self.held(array.reshape((self.devices, -1)), 0)

    def from_devices(self, matrix: Float[Array, "device number"], shape: tuple[int, ...], axis: int) -> Array:
        """The array of this shape, from what every device has of it."""
        rows = shape[axis] + -shape[axis] % self.devices
        array = matrix.reshape((rows, *shape[:axis], *shape[axis + 1 :]))[: shape[axis]]
        return self.held(jnp.moveaxis(self.held(array, 0), 0, axis), axis)


def axis_among(dealt: tuple[Plate, ...], plates: tuple[Plate, ...]) -> int:
    """Which of the plates of an array is among those that are dealt; `WHOLE` where none is."""
    return next((i for i, plate in enumerate(plates) if plate in set(dealt)), WHOLE)


class Packed(NamedTuple):
    """Numbers of a tree: those that all devices have, and those of each device by itself."""

    shared: Float[Array, " size"]
    rows: Float[Array, "device number"]


class Packing:
    """The way of a tree of arrays into a `Packed` and back; `axes` has the dealt axis of each leaf."""

    def __init__(self, dealt: Dealt, tree: PyTree, axes: PyTree) -> None:
        leaves, self.nesting = jax.tree.flatten(tree)
        self.dealt, self.axes = dealt, jax.tree.leaves(axes)
        self.shapes = [jnp.shape(leaf) for leaf in leaves]
        self.types = [jnp.asarray(leaf).dtype for leaf in leaves]

    def packed(self, tree: PyTree) -> Packed:
        """The numbers of a tree of this form."""
        each = list(zip(jax.tree.leaves(tree), self.axes, strict=True))
        shared = [jnp.ravel(leaf) for leaf, axis in each if axis == WHOLE]
        rows = [self.dealt.by_device(leaf, axis) for leaf, axis in each if axis != WHOLE]
        devices = self.dealt.devices
        return Packed(
            jnp.concatenate([jnp.zeros(0), *shared]),
            self.dealt.held(jnp.concatenate([jnp.zeros((devices, 0)), *rows], axis=1), 0),
        )

    def tree(self, packed: Packed) -> Any:
        """The tree that holds these numbers."""
        found, shared, own = [], 0, 0
        for shape, axis, kind in zip(self.shapes, self.axes, self.types, strict=True):
            if axis == WHOLE:
                size = math.prod(shape)
                leaf, shared = packed.shared[shared : shared + size].reshape(shape), shared + size
            else:
                size = math.prod(shape[:axis] + shape[axis + 1 :]) * -(-shape[axis] // self.dealt.devices)
                leaf = self.dealt.from_devices(packed.rows[:, own : own + size], shape, axis)
                own += size
            found.append(leaf.astype(kind))
        return jax.tree.unflatten(self.nesting, found)
