"""Which differences are positive because a constraint says so: after `m.constrain(t > t[parent])`, `t - t[parent]`."""

from __future__ import annotations

from .atoms import atom_key
from .nodes import Constant, Expr, Random, applies, source_of, unnamed
from .operations import GREATER, SUBTRACT

Pair = tuple[Expr, Expr]  # the larger number and the smaller one


def order_of(constraint: Expr) -> Pair | None:
    """The variables, or elements of them, that a constraint compares as `a > b` or `a - b > 0`, else None."""
    constraint = unnamed(constraint)
    if not applies(constraint, GREATER) or not all(arg.domain.is_numeric for arg in constraint.args):
        return None
    larger, smaller = constraint.args
    left, right = unnamed(larger), unnamed(smaller)
    if _is_zero(smaller) and applies(left, SUBTRACT):
        larger, smaller = left.args
    elif _is_zero(larger) and applies(right, SUBTRACT):
        smaller, larger = right.args
    are_chosen = isinstance(source_of(larger), Random) and isinstance(source_of(smaller), Random)
    return (larger, smaller) if are_chosen else None


def remember(constraint: Expr) -> None:
    """From now on the difference of the two numbers that a constraint compares is positive."""
    pair = order_of(constraint)
    if pair is not None:
        source_of(pair[0]).__dict__.setdefault("known_order", []).append(pair)


def is_above(larger: Expr, smaller: Expr) -> bool:
    """Whether a constraint of the model says that the one number is larger than the other."""
    known = source_of(larger).__dict__.get("known_order", ())
    asked = (atom_key(larger), atom_key(smaller)) if known else None
    return any((atom_key(above), atom_key(below)) == asked for above, below in known)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Constant) and bool((expr.value == 0).all())
