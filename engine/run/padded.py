"""Runs of data of any number of rows by a program for a few of them: arguments padded, outputs cut to what they are of.

Everything outside a run, from the checks of data to predictions and files, sees the data as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import jax
import numpy as np
from jaxtyping import PyTree

from ...compiler.data.keys import STARTS, is_present, number_in
from ...compiler.graph import Plan
from ...compiler.growing import one_size, open_plates
from ...compiler.language.model import Model
from ...compiler.language.nodes import Plate
from ...factors.arrays import Array
from ..values.few_sizes import padded_sizes
from ..values.instances import BATCHES, count, padded_room, room
from ..values.joint_beliefs import joint_sizes
from ..values.row_blocks import rows_of
from .bound_plan import BoundPlan, Data
from .control.carry import Settings
from .given_start import GivenStart, given_start
from .machine import Machine
from .progress import Progress
from .result import Outputs, Result
from .runner import Runner

Shape: TypeAlias = tuple[int, ...]

MOST = 2**17  # instances of a factor: of more a run takes longer than to compile it


def padded_plates(
    plan: Plan, sizes: Mapping[str, int], fixed: Mapping[str, int], sparse: Collection[str]
) -> tuple[Plate, ...]:
    """The plates to pad for data of these sizes: none where the run would be another with more rows.

    `fixed` are the sizes that were asked for, which stay as they are, and `sparse` names inputs that are laid out for
    their number of rows.
    """
    if not jax.config.jax_threefry_partitionable:  # pyright: ignore
        return ()  # random orders depend on the number of rows
    if plan.schedule.rows != BATCHES:
        return ()  # each row is a batch, of which a program has a fixed number
    plates = tuple(p for p in open_plates(plan) if p.name not in fixed and not one_size(plan, p))
    paged = {plate for name in sparse for plate in plan.model.inputs[name].plates}
    plates = tuple(plate for plate in plates if plate not in paged)
    larger = padded_sizes(plates, sizes)
    cut = rows_of(plan, {**larger, **joint_sizes(plan)})
    return () if cut or max((count(block, larger) for block in plan.blocks), default=0) > MOST else plates


def with_larger(machine: Machine, plates: tuple[Plate, ...]) -> Machine:
    """The machine, with that for all data of about as many rows."""
    sizes = padded_sizes(plates, machine.sizes)
    graph = dataclasses.replace(machine.graph, sizes={**(machine.graph.sizes or {}), **sizes})
    return dataclasses.replace(machine, larger=Machine(graph, sizes, machine.apart, plates))


class PaddedRows:
    """Arrays by the names of a model, with the rows of padded `plates` and without; `sizes` are those of the data."""

    def __init__(self, model: Model, plates: tuple[Plate, ...], sizes: Mapping[str, int]) -> None:
        self.model, self.plates, self.sizes = model, plates, sizes
        self.larger_sizes = padded_sizes(plates, sizes)

    def rows(self, data: Mapping[str, Any], lead: int = 0) -> dict[str, Any]:
        """The arrays with padded rows; `lead` is the number of axes before the plates."""
        found = dict(data)
        for name, plates in self._over.items():
            for axis, plate in enumerate(plates):
                if name in data and plate in set(self.plates):
                    found[name] = _longer(found[name], lead + axis, self.larger_sizes[plate.name])
        return found

    def holds(self, name: str) -> bool:
        """Whether a variable has padded rows."""
        return bool(set(self._over[name]) & set(self.plates))

    def first_rows(self, name: str, values: PyTree, lead: int = 0) -> PyTree:
        """The values of a variable without those of padded rows; `lead` as in `rows`."""
        rows = (slice(None),) * lead + tuple(slice(self.sizes[plate.name]) for plate in self._over[name])
        return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], values)

    @cached_property
    def _over(self) -> dict[str, tuple[Plate, ...]]:
        """The plates of what may be in the data, by name."""
        nodes = {**self.model.inputs, **self.model.randoms, **self.model.lets}
        return {key: node.plates for name, node in nodes.items() for key in (name, is_present(name))}


class Padding(PaddedRows):
    """What is between a machine for the data and one for more rows: padded arguments, and cut answers."""

    def __init__(self, machine: BoundPlan, larger: BoundPlan) -> None:
        super().__init__(machine.graph.model, larger.padded, machine.sizes)
        self.machine, self.larger = machine, larger

    def data(self, data: Data, lead: int = 0) -> Data:
        """The data with padded rows, and how many rows count; `lead` is the number of axes before the plates."""
        stacked = np.shape(jax.tree.leaves(data)[0])[:lead]
        numbers = {number_in(p.name): np.full(stacked, self.sizes[p.name], np.int32) for p in self.plates}
        found = {**self.rows(data, lead), **numbers}
        if (given := given_start(data)) is not None:
            found[STARTS] = self._started(given)
        return found

    def _started(self, given: GivenStart) -> GivenStart:
        """The start of a run, with padded rows: they begin where the last row does."""
        naturals = {}
        for name, parts in given.naturals.items():
            for axis, plate in enumerate(self.machine.graph.latent[name].plates):
                if plate in set(self.plates):
                    parts = tuple(_longer(part, axis, self.larger_sizes[plate.name]) for part in parts)
            naturals[name] = parts
        messages = {number: self.grown(number, own) for number, own in given.messages.items()}
        return GivenStart(naturals, jax.tree.map(np.asarray, messages), given.key)

    def cut(self, outputs: Outputs, lead: int = 0) -> Outputs:
        """The outputs without the messages of padded rows."""
        messages = dict(outputs["messages"])
        for number, (own, larger) in self._shapes.items():

            def first(leaf: Array, own: Shape = own, larger: Shape = larger) -> Array:
                before, event = np.shape(leaf)[:lead], np.shape(leaf)[lead + 2 :]
                within = np.asarray(leaf).reshape((*before, *larger, *event))
                return within[(slice(None),) * lead + tuple(map(slice, own))].reshape((*before, own[0], -1, *event))

            messages[number] = jax.tree.map(first, messages[number])
        return {**outputs, "messages": messages}

    def grown(self, number: str, messages: PyTree) -> PyTree:
        """The messages of block `number`, with uniform ones for padded rows."""
        if number not in self._shapes:
            return messages
        own, larger = self._shapes[number]

        def more(leaf: Array) -> Array:
            event = np.shape(leaf)[2:]
            wanted = [(0, there - here) for here, there in zip(own, larger, strict=True)]
            within = np.asarray(leaf).reshape((*own, *event))
            return np.pad(within, wanted + [(0, 0)] * len(event)).reshape((larger[0], -1, *event))

        return jax.tree.map(more, messages)

    @cached_property
    def _shapes(self) -> dict[str, tuple[Shape, Shape]]:
        """Batches and width of the messages of a block by its number, without and with padding.

        The width of a single batch is that of each plate, in turn.
        """
        found: dict[str, tuple[Shape, Shape]] = {}
        for number, block in self.machine.ep_blocks.items():
            if set(block.plates) & set(self.plates):
                own = room(block, self.machine.sizes)
                larger = padded_room(block, self.larger.sizes, self.plates)
                by_plate = [(1, *(m.sizes[p.name] for p in block.plates)) for m in (self.machine, self.larger)]
                found[number] = (by_plate[0], by_plate[1]) if own is None else (own, larger)
        return found


class PaddedRunner:
    """A runner for the data of one machine, by that of a larger one: see `Runner` for what it does."""

    def __init__(self, runner: Runner, machine: Machine) -> None:
        self.runner, self.padding = runner, Padding(machine, runner.machine)

    @property
    def settings(self) -> Settings:
        """Those of the runs."""
        return self.runner.settings

    def __call__(self, data: Data, seed: object, progress: bool | None, planning: float = 0.0) -> Result:
        """One inference, the plan of which took so many seconds."""
        result = self.runner(self.padding.data(data), seed, progress, planning)
        modes = tuple(mode._replace(outputs=self.padding.cut(mode.outputs)) for mode in result.modes)
        return dataclasses.replace(result, outputs=self.padding.cut(result.outputs), modes=modes)

    def many(self, data: Data, seed: object) -> Outputs:
        """Inferences with stacked data: the outputs, stacked."""
        return self.padding.cut(self.runner.many(self.padding.data(data, 1), seed), 1)

    def many_values(
        self, data: Data, values: Data, seed: object, calls: int = 1, watcher: Progress | None = None
    ) -> Outputs:
        """Inferences that differ in `values` alone, which are stacked: the outputs, stacked."""
        inside, rows = self.padding.data(data), self.padding.rows(values, 1)
        outputs = self.runner.many_values(inside, rows, seed, calls, watcher)
        return self.padding.cut(outputs, 1)


def _longer(array: Array, axis: int, size: int) -> np.ndarray:
    """An array with its last row along an axis repeated until there are `size`."""
    array = np.asarray(array)
    last = np.take(array, [-1], axis=axis)
    return np.concatenate([array, np.repeat(last, size - array.shape[axis], axis=axis)], axis=axis)
