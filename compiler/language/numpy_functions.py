"""NumPy's functions of expressions: np.sqrt(x) is cv.sqrt(x), and an array on the left of an operator is an operand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...factors.errors import ModelError
from . import functions
from .nodes import BUILDERS, Expr
from .values import UserValue


def _reflected(name: str) -> Callable[..., Expr]:
    """A builder that takes its operands in the order of the operator."""
    return lambda *operands: BUILDERS[name](*operands)


def _greater_or_equal(left: UserValue, right: UserValue) -> Expr:
    return BUILDERS["at_least"](left, right)


def _equal(left: UserValue, right: UserValue) -> Expr:
    """Equality is looked up on the side of the expression."""
    return BUILDERS["equal"](*((left, right) if isinstance(left, Expr) else (right, left)))


def _power(base: UserValue, exponent: UserValue) -> Expr:
    return BUILDERS["power" if isinstance(base, Expr) else "number_to"](base, exponent)


UFUNCS: Mapping[np.ufunc, Callable[..., Expr]] = {
    np.add: _reflected("add"),
    np.subtract: _reflected("subtract"),
    np.multiply: _reflected("multiply"),
    np.true_divide: _reflected("divide"),
    np.matmul: _reflected("matmul"),
    np.power: _power,
    np.float_power: _power,
    np.negative: _reflected("negate"),
    np.positive: lambda x: x,
    np.absolute: functions.abs,
    np.fabs: functions.abs,
    np.sqrt: functions.sqrt,
    np.square: lambda x: x**2,
    np.reciprocal: lambda x: 1.0 / x,
    np.exp: functions.exp,
    np.exp2: lambda x: 2.0**x,
    np.expm1: lambda x: functions.exp(x) - 1.0,
    np.log: functions.log,
    np.log2: lambda x: functions.log(x) / np.log(2.0),
    np.log10: lambda x: functions.log(x) / np.log(10.0),
    np.log1p: lambda x: functions.log(1.0 + x),
    np.tanh: functions.tanh,
    np.sin: functions.sin,
    np.cos: functions.cos,
    np.maximum: functions.max,
    np.minimum: functions.min,
    np.greater: _reflected("greater"),
    np.less: lambda left, right: BUILDERS["greater"](right, left),
    np.greater_equal: _greater_or_equal,
    np.less_equal: lambda left, right: _greater_or_equal(right, left),
    np.equal: _equal,
    np.not_equal: lambda left, right: ~_equal(left, right),
    np.logical_and: _reflected("and"),
    np.bitwise_and: _reflected("and"),
    np.logical_or: _reflected("or"),
    np.bitwise_or: _reflected("or"),
    np.logical_xor: _reflected("xor"),
    np.bitwise_xor: _reflected("xor"),
    np.logical_not: _reflected("invert"),
    np.invert: _reflected("invert"),
}
"""Of one element of each operand."""
ARRAY_FUNCTIONS: Mapping[Callable, Callable[..., Expr]] = {
    np.where: functions.where,
    np.dot: functions.dot,
    np.inner: functions.dot,
    np.vdot: functions.dot,
}
_INSTEAD: Mapping[Callable, str] = {
    np.sum: "cv.sum(x, over=plate)",
    np.mean: "cv.sum(x, over=plate) / size",
    np.max: "cv.max(a, b) of two numbers",
    np.min: "cv.min(a, b) of two numbers",
    np.all: "cv.all(x, over=plate)",
    np.any: "cv.any(x, over=plate)",
    np.stack: "cv.stack(a, b)",
    np.concatenate: "cv.stack(a, b)",
}
"""What does the same along a plate, which NumPy's axes do not name."""


def of_numpy(ufunc: np.ufunc, method: str, operands: tuple, options: Mapping) -> Expr:
    """The expression that a universal function of NumPy builds; ModelError where the language has none."""
    if method == "__call__" and not options and ufunc in UFUNCS:
        return UFUNCS[ufunc](*operands)
    call = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    instead = _INSTEAD[np.sum] if method != "__call__" else f"One of np.{', np.'.join(sorted(_names()))}"
    raise ModelError(
        f"{call} of {_shown(operands)} is not in the language, whose expressions the compiler must understand. "
        f"{instead} is; any other density is a factor of one's own: cv.factor(...)."
    )


def of_numpy_arrays(function: Callable, args: tuple, options: Mapping) -> Expr:
    """The same of a function of whole arrays."""
    if not options and function in ARRAY_FUNCTIONS:
        return ARRAY_FUNCTIONS[function](*args)
    instead = f"Write {_INSTEAD[function]}." if function in _INSTEAD else "Write it with the functions of `cv`."
    raise ModelError(
        f"np.{getattr(function, '__name__', function)} of {_shown(args)} works on arrays, and an expression is none "
        f"while the model is declared: its axes are plates. {instead}"
    )


def _names() -> set[str]:
    return {"sqrt", "exp", "log", "tanh", "sin", "cos", "abs", "square", "maximum", "minimum"}


def _shown(operands: tuple) -> str:
    return ", ".join(f"'{operand}'" for operand in operands if isinstance(operand, Expr)) or "expressions"


BUILDERS |= {"of_numpy": of_numpy, "of_numpy_arrays": of_numpy_arrays}
