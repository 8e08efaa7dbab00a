"""Programs: the steps of a jaxpr as a list of closures over a list of slots, made once and run as often as one likes.

What nothing reads is not computed. A slot is used again as soon as its value has been read for the last time, so that
no array outlives its use for long. Of a loop's body, what depends on nothing that changes is computed once for a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from .equation import Function, Shape, Unknown, type_of
from .graph import Graph, Step
from .work import Meter

Action = Callable[[list[Any]], None]


class Interpreter:
    """A jaxpr as a function of arrays, run by NumPy. Raises Unknown, which says why, for one that it cannot run.

    A call raises Spent where it would do more work than `meter` allows.
    """

    def __init__(self, closed: ClosedJaxpr, meter: Meter | None = None) -> None:
        self._types = [type_of(aval) for aval in closed.in_avals]
        with np.errstate(all="ignore"):  # constants are computed here
            self.program = Body(meter or Meter(), closed, [aval.shape for aval in closed.in_avals])
        self._run = self.program.bind(())
        self._outs = [type_of(aval) for aval in closed.out_avals]

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """The outputs: arrays of their own, that share nothing with the inputs."""
        inputs = [np.asarray(array, type)[()] for array, type in zip(arrays, self._types, strict=True)]
        with np.errstate(all="ignore"):
            outputs = self._run(inputs)
        return [np.array(value, type) for value, type in zip(outputs, self._outs, strict=True)]


class ByNumpy:
    """A traced function of nested arrays, which gives what JAX would give back compiled. Raises as `Interpreter`."""

    def __init__(self, traced: jax.stages.Traced, meter: Meter) -> None:
        self.meter = meter
        self._run = Interpreter(traced.jaxpr, meter)
        self._nesting = traced.out_tree

    def __call__(self, *arguments: Any) -> Any:
        return jax.tree.unflatten(self._nesting, jax.device_put(self._run(*jax.tree.leaves(arguments))))


def can_interpret(closed: ClosedJaxpr) -> str | None:
    """None where NumPy can run a jaxpr as XLA would; otherwise why not. Nothing is run."""
    try:
        Interpreter(closed)
    except Unknown as problem:
        return str(problem)
    return None


class Body:
    """A jaxpr that is run many times, the first `constants` inputs staying as they are."""

    def __init__(self, meter: Meter, closed: ClosedJaxpr, shapes: Sequence[Shape], constants: int = 0) -> None:
        graph = Graph(partial(Body, meter))
        inputs = [graph.value(shape) for shape in shapes]
        found = graph.inline(closed, inputs)
        outputs = [graph.full(value, aval) for value, aval in zip(found, closed.out_avals, strict=True)]
        steps = _needed(graph.steps, outputs)
        fixed, moving = inputs[:constants], inputs[constants:]
        early, late = _apart(steps, moving)
        computed = {value for step in late for value in step.outs} | set(moving) | set(graph.known)
        shared = [value for value in _read(late, outputs) if value not in computed]
        self.once = Steps(meter, graph, early, fixed, shared)
        self.turn = Steps(meter, graph, late, [*shared, *moving], outputs)

    def bind(self, constants: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """The function of the other inputs."""
        shared: list[Any] | None = None

        def turn(moving: Sequence[Any]) -> list[Any]:
            nonlocal shared
            if shared is None:  # not before the first turn: a loop may have none
                shared = self.once(constants)
            return self.turn([*shared, *moving])

        return turn


class Steps:
    """The outputs of some steps as a function of their inputs."""

    def __init__(
        self, meter: Meter, graph: Graph, steps: Sequence[Step], inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        self._meter, self._work = meter, sum(step.work for step in steps)
        last = {value: place for place, step in enumerate(steps) for value in step.ins}
        last.update(dict.fromkeys(outputs, len(steps)))
        constants = [value for value in _read(steps, outputs) if value in graph.known]
        slots = {value: place for place, value in enumerate([*inputs, *constants])}
        self._rest: list[Any] = [graph.known[value] for value in constants]
        self.actions: list[Action] = []
        size, free = len(slots), []
        for place, step in enumerate(steps):
            ins = [slots[value] for value in step.ins]
            free += [
                slots[value] for value in dict.fromkeys(step.ins) if last[value] == place and value not in graph.known
            ]
            for value in step.outs:
                size += not free
                slots[value] = free.pop() if free else size - 1
            free += [slots[value] for value in step.outs if value not in last]
            self.actions.append(_action(step.make(), ins, [slots[value] for value in step.outs], step.single))
        self._rest += [None] * (size - len(inputs) - len(constants))
        self._give = [slots[value] for value in outputs]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs."""
        self._meter.spend(self._work)
        slots = [*inputs, *self._rest]
        for action in self.actions:
            action(slots)
        return [slots[place] for place in self._give]


def _needed(steps: Sequence[Step], outputs: Iterable[int]) -> list[Step]:
    """The steps that the outputs need."""
    read, kept = set(outputs), []
    for step in reversed(steps):
        if not read.isdisjoint(step.outs):
            read.update(step.ins)
            kept.append(step)
    return kept[::-1]


def _apart(steps: Sequence[Step], moving: Iterable[int]) -> tuple[list[Step], list[Step]]:
    """The steps that do not depend on what moves, and those that do."""
    changing, early, late = set(moving), [], []
    for step in steps:
        if changing.isdisjoint(step.ins):
            early.append(step)
        else:
            changing.update(step.outs)
            late.append(step)
    return early, late


def _read(steps: Sequence[Step], outputs: Sequence[int]) -> list[int]:
    """The values that steps or outputs read, each once."""
    return list(dict.fromkeys([value for step in steps for value in step.ins] + list(outputs)))


def _action(function: Function, ins: Sequence[int], outs: Sequence[int], single: bool) -> Action:
    """A step on slots."""
    if not single:
        return _many(function, ins, outs)
    (out,) = outs
    if len(ins) == 1:
        return _unary(function, ins[0], out)
    if len(ins) == 2:
        return _binary(function, ins[0], ins[1], out)
    if len(ins) == 3:
        return _ternary(function, ins[0], ins[1], ins[2], out)

    def action(slots: list[Any]) -> None:
        slots[out] = function(*[slots[place] for place in ins])

    return action


def _unary(function: Function, a: int, out: int) -> Action:
    def action(slots: list[Any]) -> None:
        slots[out] = function(slots[a])

    return action


def _binary(function: Function, a: int, b: int, out: int) -> Action:
    def action(slots: list[Any]) -> None:
        slots[out] = function(slots[a], slots[b])

    return action


def _ternary(function: Function, a: int, b: int, c: int, out: int) -> Action:
    def action(slots: list[Any]) -> None:
        slots[out] = function(slots[a], slots[b], slots[c])

    return action


def _many(function: Function, ins: Sequence[int], outs: Sequence[int]) -> Action:
    def action(slots: list[Any]) -> None:
        for place, value in zip(outs, function(*[slots[place] for place in ins]), strict=True):
            slots[place] = value

    return action
