"""The probability of the contrary, 1 - p: of an outcome of two it is the probability of the other one."""

from __future__ import annotations

from ..language.nodes import Constant, Expr, applies, unnamed
from ..language.operations import SUBTRACT


def complement_of(expr: Expr) -> Expr | None:
    """p where an expression is 1 - p, else None."""
    root = unnamed(expr)
    if not applies(root, SUBTRACT) or not root.domain.is_unit:
        return None
    one, other = root.args
    plain = isinstance(one, Constant) and one.value.ndim == 0 and float(one.value) == 1.0
    return other if plain else None
