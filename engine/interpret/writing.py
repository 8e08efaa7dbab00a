"""A jaxpr written down: which of its steps are needed, in which slots their values are, and what is computed when.

What nothing reads is not written. A slot is used again as soon as its value has been read for the last time, so that
no array outlives its use for long. Of a loop's body, what depends on nothing that changes is written apart, to be
computed once for a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import rules
from .equation import Equation, Form, Shape, type_of
from .graph import Graph, Step
from .listing import Listing, Part, Program

if TYPE_CHECKING:  # loading it takes longer than writing
    from jax.extend.core import ClosedJaxpr


def written(closed: ClosedJaxpr) -> Program:
    """A jaxpr written down. Raises Unknown where it holds something that has no rule."""
    ins, outs = ([Form(aval.shape, type_of(aval)) for aval in avals] for avals in (closed.in_avals, closed.out_avals))
    with np.errstate(all="ignore"):  # constants are computed here
        listing = _listing(closed, [form.shape for form in ins])
    return Program(tuple(form.type for form in ins), listing, tuple(form.type for form in outs))


def _listing(closed: ClosedJaxpr, shapes: Sequence[Shape], constants: int = 0) -> Listing:
    """For inputs held by arrays of these shapes, the first `constants` of which stay as they are."""
    graph = Graph()
    inputs = [graph.value(shape) for shape in shapes]
    found = graph.inline(closed, inputs)
    outputs = [graph.full(value, graph.form(aval)) for value, aval in zip(found, closed.out_avals, strict=True)]
    steps = _needed(graph.steps, outputs)
    fixed, moving = inputs[:constants], inputs[constants:]
    early, late = _apart(steps, moving)
    computed = {value for step in late for value in step.outs} | set(moving) | set(graph.known)
    shared = [value for value in _read(late, outputs) if value not in computed]
    return Listing(_part(graph, early, fixed, shared), _part(graph, late, [*shared, *moving], outputs))


def _part(graph: Graph, steps: Sequence[Step], inputs: Sequence[int], outputs: Sequence[int]) -> Part:
    """The outputs of some steps as a function of their inputs."""
    last = {value: place for place, step in enumerate(steps) for value in step.ins}
    last.update(dict.fromkeys(outputs, len(steps)))
    constants = [value for value in _read(steps, outputs) if value in graph.known]
    slots = {value: place for place, value in enumerate([*inputs, *constants])}
    equations, listed = _Once(), []
    size, free = len(slots), []
    for place, step in enumerate(steps):
        ins = tuple([slots[value] for value in step.ins])
        free += [slots[value] for value in dict.fromkeys(step.ins) if last[value] == place and value not in graph.known]
        for value in step.outs:
            size += not free
            slots[value] = free.pop() if free else size - 1
        free += [slots[value] for value in step.outs if value not in last]
        listed.append((equations.place(step.equation), ins, tuple([slots[value] for value in step.outs])))
    rest = [graph.known[value] for value in constants] + [None] * (size - len(inputs) - len(constants))
    return Part(
        sum(step.work for step in steps),
        tuple(equations.found),
        tuple(listed),
        tuple(rest),
        tuple(slots[value] for value in outputs),
    )


class _Once:
    """Equations, equal ones once: what computes one computes the other."""

    def __init__(self) -> None:
        self.found: list[Equation] = []
        self._places: dict[Any, int] = {}

    def place(self, equation: Equation) -> int:
        if equation.name in rules.CONTROL:
            params = rules.CONTROL[equation.name].written(equation, _listing)
            return self._new(equation._replace(params=params))
        key = equation.name, tuple(equation.params.items()), equation.ins, equation.outs, equation.shapes
        try:
            found = self._places.get(key)
        except TypeError:  # parameters that cannot be compared
            return self._new(equation)
        if found is None:
            found = self._places[key] = self._new(equation)
        return found

    def _new(self, equation: Equation) -> int:
        self.found.append(equation)
        return len(self.found) - 1


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
