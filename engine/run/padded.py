"""Runs of data of any number of rows by a program for a few of them: arguments padded, outputs cut to what they are of.

Everything outside a run, from the checks of data to predictions and files, sees the data as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from ...compiler.blocks.base import Block
from ...compiler.data.keys import is_present, number_in
from ...compiler.data.sparse_matrices import is_sparse
from ...compiler.graph import Plan
from ...compiler.growing import one_size, open_plates
from ...compiler.language.nodes import Plate
from ...factors.arrays import Array
from ..values.few_sizes import padded_sizes
from ..values.instances import count, room
from ..values.joint_beliefs import joint_sizes
from ..values.row_blocks import rows_of
from .bound_plan import Data
from .control.carry import Settings
from .machine import Machine
from .result import Outputs, Result
from .runner import Runner

MOST = 2**17  # instances of a factor: of more a run takes longer than to compile it


def padded_plates(
    plan: Plan, sizes: Mapping[str, int], fixed: Mapping[str, int], inputs: Mapping[str, Any]
) -> tuple[Plate, ...]:
    """The plates to pad for data of these sizes: none where the run would be another with more rows.

    `fixed` are the sizes that were asked for, which stay as they are.
    """
    if not jax.config.jax_threefry_partitionable:  # pyright: ignore
        return ()  # random orders depend on the number of rows
    plates = tuple(p for p in open_plates(plan) if p.name not in fixed and not one_size(plan, p))
    sparse = {p for name, node in plan.model.inputs.items() if is_sparse(inputs[name]) for p in node.plates}
    plates = tuple(plate for plate in plates if plate not in sparse)
    larger = padded_sizes(plates, sizes)
    cut = rows_of(plan, {**larger, **joint_sizes(plan)})
    return () if cut or max((count(block, larger) for block in plan.blocks), default=0) > MOST else plates


def padded_machine(machine: Machine, plates: tuple[Plate, ...]) -> Machine:
    """The machine for all data of about as many rows."""
    sizes = padded_sizes(plates, machine.sizes)
    graph = dataclasses.replace(machine.graph, sizes={**(machine.graph.sizes or {}), **sizes})
    return Machine(graph, sizes, machine.apart, plates)


class PaddedRunner:
    """A runner for the data of one machine, by that of a padded one."""

    def __init__(self, runner: Runner, machine: Machine) -> None:
        self.runner, self.machine = runner, machine

    @property
    def settings(self) -> Settings:
        """Those of the runs."""
        return self.runner.settings

    def __call__(self, data: Data, seed: object, progress: bool | None) -> Result:
        """As `Runner`."""
        return self._result(self.runner(self._padded(data, 0), seed, progress))

    def many(self, data: Data, seed: object) -> Outputs:
        """As `Runner`."""
        return self._cut(self.runner.many(self._padded(data, 1), seed), 1)

    def many_values(self, data: Data, values: Data, seed: object) -> Outputs:
        """As `Runner`."""
        return self._cut(self.runner.many_values(self._padded(data, 0), self._extended(values, 1), seed), 1)

    def _result(self, result: Result) -> Result:
        return Result(self._cut(result.outputs, 0), result.settings)

    def _padded(self, data: Data, lead: int) -> Data:
        """The data with padded rows, and how many count; `lead` is the number of axes before the plates."""
        stacked = () if lead == 0 else np.shape(jax.tree.leaves(data)[0])[:1]
        numbers = {
            number_in(plate.name): np.full(stacked, self.machine.sizes[plate.name], np.int32) for plate in self._plates
        }
        return {**self._extended(data, lead), **numbers}

    def _extended(self, data: Data, lead: int) -> Data:
        found = dict(data)
        for name, plates in self._over.items():
            for axis, plate in enumerate(plates):
                if name in data and plate in set(self._plates):
                    found[name] = extended(found[name], lead + axis, self.runner.machine.sizes[plate.name])
        return found

    @property
    def _plates(self) -> tuple[Plate, ...]:
        return self.runner.machine.padded

    @cached_property
    def _over(self) -> dict[str, tuple[Plate, ...]]:
        """The plates of all that is in the data, by name."""
        model = self.machine.graph.model
        nodes = {**model.inputs, **model.randoms, **model.lets}
        return {key: node.plates for name, node in nodes.items() for key in (name, is_present(name))}

    def _cut(self, outputs: Outputs, lead: int) -> Outputs:
        """The outputs without the messages of padded rows."""
        messages = dict(outputs["messages"])
        for number, block in self.machine.ep_blocks.items():
            if set(block.plates) & set(self._plates):
                cut = partial(self._messages, block=block, lead=lead)
                messages[number] = jax.tree.map(cut, messages[number])
        return {**outputs, "messages": messages}

    def _messages(self, leaf: Array, block: Block, lead: int) -> np.ndarray:
        """The messages of a block: those of the batches that it has, or of the instances in their order."""
        array, begin = np.asarray(leaf), (slice(None),) * lead
        if (shape := room(block, self.machine.sizes)) is not None:
            return array[(*begin, slice(shape.batches), slice(shape.width))]
        own, larger = ([m.sizes[p.name] for p in block.plates] for m in (self.machine, self.runner.machine))
        event = array.shape[lead + 2 :]
        rows = array.reshape((*array.shape[: lead + 1], *larger, *event))[(*begin, slice(None), *map(slice, own))]
        return rows.reshape((*array.shape[: lead + 1], -1, *event))


def extended(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """An array with its last row along an axis repeated until there are `size`."""
    last = np.take(array, [-1], axis=axis)
    return np.concatenate([array, np.repeat(last, size - array.shape[axis], axis=axis)], axis=axis)
