"""What the operators of expressions build: plates by union, domains by rule, a few foldings, and errors at once."""

from __future__ import annotations

import dataclasses
import functools
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...factors import domains
from ...factors.domains import Domain
from ...factors.errors import ModelError
from ...factors.factor import Operand
from . import operations as op
from .known_order import is_above
from .nodes import (
    BUILDERS,
    Apply,
    Constant,
    Expr,
    applies,
    is_data,
    over_text,
    union_plates,
    unnamed,
)
from .operations import Operation, is_countable
from .values import UserValue, convert


def wrap(value: UserValue, other: Expr) -> Expr:
    """`value` as a node beside the operand `other`: nodes pass, numbers and arrays become constants.

    An array has either only event axes (one value, the same everywhere) or all plates of `other` and then the event
    axes.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, Operand):
        return value.variable
    array = _as_array(value, other)
    if array.ndim == 0:
        return Constant(array, (), _constant_domain(array))
    plates = other.plates
    is_vector = other.domain.is_vector and array.shape[-1] == other.domain.size
    if is_vector and array.ndim in (1, 1 + len(plates)):
        return Constant(array, plates if array.ndim > 1 else (), domains.vector(array.shape[-1]))
    if array.ndim == len(plates):
        return Constant(array, plates, _constant_domain(array))
    raise ModelError(
        f"An array of shape {array.shape} does not line up with '{other}' ({other.domain}{over_text(plates)}): it "
        "needs "
        "one axis for each plate in this order, then the axes of one value. "
        "Declare the array with m.input(name, domain, plates=...) and give it as data."
    )


def _as_array(value: UserValue, other: Expr) -> np.ndarray:
    try:
        array = np.array(value)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{value!r} cannot be used with '{other}': give a number, an array or an expression."
        ) from error
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{value!r} cannot be used with '{other}': give a number, an array or an expression.")
    if np.isnan(array).any():
        raise ModelError(f"A NaN is combined with '{other}': an expression needs numbers. Replace or remove it.")
    return array if array.dtype.kind == "b" else array.astype(np.float64)


def _constant_domain(array: np.ndarray) -> Domain:
    if array.dtype.kind == "b":
        return domains.boolean
    return domains.positive if array.size and (array > 0).all() else domains.real


def apply(operation: Operation, *operands: UserValue, **options: Any) -> Apply:
    """The node of an operation on `operands`: plates by union, domain by rule; ModelError where it has none."""
    if operation.arithmetic:
        _check_finite(operation, operands)
    args = wrap_all(operands)
    plates = union_plates(*(arg.plates for arg in args))
    if "over" in options:
        plates = tuple(plate for plate in plates if plate is not options["over"])
    domains_of = [_numeric(operation, arg) for arg in args]
    domain = operation.domain(domains_of, lambda *reason: _refusal(operation, args, *reason), **options)
    return Apply(operation, args, tuple(options.items()), plates, domain)


def _check_finite(operation: Operation, operands: Iterable[UserValue]) -> None:
    """Numbers of an expression are finite; only what is compared may be infinite."""
    for value in operands:
        array = value if isinstance(value, Expr) else np.asarray(value)
        if isinstance(array, np.ndarray) and array.dtype.kind == "f" and np.isinf(array).any():
            raise ModelError(
                f"`{operation.name}` with an infinite number: an expression needs finite ones. Replace or remove it."
            )


def wrap_all(operands: Iterable[UserValue]) -> tuple[Expr, ...]:
    """All operands as nodes; arrays align with the first operand that is a node already."""
    operands = tuple(operands)
    anchor = next(operand for operand in operands if isinstance(operand, Expr))
    return tuple(wrap(operand, anchor) for operand in operands)


def _numeric(operation: Operation, arg: Expr) -> Domain:
    """Boolean data counts as the numbers 0 and 1 in arithmetic (an indicator times a coefficient)."""
    indicator = operation.arithmetic and arg.domain.is_boolean and is_data(arg) and not isinstance(arg, Constant)
    return domains.real if indicator else arg.domain


def _refusal(operation: Operation, args: tuple[Expr, ...], wanted: str, hint: str = "") -> ModelError:
    found = " and ".join(f"'{arg}' ({arg.domain})" for arg in args)
    return ModelError(f"`{operation.title or operation.name}` takes {wanted}; found {found}. {hint}".rstrip())


def is_number(value: UserValue, number: float | None = None) -> bool:
    """True for a number or a scalar constant (equal to `number`); truth values are no numbers."""
    if isinstance(value, Constant):
        value = value.value
    if isinstance(value, (Expr, bool, np.bool_)) or (
        not isinstance(value, numbers.Real) and not hasattr(value, "__array__")
    ):
        return False
    array = np.asarray(value)
    if array.ndim != 0 or array.dtype.kind not in "iuf":
        return False
    return number is None or bool(array == number)


def add(left: UserValue, right: UserValue) -> Expr:
    """left + right; adding zero gives the operand itself."""
    if is_number(right, 0) and _is_numeric_node(left):
        return left
    if is_number(left, 0) and _is_numeric_node(right):
        return right
    return apply(op.ADD, *_classes(left, right))


def subtract(left: UserValue, right: UserValue) -> Expr:
    """left - right; `x - 0` is x, `0 - x` is -x, the complement 1 - p of a probability is a probability, and so is that
    of exp(-x) for a positive x, for which exp(x) - 1 is positive; and so is x - y after a constraint that x > y."""
    if is_number(right, 0) and _is_numeric_node(left):
        return left
    if is_number(left, 0) and _is_numeric_node(right):
        return negate(right)
    node = apply(op.SUBTRACT, *_classes(left, right))
    if is_number(left, 1) and (right.domain.is_unit or _is_below_one(right)):
        return _in_unit(node)
    if is_above(*node.args):
        return dataclasses.replace(node, domain=domains.positive)
    grown = is_number(right) and _number(right) <= 1 and isinstance(left, Expr) and _is_above_one(left)
    return dataclasses.replace(node, domain=domains.positive) if grown else node


def _is_above_one(expr: Expr) -> bool:
    """Whether an expression is above one by its form: exp of what is positive."""
    expr = unnamed(expr)
    return applies(expr, op.EXP) and expr.args[0].domain.is_bounded


def _is_below_one(expr: Expr) -> bool:
    """Whether an expression lies between zero and one by its form: exp of the opposite of what is positive."""
    expr = unnamed(expr)
    return applies(expr, op.EXP) and applies(expr.args[0], op.NEGATE) and expr.args[0].args[0].domain.is_bounded


def _classes(left: UserValue, right: UserValue) -> tuple[UserValue, UserValue]:
    """The operands, a whole number beside a category as one of its classes: classes are added as numbers."""

    def class_of(value: UserValue, other: UserValue) -> UserValue:
        beside = isinstance(other, Expr) and other.domain.is_category and is_number(value)
        if not beside or _number(value) < 0 or _number(value) != int(_number(value)):
            return value
        number = int(_number(value))
        return Constant(np.array(number, np.int32), (), domains.category(number + 1))

    return class_of(left, right), class_of(right, left)


def multiply(left: UserValue, right: UserValue) -> Expr:
    """left * right; multiplying by one gives the operand, shrinking a probability gives a probability, x * x is x^2."""
    if is_number(right, 1) and _is_numeric_node(left):
        return left
    if is_number(left, 1) and _is_numeric_node(right):
        return right
    if left is right and isinstance(left, Expr) and (left.domain.is_real or left.domain.is_positive):
        return power(left, 2)  # as a product of two factors it would have the moments of independent ones
    node = apply(op.MULTIPLY, left, right)
    factor, other = (left, right) if is_number(left) else (right, left)
    shrinks = is_number(factor) and isinstance(other, Expr) and other.domain.is_unit and 0 <= _number(factor) <= 1
    return _in_unit(node) if shrinks else node


def divide(left: UserValue, right: UserValue) -> Expr:
    """left / right; `1 / exp(g)` becomes exp(-g)."""
    if not isinstance(right, Expr) and np.any(np.asarray(right) == 0):
        raise ModelError(f"'{left}' is divided by zero. Give a divisor without zeros.")
    if is_number(right, 1) and _is_numeric_node(left):
        return left
    if is_number(left, 1) and applies(right, op.EXP):
        return apply(op.EXP, negate(right.args[0]))
    return apply(op.DIVIDE, left, right)


def matmul(left: UserValue, right: UserValue) -> Expr:
    """left @ right: a matrix (an array, or an input) times a vector, else the inner product of two vectors."""
    if isinstance(right, Expr) and right.domain.is_vector:
        if isinstance(left, Expr) and (left.domain.is_matrix or left.domain.is_posdef):
            return apply(op.MATVEC, left, right)
        if not isinstance(left, Expr) and np.ndim(left) == 2 and np.shape(left)[1] == right.domain.size:
            matrix = Constant(_as_array(left, right), (), domains.matrix(*np.shape(left)))
            return apply(op.MATVEC, matrix, right)
    return apply(op.DOT, left, right)


def negate(operand: Expr) -> Expr:
    """-operand; a double negation cancels."""
    if applies(operand, op.NEGATE):
        return operand.args[0]
    return apply(op.NEGATE, operand)


def invert(operand: Expr) -> Expr:
    """~operand; a double negation cancels."""
    if applies(operand, op.NOT):
        return operand.args[0]
    return apply(op.NOT, operand)


def power(base: Expr, exponent: UserValue) -> Expr:
    """base ** exponent for a fixed number, a whole one where the base may be negative.

    `exp(g) ** n` becomes exp(n * g), `x ** -1` becomes 1 / x, and a random exponent that of exp(exponent * log(base)).
    """
    if base.domain.is_posdef and is_number(exponent, -1):
        return apply(op.INVERSE, base)
    if not is_number(exponent):
        if not _is_numeric_node(exponent) or not base.domain.is_bounded:
            raise ModelError(
                f"'{base}' ** '{exponent}': the exponent must be a fixed number, or the base above zero. Write "
                "cv.exp(exponent * cv.log(base)) with a positive base."
            )
        return apply(op.EXP, multiply(exponent, apply(op.LOG, base)))
    number = _number(exponent)
    if not np.isfinite(number) or number == 0:
        raise ModelError(f"'{base}' ** {exponent}: the exponent must be finite, and not zero.")
    if applies(base, op.EXP):
        return apply(op.EXP, multiply(number, base.args[0]))
    if number != int(number):
        return _fractional_power(base, number)
    whole = int(number)
    if whole in (1, -1):
        return base if whole == 1 else divide(1.0, base)
    if applies(base, op.POWER) and base.option("exponent") != int(base.option("exponent")):
        return power(base.args[0], base.option("exponent") * whole)
    return apply(op.POWER, base, exponent=whole)


def _fractional_power(base: Expr, exponent: float) -> Expr:
    if not is_never_negative(base):
        raise ModelError(
            f"'{base}' ** {exponent:g}: '{base}' is {base.domain} and may be negative, where a fractional power has no "
            "value. Use a positive variable, declare data as cv.positive, or take cv.abs(...) or an even power of it."
        )
    if applies(base, op.POWER) and base.args[0].domain.is_bounded:
        return power(base.args[0], base.option("exponent") * exponent)
    return apply(op.POWER, base, exponent=exponent)


def is_never_negative(expr: Expr) -> bool:
    """Whether an expression is at least zero by its form: counts, positive numbers, even powers, and sums of these."""
    expr = unnamed(expr)
    if expr.domain.is_bounded or expr.domain.is_count or expr.domain.is_boolean:
        return True
    if isinstance(expr, Constant):
        return bool((expr.value >= 0).all())
    if applies(expr, op.POWER):
        return expr.option("exponent") % 2 == 0
    if applies(expr, op.DOT):
        return expr.args[0] is expr.args[1]
    if applies(expr, op.WHERE):
        return all(map(is_never_negative, expr.args[1:]))
    return applies(expr, *_KEEPS_SIGN) and all(map(is_never_negative, expr.args))


_KEEPS_SIGN = (op.ADD, op.MULTIPLY, op.DIVIDE, op.SUM)


def number_to(base: UserValue, exponent: Expr) -> Expr:
    """base ** exponent of a positive number and an expression."""
    if not is_number(base) or not _number(base) > 0:
        raise ModelError(
            f"{base!r} ** '{exponent}': the base must be a positive number, or an expression. Write "
            "cv.exp(exponent * cv.log(base)) with a positive base."
        )
    return apply(op.EXP, multiply(float(np.log(_number(base))), exponent))


def absolute(operand: Expr) -> Expr:
    """|operand| as the larger of it and its opposite: above zero but with probability zero."""
    if is_never_negative(operand):
        return operand
    return dataclasses.replace(apply(op.MAX, operand, negate(operand)), domain=domains.positive)


def at_least(left: UserValue, right: UserValue) -> Expr:
    """left >= right: the same as > for random real numbers, which are equal with probability zero; not right > left for
    counts, classes and data.
    """
    operands = [operand.domain for operand in (left, right) if isinstance(operand, Expr)]
    data = all(is_data(operand) for operand in (left, right) if isinstance(operand, Expr))
    if data or all(operand.is_count for operand in operands) or any(operand.is_category for operand in operands):
        return apply(op.NOT, apply(op.GREATER, right, left))
    return apply(op.GREATER, left, right)


def equal(left: Expr, right: UserValue) -> Expr:
    """left == right for discrete expressions; the number on the right is a class, a count or a truth value."""
    if is_number(right) and not isinstance(right, Expr) and is_countable(left.domain):
        right = _discrete_constant(left, _number(right))
    return apply(op.EQUAL, left, right)


def _discrete_constant(left: Expr, number: float) -> Constant:
    size = 2 if left.domain.is_boolean else left.domain.size
    top = size if isinstance(size, int) else np.inf
    if number != int(number) or not 0 <= number < top:
        raise ModelError(f"'{left}' ({left.domain}) is compared with {number:g}, which it can never equal.")
    return Constant(convert(np.array(number), left.domain.kind), (), left.domain)


def coordinate(vector: Expr, position: int) -> Expr:
    """One coordinate of a vector: its inner product with a unit vector."""
    size = vector.domain.size
    unit = Constant(np.eye(size)[position], (), domains.vector(size))
    return Apply(op.DOT, (vector, unit), (), vector.plates, domains.real)


def _is_numeric_node(value: UserValue) -> bool:
    return isinstance(value, Expr) and value.domain.is_numeric


def _number(value: UserValue) -> float:
    """The value of what `is_number`."""
    return float(value.value if isinstance(value, Constant) else value)


def _in_unit(node: Expr) -> Expr:
    return dataclasses.replace(node, domain=domains.unit)  # type: ignore[type-var]


BUILDERS |= {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "matmul": matmul,
    "power": power,
    "number_to": number_to,
    "absolute": absolute,
    "negate": negate,
    "invert": invert,
    "at_least": at_least,
    "equal": equal,
    **{found.name: functools.partial(apply, found) for found in (op.GREATER, op.NOT, op.AND, op.OR, op.XOR)},
}
