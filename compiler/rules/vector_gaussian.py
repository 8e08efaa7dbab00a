"""Linear forms of whole random vectors: multiples of elements by data, and a vector of data."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping

from ...factors.factor import Factor
from ...factors.roles import LinearGaussian
from ..algebra.linear import element_of
from ..blocks.slots import Branch
from ..language.atoms import MINUS_ONE, ONE
from ..language.monomials import SUBTRACTED
from ..language.nodes import Expr, Let, applies
from ..language.operations import DIVIDE, MULTIPLY
from .slot_finder import Finder


def vector_branch(finder: Finder, factor: Factor, out: Expr, args: Mapping[str, Expr]) -> Branch | None:
    """A vector Gaussian of known precision in closed form over vectors; None where it is no linear form of these."""
    role = factor.role
    assert isinstance(role, LinearGaussian)
    precision = args[role.precision]
    if not finder.given(precision):
        return None
    mean, own = _parts(args[role.mean], ONE, finder), _parts(out, MINUS_ONE, finder)
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
    return Branch(factor, "vector", None, {role.precision: precision}, (), totals, shift)


def _parts(expr: Expr, scale: Expr, finder: Finder) -> list[tuple[Expr, Expr]] | None:
    """Pairs of a number of data and a vector, which is data or an element; None where it is no such sum."""
    if finder.given(expr):
        return [(scale, expr)]
    if isinstance(expr, Let):
        return _parts(expr.expression, scale, finder)
    variable = element_of(expr, finder.given)
    if variable is not None:
        return [(scale, expr)] if variable.domain.is_vector else None
    if applies(expr, *SUBTRACTED):
        signs = zip(expr.args, SUBTRACTED[expr.operation], strict=True)
        found = [_parts(part, MINUS_ONE * scale if minus else scale, finder) for part, minus in signs]
        return None if None in found else [pair for own in found for pair in own or ()]
    if applies(expr, *SCALED):
        left, right = expr.args
        vector, number = (left, right) if left.domain.is_vector else (right, left)
        if finder.given(number) and not number.domain.is_vector:
            return _parts(vector, SCALED[expr.operation](scale, number), finder)
    return None


SCALED = {MULTIPLY: operator.mul, DIVIDE: operator.truediv}  # a vector by a number
