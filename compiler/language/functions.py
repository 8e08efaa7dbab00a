"""Functions of expressions: inner products, links and sums, beside the operators of the expressions themselves."""

from __future__ import annotations

import builtins
import dataclasses
from typing import Any

import numpy as np

from ...factors import domains
from ...factors.calls import call_checked
from ...factors.errors import ModelError
from ...factors.factor import Operand
from ...factors.numbers import ValueProblem, numeric_array
from . import operations as op
from .indexing import at_places, pushed
from .nodes import Apply, Constant, Expr, Plate, Position, is_data, union_plates
from .operations import Operation, classes
from .operators import absolute, apply, coordinate, matmul, power
from .values import UserValue


@call_checked
def dot(left: UserValue, right: UserValue) -> Expr:
    """The inner product sum_i left_i right_i of two vectors, also written `left @ right`.

    `left`, `right`: expressions of domain vector(d); one may be an array of shape (d,) or (*plates of the other, d).
    Returns a real expression whose plates are the union of theirs. ModelError when one is no vector, the dimensions
    differ, or none is an expression.
    """
    return _applied(op.DOT, left, right)


@call_checked
def exp(value: UserValue) -> Expr:
    """The exponential e^value.

    `value`: a numeric expression. Returns a positive expression over its plates; of a Gaussian number it is log-normal,
    with moments in closed form. ModelError when `value` is no number, or no expression.
    """
    return _applied(op.EXP, value)


@call_checked
def log(value: UserValue) -> Expr:
    """The natural logarithm log(value).

    `value`: an expression of domain positive or unit. Returns a real expression over its plates. ModelError when
    `value` may be zero or negative, or is no expression.
    """
    return _applied(op.LOG, value)


@call_checked
def sqrt(value: UserValue) -> Expr:
    """The square root of a number that is never negative, also written `value ** 0.5`.

    `value`: an expression of domain positive, unit or count, an even power, or sums, products and quotients of such.
    Returns a positive expression over its plates. ModelError when `value` may be negative, or is no expression.
    """
    (value,) = _with_node("sqrt", value)
    return power(value, 0.5)


@call_checked
def abs(value: UserValue) -> Expr:
    """The absolute value |value|, the larger of a number and its opposite, also written `abs(value)`.

    `value`: a numeric expression. Returns a positive expression over its plates. ModelError when `value` is no number,
    or no expression. Source: clark1961greatest.
    """
    (value,) = _with_node("abs", value)
    return absolute(value)


@call_checked
def tanh(value: UserValue) -> Expr:
    """The hyperbolic tangent, between -1 and 1.

    `value`: a numeric expression. Returns a real expression over its plates. ModelError when `value` is no number, or
    no expression.
    """
    return _applied(op.TANH, value)


@call_checked
def sin(value: UserValue) -> Expr:
    """The sine of an angle in radians.

    `value`: a numeric expression. Returns a real expression over its plates. ModelError when `value` is no number, or
    no expression.
    """
    return _applied(op.SIN, value)


@call_checked
def cos(value: UserValue) -> Expr:
    """The cosine of an angle in radians.

    `value`: a numeric expression. Returns a real expression over its plates. ModelError when `value` is no number, or
    no expression.
    """
    return _applied(op.COS, value)


@call_checked
def where(condition: UserValue, when_true: UserValue, when_false: UserValue) -> Expr:
    """`when_true` where a condition holds, else `when_false`.

    `condition`: a boolean expression, or an array of truth values. `when_true`, `when_false`: numeric expressions, or
    numbers; one of all three is an expression. Returns an expression over the union of their plates, positive where
    both numbers are. ModelError when the condition is not boolean, one of the others is no number, or none is an
    expression.
    """
    condition, *sides = _with_node("where", condition, when_true, when_false)
    if isinstance(condition, Expr) and is_data(condition) and condition.domain.is_boolean:
        sides = [_guarded(side, condition, chosen) for side, chosen in zip(sides, (True, False), strict=True)]
    return apply(op.WHERE, condition, *sides)


def _guarded(side: UserValue, condition: Expr, chosen: bool) -> UserValue:
    """What data choose, with divisors of one where it is not chosen: there data may be zero."""
    if not isinstance(side, Apply) or is_data(side):
        return side
    args = tuple(_guarded(arg, condition, chosen) for arg in side.args)
    if side.operation is op.DIVIDE and is_data(args[1]) and not isinstance(args[1], Constant):
        below = (args[1], 1.0) if chosen else (1.0, args[1])
        args = args[0], apply(op.WHERE, condition, *below)
    if builtins.all(new is old for new, old in zip(args, side.args, strict=True)):
        return side
    plates = union_plates(side.plates, *(arg.plates for arg in args if side.over is None))
    return dataclasses.replace(side, args=args, plates=plates)


@call_checked
def logistic(value: UserValue) -> Expr:
    """The logistic function 1 / (1 + exp(-value)): a probability whose log odds are `value`.

    `value`: a numeric expression. Returns an expression of domain unit over its plates. ModelError when `value` is no
    number, or no expression. Source: jaakkola1996, knowles2011ncvmp.
    """
    return _applied(op.LOGISTIC, value)


@call_checked
def probit(value: UserValue, over: Plate | None = None) -> Expr:
    """The standard normal distribution function of a number, P(e < value) with e ~ N(0, 1): a probability.

    `value`: a numeric expression. Returns an expression of domain unit over its plates. With `over`, one of these
    plates, it is the multinomial probit: an expression of domain simplex(over) without that plate, whose entries are
    P(value_k + e_k > value_j + e_j for all j), the e independent N(0, 1). ModelError when `value` is no number, no
    expression, or has no such plate. Source: girolami2006multinomial.
    """
    if over is None:
        return _applied(op.PROBIT, value)
    return _applied_over(op.MULTINOMIAL_PROBIT, value, over)


@call_checked
def softmax(value: UserValue, over: Plate) -> Expr:
    """The softmax exp(value_k) / sum_l exp(value_l): a probability vector over the elements of a plate.

    `value`: a numeric expression that has the plate `over`. Returns an expression of domain simplex(over) without that
    plate. ModelError when `value` is no number, no expression, or has no such plate. Source: knowles2011ncvmp,
    blei2007correlated.
    """
    return _applied_over(op.SOFTMAX, value, over)


@call_checked
def cumprod(value: UserValue, over: Plate) -> Expr:
    """Products of probabilities along a plate, from its first element: value_1, value_1 value_2, ...

    `value`: an expression of domain unit that has the plate `over`, such as sticks, independent variables of `beta`
    terms. Returns an expression of domain unit over the same plates: the probability that a row passes all sticks up to
    each, of which `bernoulli` makes booleans whose probabilities decrease along the plate. ModelError when `value` is
    no probability, no expression, or has no such plate. Source: teh2007stick, doshivelez2009variational.
    """
    found = _applied_over(op.CUMPROD, value, over)
    return dataclasses.replace(found, plates=found.args[0].plates)


@call_checked
def sum(value: UserValue, over: Plate | None = None, by: UserValue = None) -> Expr:
    """The sum of an expression over one of its plates, or over the members of groups; of booleans the number true.

    `value`: a numeric or vector expression, or a random boolean or category, that has the plate `over`. Returns an
    expression of the same domain (positive for probabilities, real for sparse numbers and boolean data) without that
    plate; of random booleans and categories, for which the plate must have a declared size, a category with as many
    classes as the sum has values. With `by`, an input of domain index(groups) over a plate of `value`, the sum of
    those numbers of which it names the same group, on the plate of the groups in place of that one; groups may have any
    number of members. ModelError when `value` cannot be added, is no expression, or has no such plate.
    """
    if by is not None:
        (value,) = _with_node("sum", value)
        if over is not None:
            raise ModelError(
                f"`sum` of '{value}' over a plate and by groups. Give one of over=plate and by=index data."
            )
        value, over = at_places(value, by)
        return apply(op.SUM, value, over=over)
    if isinstance(value, Expr) and value.domain.is_discrete and not is_data(value):
        return _counted(value, over)
    return _applied_over(op.SUM, value, over)


@call_checked
def max(left: UserValue, right: UserValue = None, over: Plate | None = None) -> Expr:
    """The larger of two numbers, max(left, right), or the largest over a plate, max(x, over=plate).

    `left`, `right`: numeric expressions; one may be a finite number or an array with an axis for each plate of the
    other. Returns a real expression whose plates are the union of theirs. With `over`, a plate of declared size that
    the single value has, without that plate; |x| is `max(x, -x)`. Under EP by quadrature, under VMP by the mean and
    variance of the larger of two Gaussians. ModelError when one is no number, none is an expression, or the value has
    no such plate. Source: clark1961greatest.
    """
    if over is None:
        return _applied(op.MAX, left, right)
    (value,) = _with_node("max", left)
    if right is not None:
        raise ModelError(f"`max` of '{value}' over a plate takes a single value; found two. Give max(a, b) or over=.")
    _check_over("max", value, over)
    if over.size is None:
        raise ModelError(
            f"`max` over plate '{over.name}' compares as many numbers as it has. Give the plate a size: "
            f"m.plate('{over.name}', 8)."
        )
    values = [pushed(value, Position(i, (), domains.index(over), str(i)), over) for i in range(over.size)]
    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [pair[0] if len(pair) == 1 else apply(op.MAX, *pair) for pair in pairs]
    return values[0]


@call_checked
def min(left: UserValue, right: UserValue = None, over: Plate | None = None) -> Expr:
    """The smaller of two numbers, min(left, right) = -max(-left, -right), or the smallest over a plate.

    `left`, `right`, `over`: arguments and errors as for `max`.
    """
    _with_node("min", left, right)
    left, right = (value.variable if isinstance(value, Operand) else value for value in (left, right))
    return -max(-left, None if right is None else -right, over)


@call_checked
def stack(*values: UserValue, over: Plate | None = None) -> Expr:
    """The vector of the given numbers, in this order.

    `values`: numeric expressions; some may be finite numbers. Returns an expression of domain vector(len(values)) whose
    plates are the union of theirs. With `over`, a plate of declared size d that the single value has: its elements
    along that plate, of domain vector(d), without the plate. ModelError when a value is no number, none is an
    expression, or the value has no such plate.
    """
    values = _with_node("stack", *values)
    if over is None:
        return apply(op.STACK, *values)
    if len(values) != 1:
        raise ModelError(f"`stack` over a plate takes a single value; found {len(values)}. Stack them without `over=`.")
    _check_over("stack", values[0], over)
    if over.size is None:
        raise ModelError(
            f"`stack` over plate '{over.name}' makes a vector of unknown dimension. Give the plate a size: "
            f"m.plate('{over.name}', 8)."
        )
    return apply(op.STACK, *values, over=over)


@call_checked
def covariance(scales: UserValue, correlations: UserValue) -> Expr:
    """The covariance matrix of effects with these standard deviations and correlations.

    `scales`: d positive numbers or expressions, as a list, an array or a vector expression. `correlations`: of two
    effects one number or variable in (-1, 1), as of `cv.lkj(1.0)`; of more d (d - 1) / 2 partial correlations in the
    order (1, 0), (2, 0), (2, 1), (3, 0), ..., those of `cv.lkj`, as a list or a vector expression. Random ones are
    single variables, which are integrated, not the elements of a plate. Returns an expression of domain posdef(d) for
    `cv.vector_gaussian(mean, covariance=...)`. ModelError where the numbers of both do not belong together, none is an
    expression, or random ones are on a plate. Source:
    lewandowski2009generating.
    """
    listed = (part for side in (scales, correlations) for part in (side if isinstance(side, (list, tuple)) else [side]))
    _with_node("covariance", *listed)
    vectors = _vector_of(_as_nodes(scales)), _vector_of(_as_nodes(correlations))
    for name, vector in zip(("scales", "correlations"), vectors, strict=True):
        _check_single(name, vector)
    return apply(op.COVARIANCE, *vectors)


def _as_nodes(value: UserValue) -> UserValue:
    """The same with the variables of the terms in it."""
    if isinstance(value, (list, tuple)):
        return [_as_nodes(part) for part in value]
    return value.variable if isinstance(value, Operand) else value


def _check_single(name: str, vector: UserValue) -> None:
    """Refuses random elements of a plate: nothing integrates them, and no operator takes them."""
    if (
        isinstance(vector, Apply)
        and not is_data(vector)
        and isinstance(over := dict(vector.options).get("over"), Plate)
    ):
        raise ModelError(
            f"cv.covariance: the {name} are the elements of '{vector.args[0]}' on the plate '{over.name}'. A "
            "covariance is inferred by integrating its numbers, which must be single variables: give a list, "
            "[m.random('sd 1', cv.half_normal(1.0)), m.random('sd 2', cv.half_normal(1.0))]."
        )


def _given_vector(value: UserValue) -> np.ndarray:
    """Numbers of a list; ModelError for anything else."""
    try:
        return np.asarray(numeric_array(value), float)
    except ValueProblem as problem:
        raise ModelError(f"cv.covariance: {problem}") from None


def _vector_of(value: UserValue) -> UserValue:
    """A vector of what may be a list of numbers, or one number."""
    if isinstance(value, (list, tuple)):
        value = value if builtins.any(isinstance(part, Expr) for part in value) else _given_vector(value)
    if isinstance(value, Expr):
        return value if value.domain.is_vector else apply(op.STACK, value)
    if isinstance(value, (list, tuple)):
        return apply(op.STACK, *value)
    array = np.atleast_1d(_given_vector(value))
    return Constant(array, (), domains.vector(array.shape[-1]))


@call_checked
def element(vector: UserValue, position: int) -> Expr:
    """One coordinate vector_position of a vector.

    `vector`: an expression of domain vector(d). `position`: a fixed integer 0, ..., d - 1, or from the end -d, ..., -1.
    Returns a real expression over the plates of the vector, linear in it. ModelError when `vector` is no vector of
    fixed dimension, or has no such coordinate.
    """
    (vector,) = _with_node("element", vector)
    size = _dimension("element", vector)
    if isinstance(position, bool) or not isinstance(position, (int, np.integer)) or not -size <= position < size:
        raise ModelError(f"`element` of '{vector}' ({vector.domain}): there is no coordinate {position!r}.")
    return coordinate(vector, int(position) % size)


@call_checked
def subvector(vector: UserValue, start: int, count: int) -> Expr:
    """The coordinates start, ..., start + count - 1 of a vector.

    `vector`: an expression of domain vector(d). `start` >= 0 and `count` >= 1: fixed integers, start + count <= d.
    Returns an expression of domain vector(count) over the plates of the vector, linear in it. ModelError when `vector`
    is no vector of fixed dimension, or does not have these coordinates.
    """
    (vector,) = _with_node("subvector", vector)
    size = _dimension("subvector", vector)
    whole = builtins.all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in (start, count))
    if not whole or not 0 <= start < start + count <= size:
        raise ModelError(
            f"`subvector` of '{vector}' ({vector.domain}) from {start!r}, {count!r} coordinates: there are none such."
        )
    return matmul(np.eye(size)[start : start + count], vector)


def _dimension(name: str, vector: Expr) -> int:
    if not vector.domain.is_vector or not isinstance(vector.domain.size, int):
        raise ModelError(f"`{name}` takes a vector of fixed dimension; found '{vector}' ({vector.domain}).")
    return vector.domain.size


@call_checked
def all(value: UserValue, over: Plate) -> Expr:
    """True where a boolean expression is true for every element of one of its plates.

    `value`: a boolean expression that has the plate `over`. Returns a boolean expression without that plate. ModelError
    when `value` is not boolean, no expression, or has no such plate.
    """
    return _applied_over(op.ALL, value, over)


@call_checked
def any(value: UserValue, over: Plate) -> Expr:
    """True where a boolean expression is true for some element of one of its plates.

    `value`: a boolean expression that has the plate `over`. Returns a boolean expression without that plate. ModelError
    when `value` is not boolean, no expression, or has no such plate.
    """
    return _applied_over(op.ANY, value, over)


def _applied(operation: Operation, *operands: UserValue) -> Expr:
    return apply(operation, *_with_node(operation.name, *operands))


def _applied_over(operation: Operation, value: UserValue, over: Plate | None) -> Apply:
    name = operation.title or operation.name
    (value,) = _with_node(name, value)
    _check_over(name, value, over)
    return apply(operation, value, over=over)


def _counted(value: Expr, over: Plate | None) -> Expr:
    _check_over("sum", value, over)
    assert over is not None

    def refuse(wanted: str, hint: str) -> ModelError:
        return ModelError(f"`sum` takes {wanted}; found '{value}' ({value.domain}). {hint}")

    if over.size is None:
        raise refuse(
            f"discrete variables over a plate of declared size, not '{over.name}'",
            f'The size is the number of values of the sum: m.plate("{over.name}", 8).',
        )
    values = over.size * (classes(value.domain, refuse) - 1) + 1
    plates = tuple(plate for plate in value.plates if plate is not over)
    return Apply(op.SUM, (value,), (("over", over),), plates, domains.category(values))


def _with_node(name: str, *operands: UserValue) -> tuple[Any, ...]:
    operands = tuple(operand.variable if isinstance(operand, Operand) else operand for operand in operands)
    if not builtins.any(isinstance(operand, Expr) for operand in operands):
        raise ModelError(
            f"cv.{name} builds an expression of a model, but it was given only "
            f"{', '.join(type(o).__name__ for o in operands)}. "
            f"For plain numbers and arrays use NumPy or JAX."
        )
    return operands


def _check_over(name: str, value: Expr, over: UserValue) -> None:
    if over is None:
        names = " or ".join(f"over={plate.name}" for plate in value.plates) or "of which it has none"
        raise ModelError(
            f"`{name}` of '{value}' runs over one of its plates, {names}: give over=, the object that m.plate(...) "
            "returned."
        )
    if not isinstance(over, Plate):
        raise ModelError(f"`{name}`: over={over!r} is not a plate. Give the object that m.plate(...) returned.")
    if over not in value.plates:
        names = tuple(plate.name for plate in value.plates)
        raise ModelError(
            f"`{name}` of '{value}' over plate '{over.name}': the plates of '{value}' are {names}. Give one of these."
        )
