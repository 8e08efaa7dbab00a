"""Whether an expression is an even or an odd function of a variable: x^2 and max(x, -x) do not depend on its sign.

A posterior may then have a mode on either side, and a run from one start sees one of them.
"""

from __future__ import annotations

from collections.abc import Callable

from ..language import operations as op
from ..language.nodes import Apply, Expr, Gather, Let, Random, applies
from ..language.operations import Operation

FREE, EVEN, ODD, NEITHER = "free", "even", "odd", "neither"


def parity(expr: Expr, variable: Expr) -> str:
    """How the expression changes with the sign of all elements of the variable."""
    if expr is variable:
        return ODD
    match expr:
        case Let(expression=expression):
            return parity(expression, variable)
        case Gather(source=source, index=index):
            return parity(source, variable) if parity(index, variable) == FREE else NEITHER
        case Random():
            return FREE
        case Apply(args=args):
            return _applied(expr, [parity(arg, variable) for arg in args])
    return FREE


def _applied(expr: Apply, found: list[str]) -> str:
    if NEITHER in found:
        return NEITHER
    if set(found) == {FREE}:
        return FREE
    if ODD not in found:
        return EVEN
    return PARITY[expr.operation](expr, found) if expr.operation in PARITY else NEITHER


def _of_product(expr: Apply, found: list[str]) -> str:
    return ODD if found.count(ODD) % 2 else EVEN


def _of_sum(expr: Apply, found: list[str]) -> str:
    return ODD if set(found) == {ODD} else NEITHER


def _of_power(expr: Apply, found: list[str]) -> str:
    return {0: EVEN, 1: ODD}.get(expr.option("exponent") % 2, NEITHER)


def _of_maximum(expr: Apply, found: list[str]) -> str:
    left, right = expr.args
    return EVEN if _opposite(left, right) or _opposite(right, left) else NEITHER


def _opposite(left: Expr, right: Expr) -> bool:
    """Whether the right side is minus the left one."""
    return applies(right, op.NEGATE) and right.args[0] is left


PARITY: dict[Operation, Callable[[Apply, list[str]], str]] = {
    op.ADD: _of_sum,
    op.SUBTRACT: _of_sum,
    op.NEGATE: _of_sum,
    op.SUM: _of_sum,
    op.MULTIPLY: _of_product,
    op.DIVIDE: _of_product,
    op.DOT: _of_product,
    op.POWER: _of_power,
    op.MAX: _of_maximum,
    op.TANH: _of_sum,
}
"""Of what holds something odd and nothing that is neither; other operations are neither."""
