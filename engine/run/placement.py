"""Where a run is: on the default device, or on all devices of a mesh, with the rows of some plates dealt to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import PyTree

from ...compiler.data.keys import STARTS, is_present
from ...compiler.data.sparse_matrices import is_sparse
from ...compiler.graph import Plan
from ...compiler.sharding import dealt_plates
from ..values.dealt import WHOLE, Dealt, Packed, axis_among
from .fixed_points import OTHERS
from .result import Outputs

Arrays = Mapping[str, Any]  # data of a run, by name


class Here:
    """On the default device."""

    def jitted(self, chunk: Callable[..., Any], given: tuple[Any, ...], form: PyTree) -> Any:
        """The chunk as a jitted function; each carry goes into the next: it may be a quarter of a gigabyte."""
        return jax.jit(chunk, donate_argnums=3)

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree[np.ndarray]:
        """Zeros of this form, for the place of a carry that is not there yet."""
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), form)

    def placed(self, data: Arrays) -> Arrays:
        """The data, where the run reads them."""
        return data

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program."""
        return data

    def outputs(self, outputs: Outputs) -> Outputs:
        """What a run leaves, as it is elsewhere."""
        return outputs


class OnDevices:
    """On the devices of a mesh."""

    def __init__(self, dealt: Dealt) -> None:
        self.dealt = dealt

    def jitted(self, chunk: Callable[..., Any], given: tuple[Any, ...], form: PyTree) -> Any:
        """The chunk as a jitted function of arrays that are on the devices already."""
        values, data, key = given
        all_have, carry = self.dealt.sharding(WHOLE), self._of_carry(form)
        of_data = {name: self._of(name) for name in data}
        shardings = (dict.fromkeys(values, all_have), of_data, all_have, carry, all_have, all_have)
        return jax.jit(chunk, donate_argnums=3, in_shardings=shardings, out_shardings=(carry, None))

    def _of(self, name: str) -> jax.sharding.NamedSharding:
        return self.dealt.sharding(self.dealt.axes[name] if name in self.dealt.lengths else WHOLE)

    def _of_carry(self, form: PyTree) -> PyTree:
        dealt = self.dealt

        def of(leaf: Any) -> Any:
            if isinstance(leaf, Packed):
                return Packed(dealt.sharding(WHOLE), dealt.sharding(len(leaf.rows.shape) - 2))
            return dealt.sharding(WHOLE)

        return jax.tree.map(of, form, is_leaf=lambda leaf: isinstance(leaf, Packed))

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree[jax.Array]:
        """Zeros of this form on the devices."""

        def zeros() -> PyTree:
            return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), form)

        return jax.jit(zeros, out_shardings=self._of_carry(form))()

    def placed(self, data: Arrays) -> Arrays:
        """The data with padded rows, on the devices: every process puts there what its own devices have."""
        return {name: own if name == STARTS else self._on_devices(name, own) for name, own in data.items()}

    def _on_devices(self, name: str, array: Any) -> Any:
        sharding = self._of(name)
        if name in self.dealt.lengths:
            axis = self.dealt.axes[name]
            array = np.asarray(array)
            missing = -array.shape[axis] % self.dealt.devices
            array = np.pad(array, [(0, missing if i == axis else 0) for i in range(array.ndim)], mode="edge")
        return jax.tree.map(lambda leaf: _put(np.asarray(leaf), sharding), array)

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program, without padded rows."""
        return self.dealt.inside(data)

    def outputs(self, outputs: Outputs) -> Outputs:
        """What a run leaves, as one that is not dealt would: on the host of every process."""
        found: Any = jax.tree.map(_fetched, dict(outputs))
        if OTHERS in found:
            found[OTHERS] = self._undealt(found[OTHERS])
        return self._undealt(found)

    def _undealt(self, found: dict[str, Any]) -> Any:
        dealt, lead = self.dealt, np.ndim(found["code"])
        beliefs = dict(found["beliefs"])
        for name, own in beliefs.items():
            if name in dealt.lengths:
                rows = (slice(None),) * (lead + dealt.axes[name]) + (slice(dealt.lengths[name]),)
                beliefs[name] = jax.tree.map(lambda leaf, rows=rows: leaf[rows], own)
        messages, places = dict(found["messages"]), found.pop("places")
        for number, (place, width) in places.items():
            messages[number] = jax.tree.map(
                lambda leaf, place=place, width=width: _in_place(leaf, place, int(np.max(width)), lead),
                messages[number],
            )
        return {**found, "beliefs": beliefs, "messages": messages}


def _in_place(leaf: np.ndarray, place: np.ndarray, width: int, lead: int) -> np.ndarray:
    """Messages by place in their batches, from those by device: batches of so many, after `lead` axes."""
    event = leaf.shape[lead + 2 :]
    found = np.zeros((*place.shape[:-1], width + 1, *event), leaf.dtype)
    at = np.broadcast_to(place.reshape(place.shape + (1,) * len(event)), leaf.shape)
    np.put_along_axis(found, at, leaf, axis=lead + 1)
    return found[(slice(None),) * (lead + 1) + (slice(width),)]


def _put(array: np.ndarray, sharding: jax.sharding.NamedSharding) -> jax.Array:
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def _fetched(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated):
        return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
    return np.asarray(leaf)


def dealt_rows(mesh: jax.sharding.Mesh, plan: Plan, sizes: Mapping[str, int], data: Arrays) -> Dealt:
    """How the rows of data are dealt to the devices of a mesh, by a plan: see `compiler/sharding.py`."""
    model, over = plan.model, {}
    for name, node in {**model.inputs, **model.randoms, **model.lets, **plan.latent}.items():
        over[name] = over[is_present(name)] = node.plates
    for own in plan.partly.values():
        over |= {node.name: node.plates for node in own}
    over |= {belief.variable.name: belief.variable.plates for belief in (*plan.joints, *plan.pairs)}
    numbers: dict[str, int] = {}
    for name, array in data.items():
        for plate in over[name]:
            numbers[plate.name] = numbers.get(plate.name, 0) + (0 if is_sparse(array) else np.size(array))
    plates = dealt_plates(plan, sizes, numbers, mesh.size)
    axes = {name: axis_among(plates, own) for name, own in over.items()}
    lengths = {name: sizes[over[name][axis].name] for name, axis in axes.items() if axis != WHOLE}
    return Dealt(mesh, plates, sizes, axes, lengths)
