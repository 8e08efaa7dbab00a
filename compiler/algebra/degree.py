"""The degree of an expression in one of its parts, where that is at most one."""

from __future__ import annotations

from ..language.nodes import Apply, Constant, Expr, Input, Let, Random, parents
from ..language.operations import Reach


def degree_in(expr: Expr, variable: Expr) -> int | None:
    """0 where `expr` does not hold `variable`, 1 where it is linear in it, element by element; None otherwise."""
    if expr is variable:
        return 1
    if isinstance(expr, (Constant, Input, Random)):
        return 0
    if isinstance(expr, Let):
        return degree_in(expr.expression, variable)
    degrees = [degree_in(child, variable) for child in parents(expr)]
    if not any(degree != 0 for degree in degrees):
        return 0
    found = [degree for degree in degrees if degree is not None]
    if len(found) < len(degrees) or not isinstance(expr, Apply) or expr.operation.reach is Reach.SEVERAL:
        return None
    return 1 if expr.operation.degree(found) == 1 else None
