"""The operations of the language, each declared once, as a constant.

An operation is what an expression applies to others: its name, how its users write it, which domain it gives, and what
kind of function it is. Every reading of expressions looks up the operation's rule in a table of its own: what it is as
a polynomial (`language/monomials.py`), whether it is even or odd (`algebra/parity.py`), of what VMP takes its moments
(`algebra/averaging.py`), its value and its moments (`engine/values/operations.py`). Contract tests hold the tables to
these declarations.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...factors import domains
from ...factors.arrays import Exponent
from ...factors.domains import Domain
from ...factors.errors import ModelError
from ...factors.factor import VECTOR_LINKS

Refuse = Callable[..., ModelError]
"""Makes the error: `refuse(what the operation takes, hint)`."""
Options = Mapping[str, Any]  # the fixed settings of one use: an exponent, the plate that it runs over
Plate: TypeAlias = Any  # that of the nodes, which are made of operations
Written = Callable[[Sequence[str], Options], str]


class Reach(enum.Enum):
    """How much of its operands one number of the result reads."""

    ELEMENT = "the same element of each"
    VECTOR = "whole vectors"
    SEVERAL = "several elements, or all of a plate"


@dataclasses.dataclass(frozen=True, eq=False)
class Operation:
    """One operation of the language; copies of expressions share it.

    `domain(operands, refuse, **options)` is the domain of the result; it raises the error that `refuse` makes where the
    operation has no meaning. `written(operands, options)` is the expression as its user writes it, from texts.
    `degree` is that of the result as a polynomial, from the degrees of the operands. The operands of an `arithmetic`
    operation are finite numbers, and boolean data count as 0 and 1 there; a `logical` one takes truth values to truth
    values; an `integer` one is defined for classes, too, as numbers; an `aggregate` one is, over a plate.
    """

    name: str
    domain: Callable[..., Domain]
    written: Written
    degree: Callable[[Sequence[float]], float]
    reach: Reach = Reach.ELEMENT
    arithmetic: bool = False
    logical: bool = False
    integer: bool = False
    aggregate: bool = False
    title: str = ""  # the name in messages, where it is another one

    def __reduce__(self) -> str:
        return self.name.upper()  # of the constant


# How operations are written -------------------------------------------------------------------------------------------


def _infix(symbol: str) -> Written:
    return lambda operands, _: f"({operands[0]} {symbol} {operands[1]})"


def _prefix(symbol: str) -> Written:
    return lambda operands, _: f"{symbol}{operands[0]}"


def _called(name: str) -> Written:
    return lambda operands, options: f"{name}({', '.join([*operands, *(f'{k}={v}' for k, v in options.items())])})"


def _raised(operands: Sequence[str], options: Options) -> str:
    return f"{operands[0]} ** {options['exponent']}"


# Degrees of polynomials -----------------------------------------------------------------------------------------------


def _of_product(degrees: Sequence[float]) -> float:
    return sum(degrees)


def _of_quotient(degrees: Sequence[float]) -> float:
    return degrees[0] if degrees[1] == 0 else math.inf


def _of_curve(degrees: Sequence[float]) -> float:
    return 0 if max(degrees) == 0 else math.inf


# Domains --------------------------------------------------------------------------------------------------------------


def _scalars(operands: Sequence[Domain], refuse: Refuse, hint: str = "") -> None:
    if not all(operand.is_numeric for operand in operands):
        raise refuse("numbers", hint or _numeric_hint(operands))


def _numeric_hint(operands: Sequence[Domain]) -> str:
    if any(operand.is_discrete for operand in operands):
        return "To let a discrete variable choose between values, index with it (`mean[z]`) or use cv.switch(...)."
    if any(operand.is_vector for operand in operands):
        return "Two vectors are added with `+` and multiplied with cv.dot(a, b); a number scales a vector with `*`."
    return "Only real, positive, unit and count expressions are numbers."


def _add(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if all(operand.is_vector for operand in operands):
        return _same_vector(operands, refuse)
    if all(operand.is_discrete for operand in operands):
        return domains.category(1 + sum(classes(operand, refuse) - 1 for operand in operands))
    _scalars(operands, refuse)
    if all(operand.is_count for operand in operands):
        return domains.count
    negative = any(operand.is_real or operand.is_sparse for operand in operands)
    return domains.real if negative else domains.positive  # one of them is no count, and above zero


def classes(domain: Domain, refuse: Refuse) -> int:
    """Number of values of a category or a boolean, as far as it is declared."""
    size = 2 if domain.is_boolean else domain.size
    size = size if isinstance(size, int) else getattr(size, "size", None)
    if size is None:
        raise refuse(
            "categories whose number of classes is declared", "Give the plate of the classes a size: m.plate(name, 8)."
        )
    return size


def _subtract(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if all(operand.is_vector for operand in operands):
        return _same_vector(operands, refuse)
    if all(operand.is_category for operand in operands):
        return domains.category(classes(operands[0], refuse))
    _scalars(operands, refuse)
    return domains.real


def is_countable(domain: Domain) -> bool:
    """Whether values are truth values, classes, counts or positions, which may equal each other."""
    return domain.is_discrete or domain.is_count or domain.is_index


def _same_vector(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].size != operands[1].size:
        raise refuse("vectors of one dimension", "Give both the same dimension.")
    return operands[0]


def _multiply(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    first, second = operands
    if first.is_vector and second.is_numeric:
        return first
    if second.is_vector and first.is_numeric:
        return second
    if first.is_posdef and second.is_bounded:
        return first
    if second.is_posdef and first.is_bounded:
        return second
    _scalars(operands, refuse)
    if first == second and (first.is_unit or first.is_count):
        return first
    return domains.positive if first.is_bounded and second.is_bounded else domains.real


def _divide(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].is_vector and operands[1].is_numeric:
        return operands[0]
    _scalars(operands, refuse)
    return domains.positive if all(operand.is_bounded for operand in operands) else domains.real


def _negate(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if operands[0].is_vector:
        return operands[0]
    _scalars(operands, refuse, "The opposite of a boolean is `~x`." if operands[0].is_boolean else "")
    return domains.real


def _power(operands: Sequence[Domain], refuse: Refuse, exponent: Exponent) -> Domain:
    """That of a fractional power of what may be negative is no concern here: the builder refuses it."""
    _scalars(operands, refuse)
    return domains.positive if operands[0].is_bounded or exponent != int(exponent) else domains.real


def _dot(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if not all(operand.is_vector for operand in operands):
        raise refuse(
            "two vectors",
            "Declare vectors with cv.vector(d) or cv.vector_gaussian(...); numbers are multiplied with `*`.",
        )
    _same_vector(operands, refuse)
    return domains.real


def _matvec(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    matrix, found = operands
    rows, columns = matrix.size if matrix.is_matrix else (matrix.size, matrix.size)
    if found.size != columns:
        raise refuse(f"a matrix of {found.size} columns and a vector", "Give as many columns as coordinates.")
    return domains.vector(rows)


def _covariance(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    scales, correlations = operands
    vectors = scales.is_vector and correlations.is_vector
    if not vectors or 2 * correlations.size != scales.size * (scales.size - 1):
        raise refuse("d scales and d (d - 1) / 2 correlations", "Two scales have one correlation, three have three.")
    return domains.posdef(scales.size)


def _inverse(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if not operands[0].is_posdef:
        raise refuse("a positive definite matrix")
    return operands[0]


def _sum(operands: Sequence[Domain], refuse: Refuse, over: Plate) -> Domain:
    if operands[0].is_vector:
        return operands[0]
    _scalars(operands, refuse)
    if operands[0].is_bounded:
        return domains.positive
    return domains.real if operands[0].is_sparse else operands[0]


def _log(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if not operands[0].is_bounded:
        raise refuse(
            "positive numbers", "The logarithm of a negative number has no meaning: use a positive expression."
        )
    return domains.real


def _max(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    _scalars(operands, refuse)
    return domains.real


def _where(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    condition, *chosen = operands
    if not condition.is_boolean:
        raise refuse("a truth value and two numbers", "Make truth values by comparing: `x > 0`, `z == 2`.")
    _scalars(chosen, refuse, "Terms are chosen by cv.switch(condition, when_true, when_false).")
    if chosen[0] == chosen[1] and not chosen[0].is_sparse:
        return chosen[0]
    return domains.positive if all(operand.is_bounded for operand in chosen) else domains.real


def _stack(operands: Sequence[Domain], refuse: Refuse, over: Plate | None = None) -> Domain:
    _scalars(operands, refuse, "Vectors are not joined: stack numbers.")
    return Domain("vector", len(operands) if over is None else over.size)


def _together(operands: Sequence[Domain], refuse: Refuse, plated: bool) -> Domain:
    return Domain("vector")  # its dimension follows from the sizes of plates


def _scalar_map(out: Domain) -> Callable[[Sequence[Domain], Refuse], Domain]:
    def rule(operands: Sequence[Domain], refuse: Refuse) -> Domain:
        _scalars(operands, refuse, _map_hint(operands[0]))
        return out

    return rule


def _probabilities(operands: Sequence[Domain], refuse: Refuse, over: Plate) -> Domain:
    if not operands[0].is_numeric:
        raise refuse(f"a real expression over the plate '{over.name}'")
    return domains.simplex(over)


def _products(operands: Sequence[Domain], refuse: Refuse, over: Plate) -> Domain:
    if not operands[0].is_unit:
        raise refuse(
            "probabilities", "A product of a few numbers is written with `*`; only probabilities are multiplied along."
        )
    return domains.unit


def _map_hint(domain: Domain) -> str:
    return "Reduce the vector to a number first, e.g. with cv.dot(weight, x)." if domain.is_vector else ""


def _logical(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    if not all(operand.is_boolean for operand in operands):
        raise refuse("booleans", "Make booleans by comparing (`a > b`, `z == 2`) or with cv.bernoulli(p).")
    return domains.boolean


def _quantified(operands: Sequence[Domain], refuse: Refuse, over: Plate) -> Domain:
    if not all(operand.is_boolean for operand in operands):
        raise refuse("booleans", "Make booleans by comparing (`a > b`, `z == 2`).")
    return domains.boolean


def _equal(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    first, second = operands
    if first.kind != second.kind or not is_countable(first):
        hint = (
            "A continuous variable equals a number with probability zero: give the number as data, or compare with `>`."
        )
        raise refuse("two discrete expressions of one kind", hint if first.is_numeric or second.is_numeric else "")
    return domains.boolean


def _greater(operands: Sequence[Domain], refuse: Refuse) -> Domain:
    classes = any(operand.is_category for operand in operands)
    if not classes or not all(operand.is_category or operand.is_numeric for operand in operands):
        _scalars(operands, refuse, "Compare discrete expressions with `==` and `!=`.")
    return domains.boolean


# The operations -------------------------------------------------------------------------------------------------------

ADD = Operation("add", _add, _infix("+"), max, arithmetic=True, integer=True)
SUBTRACT = Operation("subtract", _subtract, _infix("-"), max, arithmetic=True, integer=True)
NEGATE = Operation("negate", _negate, _prefix("-"), max, arithmetic=True)
MULTIPLY = Operation("multiply", _multiply, _infix("*"), _of_product, arithmetic=True)
DIVIDE = Operation("divide", _divide, _infix("/"), _of_quotient, arithmetic=True)
POWER = Operation("power", _power, _raised, _of_curve, arithmetic=True)
MAX = Operation("max", _max, _called("max"), _of_curve, arithmetic=True)
EXP = Operation("exp", _scalar_map(domains.positive), _called("exp"), _of_curve, arithmetic=True)
LOG = Operation("log", _log, _called("log"), _of_curve)
LOGISTIC = Operation("logistic", _scalar_map(domains.unit), _called("logistic"), _of_curve, arithmetic=True)
TANH = Operation("tanh", _scalar_map(domains.real), _called("tanh"), _of_curve, arithmetic=True)
SIN = Operation("sin", _scalar_map(domains.real), _called("sin"), _of_curve, arithmetic=True)
COS = Operation("cos", _scalar_map(domains.real), _called("cos"), _of_curve, arithmetic=True)
PROBIT = Operation("probit", _scalar_map(domains.unit), _called("probit"), _of_curve, arithmetic=True)
DOT = Operation("dot", _dot, _called("dot"), _of_product, Reach.VECTOR)
MATVEC = Operation("matvec", _matvec, _called("matvec"), _of_product, Reach.VECTOR)
WHERE = Operation("where", _where, _called("where"), _of_curve)
COVARIANCE = Operation("covariance", _covariance, _called("covariance"), _of_curve, Reach.VECTOR)
INVERSE = Operation("inverse", _inverse, lambda operands, _: f"{operands[0]} ** -1", _of_curve, Reach.VECTOR)
SUM = Operation("sum", _sum, _called("sum"), max, Reach.SEVERAL, arithmetic=True, aggregate=True)
STACK = Operation("stack", _stack, _called("stack"), max, Reach.SEVERAL, arithmetic=True)
TOGETHER = Operation("together", _together, _called("together"), max, Reach.SEVERAL)
SOFTMAX = Operation("softmax", _probabilities, _called("softmax"), _of_curve, Reach.SEVERAL)
MULTINOMIAL_PROBIT = Operation(
    "multinomial_probit", _probabilities, _called("probit"), _of_curve, Reach.SEVERAL, title="probit"
)
CUMPROD = Operation("cumprod", _products, _called("cumprod"), _of_curve, Reach.SEVERAL)
AND = Operation("and", _logical, _infix("&"), _of_curve, logical=True)
OR = Operation("or", _logical, _infix("|"), _of_curve, logical=True)
XOR = Operation("xor", _logical, _infix("^"), _of_curve, logical=True)
NOT = Operation("not", _logical, _prefix("~"), _of_curve, logical=True)
EQUAL = Operation("equal", _equal, _infix("=="), _of_curve, logical=True)
GREATER = Operation("greater", _greater, _infix(">"), _of_curve, arithmetic=True, integer=True)
ALL = Operation("all", _quantified, _called("all"), _of_curve, Reach.SEVERAL, aggregate=True)
ANY = Operation("any", _quantified, _called("any"), _of_curve, Reach.SEVERAL, aggregate=True)
OPERATIONS: Mapping[str, Operation] = {o.name: o for o in tuple(globals().values()) if isinstance(o, Operation)}
"""All of them, by name."""
OVER_CLASSES = tuple(OPERATIONS[name] for name in VECTOR_LINKS)  # links of all elements along a plate
