"""Inputs that are nothing but bounds of intervals: an infinite one bounds nothing, as a number or an expression may."""

from __future__ import annotations

from collections.abc import Iterator

from ...factors.factor import Chain, Switch, Term
from ..language.model import Model
from ..language.nodes import Expr, Gather, Input, Let, Random, inside


def bounds_alone(model: Model) -> set[str]:
    """The inputs that may be infinite: those of which no use is another than as a bound, perhaps of chosen elements."""
    bounds: set[str] = set()
    others: list[Expr] = list(model.constraints.values())
    for node in (*model.randoms.values(), *model.lets.values()):
        for bound, expr in _uses(node):
            while bound and isinstance(expr, Gather):
                others.append(expr.index)
                expr = expr.source
            if bound and isinstance(expr, Input):
                bounds.add(expr.name)
            else:
                others.append(expr)
    return bounds - {part.name for part in inside(others) if isinstance(part, Input)}


def _uses(node: Random | Let) -> Iterator[tuple[bool, Expr]]:
    """What a variable is made of, and whether its factor reads it as a bound."""
    if isinstance(node, Let):
        yield False, node.expression
        return
    match node.term:
        case Switch(selector=selector, terms=terms):
            yield False, selector
        case Chain(first=first, then=then, parent=parent):
            terms = node.term.terms
            yield from ((False, part.selector) for part in (first, then) if isinstance(part, Switch))
            yield from [] if parent is None else [(False, parent)]
        case Term() as term:
            terms = (term,)
    for term in terms:
        yield from ((edge in term.factor.bounds, arg) for edge, arg in term.args.items())
