"""A run on all devices of a mesh, with the rows of some plates dealt to them: the way of data there, and of answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import PyTree

from ....compiler.data.keys import STARTS, is_present
from ....compiler.data.sparse_matrices import is_sparse
from ....compiler.graph import Plan
from ....compiler.sharding import dealt_plates, numbers_by_plate
from ....factors.errors import LostError
from ...cluster.own_rows import OwnRows, even
from ...values.dealt import WHOLE, Dealt, Packed, axis_among
from ...values.instances import ScheduleLayout, count, layout
from ...values.streamed_rows import StreamedRows
from ..bound_plan import BoundPlan
from ..fixed_points import OTHERS
from ..result import Outputs
from .dealt_state import Places
from .place import Arrays, Shardings

GONE = ("Gloo", "NCCL", "nccl", "heartbeat", "coordination service", "Connection", "UNAVAILABLE", "DEADLINE_EXCEEDED")


class OnDevices:
    """On the devices of a mesh; `own` says which rows this process has, where no process has all.

    `messages(key)` has then, by number of a block, what makes its messages those of these rows alone.
    """

    def __init__(
        self, dealt: Dealt, own: OwnRows | None = None, messages: Callable[[Any], Mapping[str, Any]] = lambda key: {}
    ) -> None:
        self.dealt, self.own, self.messages, self.mesh = dealt, own, messages, dealt.mesh

    def shardings(self, given: tuple[Any, ...], form: PyTree) -> Shardings:
        """Where the arguments `given` of a program are, and carries of this form."""
        values, data, _ = given
        whole = self.dealt.sharding(WHOLE)
        of_data = {name: self._of(name, own) for name, own in data.items()}
        return Shardings((dict.fromkeys(values, whole), of_data, whole), self._of_carry(form), whole)

    def agreed(self, number: int) -> int:
        """The number of the first process."""
        if jax.process_count() == 1:
            return number
        return int(multihost_utils.broadcast_one_to_all(np.int32(min(number, 2**30))))

    def _of(self, name: str, array: Any) -> jax.sharding.NamedSharding:
        dealt = name in self.dealt.lengths and not isinstance(array, StreamedRows)
        return self.dealt.sharding(self.dealt.axes[name] if dealt else WHOLE)

    def _of_carry(self, form: PyTree) -> PyTree:
        dealt = self.dealt

        def of(leaf: Any) -> Any:
            if isinstance(leaf, Packed):
                own: Any = dealt.sharding(WHOLE), dealt.sharding(len(leaf.rows.shape) - 2)
                return Packed(*own)
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
        sharding = self._of(name, array)
        if name not in self.dealt.lengths or isinstance(array, StreamedRows):
            return jax.tree.map(lambda leaf: _put(np.asarray(leaf), sharding), array)
        axis, rows, array = self.dealt.axes[name], self.dealt.lengths[name], np.asarray(array)
        first = 0
        if self.own is not None:
            plate = self.dealt.plate_of[name]
            counts, first = self.own.counts[plate], self.own.first(plate)
            if not _fit(self.dealt.mesh, counts):
                array, first = even(array, axis, counts), 0
        shape = (*array.shape[:axis], rows + -rows % self.dealt.devices, *array.shape[axis + 1 :])

        def part(index: Any) -> np.ndarray:
            start, stop, _ = index[axis].indices(shape[axis])
            if stop <= rows:  # no copy
                return array[(slice(None),) * axis + (slice(start - first, stop - first),)]
            places = np.clip(np.arange(start, stop), 0, rows - 1) - first  # the last row stands in for padding
            return np.take(array, places, axis=axis)

        return jax.make_array_from_callback(shape, sharding, part)

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program, without padded rows."""
        return self.dealt.inside(data)

    def outputs(self, outputs: Outputs) -> Outputs:
        """What a run leaves, as one that is not dealt would: on the host of every process."""
        found: Any = jax.tree.map(_fetched, dict(outputs))
        others = found.pop(OTHERS, None)
        if others is not None and self.own is None:
            found[OTHERS] = self._undealt(others)
        return self._undealt(found)

    def told(self, found: Any) -> Any:
        """What a checkpoint has of a carry, with no order of devices in it: on the host of every process."""
        every = OnDevices(self.dealt)  # rows of all processes
        found = jax.tree.map(_fetched, found)
        return found._replace(points=every._undealt(found.points))

    @contextlib.contextmanager
    def together(self, last_words: Callable[[], str]) -> Iterator[None]:
        """Around what all processes do: LostError, ending in these words, where another is gone."""
        try:
            yield
        except (jax.errors.JaxRuntimeError, ValueError) as problem:  # in a call, or where its result is read
            if jax.process_count() == 1 or not any(word in str(problem) for word in GONE):
                raise
            raise LostError(
                f"Process {jax.process_index()} of {jax.process_count()} lost another one: it ended, or its machine "
                f"cannot be reached ({str(problem).splitlines()[0][:200]}). {last_words()}"
            ) from problem

    def _rows(self, name: str) -> slice:
        """Which of the rows of a variable this process had in its data."""
        if self.own is None:
            return slice(self.dealt.lengths[name])
        plate = self.dealt.plate_of[name]
        first = self.own.first(plate)
        return slice(first, first + self.own.counts[plate][jax.process_index()])

    def _undealt(self, found: dict[str, Any]) -> Any:
        dealt, lead = self.dealt, np.ndim(found["code"])
        beliefs = dict(found["beliefs"])
        for name, own in beliefs.items():
            if name in dealt.lengths:
                rows = (slice(None),) * (lead + dealt.axes[name]) + (self._rows(name),)
                beliefs[name] = jax.tree.map(lambda leaf, rows=rows: leaf[rows], own)
        messages, places = dict(found["messages"]), found.pop("places")
        own = {} if self.own is None or not places else self.messages(found["key"])
        for number, at in places.items():
            if number in own:
                messages[number] = jax.tree.map(partial(own[number], at), messages[number])
            else:
                messages[number] = jax.tree.map(partial(_in_place, at, lead), messages[number])
        return {**found, "beliefs": beliefs, "messages": messages}


def _in_place(at: Places, lead: int, leaf: np.ndarray) -> np.ndarray:
    """Messages by place in their batches, from those by device, after `lead` axes."""
    event, width = leaf.shape[lead + 2 :], int(np.max(at.width))
    found = np.zeros((*at.place.shape[:-1], width + 1, *event), leaf.dtype)
    place = np.broadcast_to(at.place.reshape(at.place.shape + (1,) * len(event)), leaf.shape)
    np.put_along_axis(found, place, leaf, axis=lead + 1)
    return found[(slice(None),) * (lead + 1) + (slice(width),)]


def of_own_rows(layout: ScheduleLayout | None, rows: slice, at: Places, leaf: np.ndarray) -> np.ndarray:
    """The messages of the instances in `rows`, from those of all by device, in the layout of a run of these alone."""
    order = np.arange(rows.stop - rows.start)[None] if layout is None else np.asarray(layout.order)
    found = np.zeros((rows.stop - rows.start, *leaf.shape[2:]), leaf.dtype)
    inside = (at.instance >= rows.start) & (at.instance < rows.stop)
    found[at.instance[inside] - rows.start] = leaf[inside]
    found = found[order]
    if layout is not None:
        found[~np.asarray(layout.present)] = 0.0
    return found


def _put(array: np.ndarray, sharding: jax.sharding.NamedSharding) -> jax.Array:
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def _fetched(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated):
        return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
    return np.asarray(leaf)


def _fit(mesh: jax.sharding.Mesh, counts: tuple[int, ...]) -> bool:
    """Whether each process has the rows that its own devices are dealt."""
    total, each = sum(counts), -(-sum(counts) // mesh.size)
    for i, device in enumerate(mesh.devices.flat):
        first = sum(counts[: device.process_index])
        start, stop = min(i * each, total), min((i + 1) * each, total)
        if start < first or stop > first + counts[device.process_index]:
            return False
    return True


def dealt_rows(mesh: jax.sharding.Mesh, plan: Plan, sizes: Mapping[str, int], data: Arrays) -> Dealt:
    """How the rows of data are dealt to the devices of a mesh, by a plan: see `compiler/sharding.py`."""
    model, over = plan.model, {}
    for name, node in {**model.inputs, **model.randoms, **model.lets, **plan.latent}.items():
        over[name] = over[is_present(name)] = node.plates
    for own in plan.partly.values():
        over |= {node.name: node.plates for node in own}
    over |= {belief.variable.name: belief.variable.plates for belief in (*plan.joints, *plan.pairs)}
    sparse = {plate for name, array in data.items() if is_sparse(array) for plate in over[name]}
    plates = dealt_plates(plan, sizes, numbers_by_plate(plan, data), mesh.size)
    plates = tuple(plate for plate in plates if plate not in sparse)
    axes = {name: axis_among(plates, own) for name, own in over.items()}
    return Dealt(mesh, plates, sizes, axes, {n: over[n][axis].name for n, axis in axes.items() if axis != WHOLE})


def messages_of_own_rows(machine: BoundPlan, own: OwnRows | None, key: Any) -> dict[str, Callable[..., np.ndarray]]:
    """By number of a block, what makes the messages of all rows, by device, those of a run of this process' rows."""
    found = {}
    for number, block in machine.ep_blocks.items():
        if own is None or block.plates[0].name not in own.counts:
            continue
        plate = block.plates[0]
        each = count(block, machine.sizes) // machine.sizes[plate.name]
        first = own.first(plate.name) * each
        words = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(key)), int(number))
        own_layout = layout(block, machine.scope({}), block.elements, words)
        found[number] = partial(of_own_rows, own_layout, slice(first, first + count(block, machine.sizes)))
    return found
