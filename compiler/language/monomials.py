"""Real expressions multiplied out: sums of products of data and of random atoms.

What an operation is as a polynomial stands in `MONOMIALS`, what its reciprocal and its logarithm are in `RECIPROCALS`
and `LOGARITHMS`; where there is no rule, the expression is an atom.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np

from ...factors.domains import real
from . import operations as op
from .atoms import MINUS_ONE, ONE, ZERO, Monomial
from .indexing import pushed
from .nodes import Apply, Constant, Expr, Gather, IsData, Let, applies, source_of, union_plates, unnamed
from .operations import Operation
from .operators import coordinate
from .plate_sums import summed

LONGEST = 64  # terms of a power that is multiplied out


def expand(expr: Expr, known: IsData) -> list[Monomial]:
    """`expr` as a list of monomials, whatever their powers and however their atoms depend on each other."""
    found: list[Monomial] = []
    stack: list[tuple[Expr, bool]] = [(expr, False)]  # summands still to come, and whether they are subtracted
    while stack:
        node, negative = stack.pop()
        node = node if known(node) else unnamed(node)
        if applies(node, *SUBTRACTED) and not known(node):
            signs = zip(node.args, SUBTRACTED[node.operation], strict=True)
            stack.extend(reversed([(summand, negative != minus) for summand, minus in signs]))
        else:
            found += _scaled(MINUS_ONE, _summand(node, known)) if negative else _summand(node, known)
    return found


SUBTRACTED = {op.ADD: (False, False), op.SUBTRACT: (False, True), op.NEGATE: (True,)}  # which operands of a sum are


def _summand(expr: Expr, known: IsData) -> list[Monomial]:
    """`expand` of what is itself no sum."""
    if known(expr):
        return [((expr,), ())]
    if applies(expr, *MONOMIALS):
        return MONOMIALS[expr.operation](expr, known)
    inside = _element(expr, known)
    return [((), (expr,))] if inside is None else expand(inside, known)


def _element(expr: Expr, known: IsData) -> Expr | None:
    """An element, by index data, of a named sum or product as that of elements; None for anything else."""
    if not isinstance(expr, Gather) or not known(expr.index):
        return None
    source, root = unnamed(expr.source), source_of(expr)
    multiplied_out = applies(root, *SUBTRACTED, *MONOMIALS) and root.over not in set(expr.index.plates)
    return pushed(source, expr.index, expr.axis) if multiplied_out else None


def _product(left: list[Monomial], right: list[Monomial]) -> list[Monomial]:
    return [(c + d, a + b) for c, a in left for d, b in right]


def _scaled(factor: Expr, terms: list[Monomial]) -> list[Monomial]:
    return [((factor, *coefficients), atoms) for coefficients, atoms in terms]


def _multiply(expr: Apply, known: IsData) -> list[Monomial]:
    left, right = expr.args
    return _product(expand(left, known), expand(right, known))


def _divide(expr: Apply, known: IsData) -> list[Monomial]:
    above, below = expr.args
    return _product(expand(above, known), [_reciprocal(below, known)])


def _power(expr: Apply, known: IsData) -> list[Monomial]:
    """Positive powers of sums are multiplied out, as long as they are short."""
    (base,), exponent = expr.args, expr.option("exponent")
    if exponent != int(exponent):
        return [((), (expr,))]
    if exponent < 0:
        return functools.reduce(_product, [[_reciprocal(base, known)]] * -exponent)
    parts = expand(base, known)
    if len(parts) ** exponent > LONGEST:
        return [((), (base,) * exponent)]
    return functools.reduce(_product, [parts] * exponent)


def _log(expr: Apply, known: IsData) -> list[Monomial]:
    return _logarithm(expr.args[0], known)


def _sum(expr: Apply, known: IsData) -> list[Monomial]:
    if expr.domain.is_discrete:  # how many booleans are true is a class of its own, no polynomial of them
        return [((), (expr,))]
    return summed(expr, expand(expr.args[0], known), known)


def _where(expr: Apply, known: IsData) -> list[Monomial]:
    """What data choose: each side where it is chosen, and there alone its coefficients, which may divide by zero."""
    condition, *chosen = expr.args
    if not known(condition):
        return [((), (expr,))]

    def where_chosen(coefficients: tuple[Expr, ...], side: int) -> Apply:
        product = functools.reduce(operator.mul, coefficients, ONE)
        sides = (product, ZERO) if side == 0 else (ZERO, product)
        return Apply(op.WHERE, (condition, *sides), (), union_plates(condition.plates, product.plates), real)

    return [
        ((where_chosen(coefficients, number),), atoms)
        for number, side in enumerate(chosen)
        for coefficients, atoms in expand(side, known)
    ]


def _dot(expr: Apply, known: IsData) -> list[Monomial]:
    left, right = expr.args
    return _stacked(left, right, known) or _stacked(right, left, known) or [((), (expr,))]


def _stacked(stack: Expr, other: Expr, known: IsData) -> list[Monomial] | None:
    """The inner product of data with numbers that were stacked: their weighted sum."""
    stack = unnamed(stack)
    if not applies(stack, op.STACK) or stack.over is not None or not known(other):
        return None
    return [part for i, arg in enumerate(stack.args) for part in _scaled(coordinate(other, i), expand(arg, known))]


MONOMIALS: dict[Operation, Callable[[Apply, IsData], list[Monomial]]] = {
    op.MULTIPLY: _multiply,
    op.DIVIDE: _divide,
    op.POWER: _power,
    op.LOG: _log,
    op.SUM: _sum,
    op.DOT: _dot,
    op.WHERE: _where,
}


# Reciprocals ----------------------------------------------------------------------------------------------------------


def _reciprocal(expr: Expr, known: IsData) -> Monomial:
    """1 / expr as a monomial: the reciprocals of its factors."""
    if known(expr):
        return ((1.0 / expr,), ())
    if isinstance(expr, Let):
        return _reciprocal(expr.expression, known)
    found = RECIPROCALS[expr.operation](expr, known) if applies(expr, *RECIPROCALS) else None
    return ((), (Apply(op.DIVIDE, (ONE, expr), (), expr.plates, expr.domain),)) if found is None else found


def _one_over_product(expr: Apply, known: IsData) -> Monomial:
    (c, a), (d, b) = (_reciprocal(arg, known) for arg in expr.args)
    return c + d, a + b


def _one_over_quotient(expr: Apply, known: IsData) -> Monomial | None:
    (c, a), numerator = _reciprocal(expr.args[0], known), expand(expr.args[1], known)
    return (c + numerator[0][0], a + numerator[0][1]) if len(numerator) == 1 else None


def _one_over_exp(expr: Apply, known: IsData) -> Monomial:
    return (), (Apply(op.EXP, (-expr.args[0],), (), expr.plates, expr.domain),)


def _one_over_power(expr: Apply, known: IsData) -> Monomial | None:
    exponent = expr.option("exponent")
    if exponent <= 0 or exponent != int(exponent):
        return None
    c, a = _reciprocal(expr.args[0], known)
    return c * exponent, a * exponent


RECIPROCALS: dict[Operation, Callable[[Apply, IsData], Monomial | None]] = {
    op.MULTIPLY: _one_over_product,
    op.DIVIDE: _one_over_quotient,
    op.EXP: _one_over_exp,
    op.POWER: _one_over_power,
}


# Logarithms -----------------------------------------------------------------------------------------------------------


def _logarithm(expr: Expr, known: IsData) -> list[Monomial]:
    """log of a product of positive numbers is a sum, log of exp(g) is g."""
    if isinstance(expr, Let) and not known(expr):
        return _logarithm(expr.expression, known)
    if applies(expr, op.EXP) and not known(expr):
        return expand(expr.args[0], known)
    if applies(expr, *LOGARITHMS) and not known(expr) and all(arg.domain.is_bounded for arg in expr.args):
        return LOGARITHMS[expr.operation](expr, known)
    node = Apply(op.LOG, (expr,), (), expr.plates, real)
    return [((node,), ())] if known(expr) else [((), (node,))]


def _log_of_product(expr: Apply, known: IsData) -> list[Monomial]:
    first, second = (_logarithm(arg, known) for arg in expr.args)
    return first + second


def _log_of_quotient(expr: Apply, known: IsData) -> list[Monomial]:
    first, second = (_logarithm(arg, known) for arg in expr.args)
    return first + _scaled(MINUS_ONE, second)


def _log_of_power(expr: Apply, known: IsData) -> list[Monomial]:
    exponent = Constant(np.array(float(expr.option("exponent"))), (), real)
    return _scaled(exponent, _logarithm(expr.args[0], known))


LOGARITHMS: dict[Operation, Callable[[Apply, IsData], list[Monomial]]] = {
    op.MULTIPLY: _log_of_product,
    op.DIVIDE: _log_of_quotient,
    op.POWER: _log_of_power,
}
"""Of operands that are above zero."""
