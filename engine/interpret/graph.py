"""A jaxpr flattened to steps over numbered values.

Calls are put in place of their equation, constants are computed once, the same equation on the same values is one step.

A value may be held smaller than it is, with axes of length one, or none, where it only repeats: NumPy broadcasts in
arithmetic, so that a number that a jaxpr spreads over a plate costs as much as the number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from . import rules
from .calls import INLINED, branch
from .equation import Equation, Form, Shape, Unknown, is_jaxpr, is_key, type_of
from .random import packed
from .work import of_step

LARGEST = 2**16  # elements of a constant that is computed before the run


class Step(NamedTuple):
    """An equation on values."""

    equation: Equation
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    work: float


class Graph:
    """Steps that compute values from inputs and constants."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []  # of the arrays that hold the values
        self.known: dict[int, Any] = {}
        self.steps: list[Step] = []
        self._seen: dict[Any, tuple[int, ...]] = {}
        self._constants: dict[Any, int] = {}
        self._forms: dict[Form, Form] = {}

    def value(self, shape: Shape) -> int:
        """A new value."""
        self.shapes.append(shape)
        return len(self.shapes) - 1

    def constant(self, value: Any) -> int:
        """A known value."""
        number = self.value(np.shape(value))
        self.known[number] = value
        return number

    def full(self, value: int, form: Form) -> int:
        """The value held by an array of its own shape."""
        return value if self.shapes[value] == form.shape else self._moved("spread", value, form)

    def form(self, aval: Any) -> Form:
        """That of an abstract value: one object for all that are equal."""
        found = Form(aval.shape, type_of(aval))
        return self._forms.setdefault(found, found)

    def _moved(self, name: str, value: int, form: Form) -> int:
        """The same elements, in another form."""
        held = self.shapes[value]
        equation = Equation(name, {}, (Form(held, form.type),), (form,), (held,), True)
        return self._add((name, form.shape, value), equation, (value,), (form.shape,))[0]

    def _add(self, key: Any, equation: Equation, ins: tuple[int, ...], shapes: Sequence[Shape]) -> tuple[int, ...]:
        """The values of an equation: those of an equal one, if there is one. One without key has no equal."""
        if key is not None and key in self._seen:
            return self._seen[key]
        outs = tuple(map(self.value, shapes))
        if key is not None:
            self._seen[key] = outs
            if all(value in self.known for value in ins) and sum(map(math.prod, shapes)) <= LARGEST:
                found = rules.simple(equation)(*(self.known[value] for value in ins))
                self.known.update(zip(outs, [found] if equation.single else found, strict=True))
                return outs
        work = of_step(key[0] if key else "", [self.shapes[value] for value in ins], shapes)
        self.steps.append(Step(equation, ins, outs, work))
        return outs

    def inline(self, closed: Any, ins: Sequence[int]) -> list[int]:
        """The values of the outputs of a jaxpr, which may be open where it has no constants."""
        jaxpr, constants = getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())
        values = dict(zip(jaxpr.constvars, map(self._held, constants), strict=True))
        values.update(zip(jaxpr.invars, ins, strict=True))

        def read(atom: Any) -> int:
            return self._literal(atom) if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            outs = self._equation(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _held(self, constant: Any) -> int:
        """A constant of a closed jaxpr, which keeps it alive and so its identity."""
        if id(constant) not in self._constants:
            array = packed(jax.random.key_data(constant)) if is_key(constant) else np.asarray(constant)
            self._constants[id(constant)] = self.constant(array[()])
        return self._constants[id(constant)]

    def _literal(self, atom: Any) -> int:
        value = np.asarray(atom.val, type_of(atom.aval))
        key = value.dtype, value.shape, value.tobytes()
        if key not in self._constants:
            self._constants[key] = self.constant(value[()])
        return self._constants[key]

    def _equation(self, equation: Any, ins: list[int]) -> Sequence[int]:
        name, params = equation.primitive.name, equation.params
        if equation.effects:
            raise Unknown(f"{name}, which has effects beside its result")
        if name in INLINED:
            closed, places = INLINED[name](equation)
            return self.inline(closed, [ins[place] for place in places])
        if name in rules.SAME or (name == "convert_element_type" and _same_type(equation)):
            return ins
        if name == "cond" and ins[0] in self.known:
            return self.inline(branch(params, self.known[ins[0]]), ins[1:])
        if name == "broadcast_in_dim":
            return [self._broadcast(ins[0], params, self.form(equation.outvars[0].aval))]
        if name in rules.MOVES and not self.shapes[ins[0]]:
            return [ins[0]] * len(equation.outvars)  # wherever a number that repeats is moved to, it is the same
        return self._ruled(equation, ins)

    def _ruled(self, equation: Any, ins: list[int]) -> Sequence[int]:
        """The values of an equation that has a rule."""
        name, params = equation.primitive.name, equation.params
        outs = tuple(self.form(variable.aval) for variable in equation.outvars)
        elementwise, controls = name in rules.ELEMENTWISE, name in rules.CONTROL
        if elementwise:
            held = len(ins)
        elif controls:
            held = len(ins) if (found := rules.CONTROL[name].fixed(params)) is None else found
        elif name in rules.ARRAYS:
            held = 0
        else:
            raise Unknown(f"the primitive {name}")
        forms = tuple(self.form(variable.aval) for variable in equation.invars)
        ins = ins[:held] + [self.full(*pair) for pair in zip(ins[held:], forms[held:], strict=True)]
        shapes = tuple(self.shapes[value] for value in ins)
        plain = params if controls else {word: param for word, param in params.items() if not is_jaxpr(param)}
        own = Equation(name, plain, forms, outs, shapes, not equation.primitive.multiple_results)
        key = None if controls else _key(name, params, ins)
        shaped = [np.broadcast_shapes(*shapes)] if elementwise else [form.shape for form in outs]
        return self._add(key, own, tuple(ins), shaped)

    def _broadcast(self, value: int, params: Any, out: Form) -> int:
        """The same array with its axes where NumPy's broadcasting looks for them."""
        places = params["broadcast_dimensions"]
        held = self.shapes[value]
        axes = [1] * len(out.shape)
        for place, size in zip(places[len(places) - len(held) :], held, strict=True):
            axes[place] = size
        while axes and axes[0] == 1:
            axes.pop(0)
        target = tuple(axes)
        return value if held == target else self._moved("pick", value, Form(target, out.type))


def _same_type(equation: Any) -> bool:
    return equation.invars[0].aval.dtype == equation.outvars[0].aval.dtype


def _key(name: str, params: Any, ins: Sequence[int]) -> Any:
    """What equal steps have in common; None where that cannot be told."""
    key = name, tuple(params.items()), tuple(ins)
    try:
        hash(key)
    except TypeError:
        return None
    return key
