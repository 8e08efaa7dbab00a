"""Whether the definitions of components tell them apart, or they may be permuted."""

from __future__ import annotations

from ..graph import Facts
from ..language.nodes import Apply, Expr, Let, Plate, Random, parents
from .known import ungathered


def untold(facts: Facts, components: list[Random], axis: Plate) -> bool:
    """Whether neither earlier data nor a fixed argument of their definitions tell components apart."""
    pairs = {pair.variable: pair.members for pair in facts.pairs}
    defined = [member for node in components for member in pairs.get(node, (node,))]
    told = any(_tells(arg, axis) for node in defined for arg in parents(node))
    return not told and not any(node.name in facts.given for node in defined)


def _tells(expr: Expr, axis: Plate) -> bool:
    """Whether an expression holds data that differ along a plate."""
    if axis not in expr.plates or isinstance(ungathered(expr), Random):
        return False
    return any(_tells(child, axis) for child in parents(expr)) if isinstance(expr, (Apply, Let)) else True
