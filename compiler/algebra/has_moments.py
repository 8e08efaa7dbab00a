"""Which expectations VMP has: which expressions have moments by its rules, and where EP is the better choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...factors.errors import UnsupportedError
from ...factors.moments import BY_KIND
from ..language.nodes import Apply, Expr, Gather, IsData, Let, Random, applies, parents
from ..language.operations import DIVIDE, MAX, POWER, Operation
from .averages import NUMBER, POLYNOMIAL
from .averaging import average, readable, variable_of


def no_moments(exprs: Iterable[tuple[Expr, str]], known: IsData) -> Expr | None:
    """The first expression whose moments no rule of VMP gives, each read as the given kind of domain."""
    return next((found for expr, kind in exprs if (found := _without_moments(expr, kind, known)) is not None), None)


def better_by_ep(exprs: Iterable[Expr], known: IsData) -> str:
    """Why EP is tried before VMP where both have a rule; nothing where VMP comes first."""
    stack = list(exprs)
    while stack:
        node = stack.pop()
        if known(node) or isinstance(node, Random):
            continue
        if applies(node, *BETTER_BY_EP) and (reason := BETTER_BY_EP[node.operation](node, known)):
            return reason
        stack.extend(parents(node))
    return ""


def _quotient(expr: Apply, known: IsData) -> str:
    return _inverse(expr, expr.args[1], known)


def _power(expr: Apply, known: IsData) -> str:
    return _inverse(expr, expr.args[0], known) if expr.option("exponent") < 0 else ""


def _inverse(expr: Apply, below: Expr, known: IsData) -> str:
    if known(below) or not below.domain.is_positive or _powered(below) is None:
        return ""
    return f"{expr} has no mean in VMP where the shape of the belief of {_powered(below)} is small"


def _maximum(expr: Apply, known: IsData) -> str:
    return f"{expr} has a kink: EP is exact on both sides of it, where VMP averages over them"


BETTER_BY_EP: dict[Operation, Callable[[Apply, IsData], str]] = {DIVIDE: _quotient, POWER: _power, MAX: _maximum}


def not_independent(exprs: Iterable[Expr], known: IsData) -> str:
    """Why VMP, which takes the arguments of a factor for independent, is poor where two of them use one variable."""
    seen: set[tuple[Random, tuple[int, ...]]] = set()
    for expr in exprs:
        here = random_elements(expr, known)
        if shared := seen & here:
            return f"two arguments use {min(v.name for v, _ in shared)}, which VMP would take for independent"
        seen |= here
    return ""


def _powered(expr: Expr) -> Random | None:
    """The variable that an expression is a power of."""
    while isinstance(expr, Let) or applies(expr, POWER):
        expr = expr.expression if isinstance(expr, Let) else expr.args[0]
    return variable_of(expr)


def _without_moments(expr: Expr, kind: str, known: IsData) -> Expr | None:
    """The first expression below `expr`, read as `kind`, for which there is no rule."""
    if kind not in (NUMBER, POLYNOMIAL):
        if known(expr) or kind not in BY_KIND:
            return None
        if isinstance(expr, Let):
            return _without_moments(expr.expression, kind, known)
        if isinstance(expr, Gather):
            return _without_moments(expr.source, kind, known)
        if not isinstance(expr, Apply):
            return None if readable(kind, expr.domain.kind) else expr
    try:
        rule = average(expr, kind, known)
    except UnsupportedError:
        return expr
    given = kind in (POLYNOMIAL, rule.gives) or readable(kind, rule.gives)
    return no_moments(rule.parts, known) if given else expr


def random_elements(expr: Expr, known: IsData) -> set[tuple[Random, tuple[int, ...]]]:
    """The elements of random variables that an expression is made of."""
    return {element for element in _elements(expr) if not known(element[0])}


def _elements(expr: Expr) -> set[tuple[Random, tuple[int, ...]]]:
    """The variables of an expression, each with the nodes of the indices that choose its elements."""
    indices, base = [], expr
    while isinstance(base, Gather):
        indices.append(id(base.index))
        base = base.source
    if isinstance(base, Random):
        return {(base, tuple(indices))}
    return set().union(*map(_elements, parents(expr)))
