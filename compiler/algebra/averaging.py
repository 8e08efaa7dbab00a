"""Which rule gives the moments of an expression under VMP.

`average` finds it, or raises the sentence why there is none. The compiler asks it whether VMP can serve a factor
(`has_moments.py`), the engine asks it what to compute (`engine/values/moments.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NoReturn

from ...factors import LINKS, domains
from ...factors.arrays import Exponent
from ...factors.errors import UnsupportedError
from ...factors.moments import BY_KIND
from ...factors.scalars import READ_AS
from ..language import operations as op
from ..language.atoms import atom_key, powers, variables
from ..language.nodes import (
    Apply,
    Constant,
    Expr,
    Gather,
    IsData,
    Let,
    Previous,
    Random,
    applies,
    parents,
    source_of,
    unnamed,
)
from ..language.operations import Operation
from ..language.plate_sums import dependent
from . import averages as rules
from .averages import NUMBER, POLYNOMIAL, Average
from .known import ungathered
from .polynomial import Rewrite, monomials


def readable(kind: str, own: str) -> bool:
    """Whether the moments of a domain `own` can be read as those of the domain `kind`."""
    return kind == own or (BY_KIND.get(kind), BY_KIND.get(own)) in READ_AS


def average(expr: Expr, kind: str, known: IsData, rewrite: Rewrite | None = None) -> Average:
    """The rule for the moments of what is no variable, read as `kind`; UnsupportedError where there is none.

    `rewrite` is applied to the monomials of a polynomial: those who know joint beliefs merge the members of one.
    """
    if kind == POLYNOMIAL:
        return _polynomial(expr, known, rewrite)
    if not isinstance(expr, Apply):
        chosen = isinstance(expr, Gather) and known(ungathered(expr))  # from data: a number without a distribution
        own = "real" if chosen else expr.domain.kind  # a number that is not continuous is refused where it is read
        return rules.Number(expr, NUMBER, ((expr, own if own in CONTINUOUS else "real"),))
    if kind == NUMBER:
        return ATOMS.get(expr.operation, _no_number)(expr, known)
    if expr.op in LINKS:
        return rules.Linked(expr, expr.domain.kind, ((expr.args[0], LINKS[expr.op].of),))
    if kind in ("boolean", "unit") and expr.operation.logical:
        return _logical(expr, known)
    if kind == "positive":
        return POSITIVES.get(expr.operation, _no_logarithm)(expr, known)
    if kind == "vector":
        return VECTORS.get(expr.operation, _no_vector)(expr, known)
    if kind == "posdef":
        return MATRICES.get(expr.operation, _no_matrix)(expr, known)
    return _polynomial(expr, known, rewrite)


CONTINUOUS = ("real", "sparse", "positive", "unit")


def _logical(expr: Apply, known: IsData) -> Average:
    if len(expr.args) > 1:
        _check_apart(expr, known)
    return rules.Logical(expr, "boolean", tuple((arg, "boolean") for arg in expr.args))


# Positive expressions -------------------------------------------------------------------------------------------------


def _of_operands(rule: type[Average], kind: str) -> Callable[[Apply, IsData], Average]:
    """A rule that reads the moments of independent operands as those of the result."""

    def found(expr: Apply, known: IsData) -> Average:
        _check_apart(expr, known)
        return rule(expr, kind, tuple((arg, kind) for arg in expr.args))

    return found


def _quotient(expr: Apply, known: IsData) -> Average:
    above, below = expr.args
    if known(below):
        return rules.KnownQuotient(expr, "positive", ((above, "positive"), (below, "positive")))
    _check_apart(expr, known)
    base, exponent = _power_of(expr, below, -1)
    return rules.Quotient(expr, "positive", ((above, "positive"), (base, "positive")), exponent=exponent)


def _power(expr: Apply, known: IsData) -> Average:
    if not expr.args[0].domain.is_positive:
        _no_logarithm(expr, known)
    base, exponent = _power_of(expr, expr, 1)
    return rules.Power(expr, "positive", ((base, "positive"),), exponent=exponent)


def _power_of(expr: Apply, base: Expr, exponent: Exponent) -> tuple[Expr, Exponent]:
    """Powers of powers, such as the precision 1 / sd^2 that sd= is read as, are one power of a variable."""
    while isinstance(base, Let) or applies(base, op.POWER):
        if isinstance(base, Apply):
            exponent = exponent * base.option("exponent")
        base = base.expression if isinstance(base, Let) else base.args[0]
    if variable_of(base) is None:
        raise UnsupportedError(
            f"'{expr}' needs the moments of a power of '{source_of(base)}', whose distribution is not known. Write it "
            "with powers and quotients of single positive variables, or with cv.exp of a real expression."
        )
    return base, exponent


def _chosen(expr: Apply, known: IsData) -> Average:
    condition, *sides = expr.args
    if not known(condition):
        _no_logarithm(expr, known)
    return rules.Chosen(expr, "positive", tuple((side, "positive") for side in sides), (condition,))


def variable_of(expr: Expr) -> Random | None:
    """The variable that an expression is, or is an element of."""
    found = source_of(expr)
    return found if isinstance(found, Random) else None


def _no_logarithm(expr: Apply, known: IsData) -> NoReturn:
    raise UnsupportedError(
        f"The expression '{expr}' needs E log of a {expr.op}, which its arguments do not give. "
        "Positive expressions are products, quotients and powers of positive variables, and cv.exp of a real "
        "expression."
    )


POSITIVES: dict[Operation, Callable[[Apply, IsData], Average]] = {
    op.MULTIPLY: _of_operands(rules.Product, "positive"),
    op.DIVIDE: _quotient,
    op.POWER: _power,
    op.WHERE: _chosen,
}


# Vectors --------------------------------------------------------------------------------------------------------------


def _opposite(expr: Apply, known: IsData) -> Average:
    return rules.Opposite(expr, "vector", ((expr.args[0], "vector"),))


def _matrix_product(expr: Apply, known: IsData) -> Average:
    matrix, vector = expr.args
    if not known(matrix):
        _no_vector(expr, known)
    return rules.MatrixProduct(expr, "vector", ((vector, "vector"),), (matrix,))


def _multiple(expr: Apply, known: IsData) -> Average:
    """A vector times an independent number, or over one."""
    _check_apart(expr, known)
    vector, number = expr.args if expr.args[0].domain.is_vector else expr.args[::-1]
    factor = 1.0 / number if applies(expr, op.DIVIDE) else number
    return rules.Scaled(expr, "vector", ((vector, "vector"), (factor, "real")))


def _plate_sum(expr: Apply, known: IsData) -> Average:
    """The elements must be independent; those chosen by index data are taken for different ones."""
    over = expr.option("over")
    for variable in _whole(expr.args[0]):
        if over not in set(variable.plates) and not known(variable):
            raise UnsupportedError(
                f"'{expr}' sums vectors over plate '{over.name}' that all hold '{variable.name}', so they are "
                "dependent. Take it out of the sum: a vector times the sum of its multipliers."
            )
    return rules.PlateSum(expr, "vector", ((expr.args[0], "vector"),))


def _stacked(expr: Apply, known: IsData) -> Average:
    if expr.over is not None:
        return _elements(expr, known)
    apart = [{v for v in variables(arg) if not known(v)} for arg in expr.args]
    pairs = tuple((i, j) for j in range(len(apart)) for i in range(j) if apart[i] & apart[j])
    sums = [(sign(expr.args[i], expr.args[j]), POLYNOMIAL) for i, j in pairs for sign in (operator.add, operator.sub)]
    return rules.Stacked(expr, "vector", (*((arg, "real") for arg in expr.args), *sums), pairs=pairs)


def _elements(expr: Apply, known: IsData) -> Average:
    over = expr.option("over")
    if dependent(expr.args[0], over, known):
        raise UnsupportedError(
            f"'{expr}' makes a vector of elements over plate '{over.name}' that share random variables, so they "
            "are dependent. Stack variables of that plate alone, and add what they share outside."
        )
    return rules.Elements(expr, "vector", ((expr.args[0], "real"),))


def _together(expr: Apply, known: IsData) -> Average:
    return rules.JointVector(expr, "vector")


def _no_vector(expr: Apply, known: IsData) -> NoReturn:
    raise UnsupportedError(
        f"The vector expression '{expr}' ({expr.op}) has no rule; sums, differences, multiples by a number, "
        "matrix @ vector and cv.dot of vectors do."
    )


VECTORS: dict[Operation, Callable[[Apply, IsData], Average]] = {
    op.ADD: _of_operands(rules.VectorSum, "vector"),
    op.SUBTRACT: _of_operands(rules.VectorDifference, "vector"),
    op.NEGATE: _opposite,
    op.MATVEC: _matrix_product,
    op.MULTIPLY: _multiple,
    op.DIVIDE: _multiple,
    op.SUM: _plate_sum,
    op.STACK: _stacked,
    op.TOGETHER: _together,
}


def _scaled_matrix(expr: Apply, known: IsData) -> Average:
    _check_apart(expr, known)
    matrix, number = expr.args if expr.args[0].domain.is_posdef else expr.args[::-1]
    return rules.ScaledMatrix(expr, "posdef", ((matrix, "posdef"), (number, "positive")))


def _inverse_covariance(expr: Apply, known: IsData) -> Average:
    covariance = unnamed(expr.args[0])
    if applies(expr, op.INVERSE) and applies(covariance, op.COVARIANCE):
        scales, correlations = map(unnamed, covariance.args)
        if all(isinstance(v, Constant) or (applies(v, op.STACK) and v.over is None) for v in (scales, correlations)):
            parts = [(part, kind) for v, kind in ((scales, "positive"), (correlations, "real")) for part in _parts(v)]
            return rules.InverseCovariance(expr, "posdef", tuple(parts))
    return _no_matrix(expr, known)


def _no_matrix(expr: Apply, known: IsData) -> NoReturn:
    raise UnsupportedError(
        f"The matrix '{expr}' ({expr.op}) has no rule; a number times a matrix, and the inverse of "
        "cv.covariance(scales, correlations) of lists of numbers and variables, have."
    )


MATRICES: dict[Operation, Callable[[Apply, IsData], Average]] = {
    op.MULTIPLY: _scaled_matrix,
    op.INVERSE: _inverse_covariance,
}


def _parts(vector: Expr) -> tuple[Expr, ...]:
    if isinstance(vector, Constant):
        return tuple(Constant(number, (), domains.real) for number in vector.value)
    return parents(vector)


def _check_apart(expr: Apply, known: IsData) -> None:
    """Operands must not share a random variable: the covariance between them has no rule.

    Elements chosen by index data are taken for different ones, and a point has no covariance.
    """
    found = [{v for v in _whole(arg) if not known(v) and not isinstance(v, Previous)} for arg in expr.args]
    for variable in set.intersection(*found):
        raise UnsupportedError(
            f"'{expr}' uses '{variable.name}' in both of its operands, whose covariance has no rule. Write it with one "
            "of them, for example one matrix @ vector with the summed matrix."
        )


def _whole(expr: Expr) -> set[Random]:
    """The random variables below `expr` that are not indexed."""
    if isinstance(expr, Random):
        return {expr}
    return set() if isinstance(expr, Gather) else set().union(*map(_whole, parents(expr)))


# Real expressions -----------------------------------------------------------------------------------------------------


def _polynomial(expr: Expr, known: IsData, rewrite: Rewrite | None) -> Average:
    terms = monomials(expr, known, rewrite)
    bases = [powers(atoms) for _, atoms in terms]
    atoms: dict[tuple, Expr] = {}
    for found in bases:
        for key, (base, _) in found.items():
            atoms.setdefault(key, base)
    return rules.Polynomial(
        expr,
        "real",
        tuple((atom, NUMBER) for atom in atoms.values()),
        tuple(c for coefficients, _ in terms for c in coefficients),
        keys=tuple(atoms),
        products=tuple({key: exponent for key, (_, exponent) in found.items()} for found in bases),
        factors=tuple(len(coefficients) for coefficients, _ in terms),
    )


def _dot(expr: Apply, known: IsData) -> Average:
    left, right = expr.args
    if known(left):
        left, right = right, left
    if known(right):
        return rules.InnerProductWithData(expr, NUMBER, ((left, "vector"),), (right,))
    if atom_key(left) == atom_key(right):
        return rules.SquaredLength(expr, NUMBER, ((left, "vector"),))
    _check_two(expr, left, right, known)
    return rules.InnerProduct(expr, NUMBER, ((left, "vector"), (right, "vector")))


def _check_two(expr: Apply, left: Expr, right: Expr, known: IsData) -> None:
    """Two sides of an inner product must be independent; elements chosen by index data are taken for different ones."""
    shared = [v for v in variables(left) & variables(right) if not known(v)]
    if shared and not (isinstance(left, Gather) and isinstance(right, Gather)):
        raise UnsupportedError(
            f"'{expr}' uses '{shared[0].name}' on both of its sides, whose covariance has no rule. The squared length "
            "cv.dot(x, x) of one vector has."
        )


def _exponential(expr: Apply, known: IsData) -> Average:
    return rules.Exponential(expr, NUMBER, ((expr.args[0], "real"),))


def _logarithm(expr: Apply, known: IsData) -> Average:
    (argument,) = expr.args
    if variable_of(argument) is None or not argument.domain.is_bounded:
        _no_number(expr, known)
    return rules.Logarithm(expr, NUMBER, ((argument, argument.domain.kind),))


def _number_sum(expr: Apply, known: IsData) -> Average:
    return rules.NumberSum(expr, NUMBER, ((expr.args[0], POLYNOMIAL),))


def _larger(expr: Apply, known: IsData) -> Average:
    left, right = expr.args
    return rules.Larger(expr, NUMBER, tuple((e, "real") for e in (left, right, left - right)))


def _no_number(expr: Apply, known: IsData) -> NoReturn:
    raise UnsupportedError(
        f"The real expression '{expr}' ({expr.op}) has no moments in closed form; sums, products, quotients and powers "
        "of variables, cv.dot, cv.max, cv.min, cv.exp, and cv.log of positive variables do."
    )


ATOMS: dict[Operation, Callable[[Apply, IsData], Average]] = {
    op.DOT: _dot,
    op.EXP: _exponential,
    op.LOG: _logarithm,
    op.SUM: _number_sum,
    op.MAX: _larger,
}
