"""Linear forms of whole random vectors: multiples of elements by data, and a vector of data."""

from __future__ import annotations

import functools
import operator

from .atoms import Branch, Finder
from .expressions import Apply, Expr, Let
from .linear import ONE, element_of
from .polynomial import MINUS_ONE


def vector_branch(finder: Finder, factor, out: Expr, args) -> Branch | None:
    """A vector Gaussian of known precision in closed form over vectors; None where it is no linear form of these."""
    if not finder.given(args["precision"]):
        return None
    mean, own = _parts(args["mean"], ONE, finder), _parts(out, MINUS_ONE, finder)
    if mean is None or own is None:
        return None
    members: dict[int, list[Expr]] = {}
    shifts: list[Expr] = []
    for coefficient, element in mean + own:
        if finder.given(element):
            shifts.append(coefficient * element)
            continue
        variable = element_of(element, finder.given)
        assert variable is not None
        members.setdefault(finder.edges.number(variable, element, None, element), []).append(coefficient)
    totals = tuple((number, functools.reduce(operator.add, found)) for number, found in members.items())
    shift = functools.reduce(operator.add, shifts) if shifts else None
    return Branch(factor, "vector", None, {"precision": args["precision"]}, (), totals, shift)


def _parts(expr: Expr, scale: Expr, finder: Finder) -> list[tuple[Expr, Expr]] | None:
    """Pairs of a number of data and a vector, which is data or an element; None where it is no such sum."""
    if finder.given(expr):
        return [(scale, expr)]
    if isinstance(expr, Let):
        return _parts(expr.expression, scale, finder)
    variable = element_of(expr, finder.given)
    if variable is not None:
        return [(scale, expr)] if variable.domain.kind == "vector" else None
    if not isinstance(expr, Apply):
        return None
    if expr.op == "negate":
        return _parts(expr.args[0], MINUS_ONE * scale, finder)
    left, right = expr.args[0], expr.args[-1]
    if expr.op in ("add", "subtract"):
        first = _parts(left, scale, finder)
        second = _parts(right, scale if expr.op == "add" else MINUS_ONE * scale, finder)
        return None if first is None or second is None else first + second
    if expr.op in ("multiply", "divide"):
        vector, number = (left, right) if left.domain.kind == "vector" else (right, left)
        if finder.given(number) and number.domain.kind != "vector":
            return _parts(vector, scale / number if expr.op == "divide" else scale * number, finder)
    return None
