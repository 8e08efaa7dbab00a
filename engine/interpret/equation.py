"""An equation of a jaxpr as the rules see it, and what a rule says of one that it cannot serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]
Function = Callable[..., Any]
HALF = np.dtype(np.float16)


class Unknown(Exception):
    """A jaxpr that NumPy cannot run as XLA would: the message says why. The caller compiles it."""


class Form(NamedTuple):
    """Shape and type of an array."""

    shape: Shape
    type: np.dtype


class Equation(NamedTuple):
    """A primitive, its parameters, and the forms of what goes in and comes out: plain data, which may be kept."""

    name: str
    params: Mapping[str, Any]
    ins: tuple[Form, ...]
    outs: tuple[Form, ...]
    shapes: tuple[Shape, ...]  # of the arrays that really come in: see `graph`
    single: bool  # whether the function returns one value, not a tuple

    @property
    def type(self) -> np.dtype:
        """That of the first input."""
        return self.ins[0].type

    @property
    def out_type(self) -> np.dtype:
        """That of the first output."""
        return self.outs[0].type

    @property
    def scalar(self) -> bool:
        """Whether all that comes in are scalars: Python's own operators are the fastest on them."""
        return not any(self.shapes)


# A rule makes, once for each equation, the function of arrays that computes it.
Rule = Callable[[Equation], Function]


def inside(equation: Any) -> list[Any]:
    """The jaxprs inside an equation of a jaxpr, closed or not: the bodies of a loop, the branches of a choice."""
    found = [part for value in equation.params.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in found if is_jaxpr(part)]


def is_jaxpr(part: Any) -> bool:
    """Whether a parameter of an equation is a jaxpr, closed or not."""
    return hasattr(part, "eqns")


def is_key(aval: Any) -> bool:
    """Whether a value is an array of random keys."""
    return not isinstance(aval.dtype, np.dtype)


def type_of(aval: Any) -> np.dtype:
    """The type of the array that stands for a value: a random key is one whole number of 64 bits."""
    if is_key(aval):
        if str(aval.dtype) != "key<fry>":
            raise Unknown(f"random keys of type {aval.dtype}")
        return np.dtype(np.uint64)
    if aval.dtype.kind not in "biuf" or aval.dtype == HALF:
        raise Unknown(f"numbers of type {aval.dtype}")
    return aval.dtype


def pick(source: Shape, target: Shape) -> Function | None:
    """What gives an array of shape `source` the shape `target` of as many elements; None where that is nothing."""
    if source == target:
        return None
    if not target:
        first = (0,) * len(source)
        return lambda x: x[first]  # a scalar, not an array without axes: those are slow
    return lambda x: x.reshape(target)
