"""The numbers and the data that expressions are composed of, where no rule gives the moments of the whole."""

from __future__ import annotations

from collections.abc import Iterable

from ...factors.errors import UnsupportedError
from ..blocks.energy import Composition
from ..language.atoms import atom_key
from ..language.nodes import Apply, Expr, IsData, Let, applies
from ..language.operations import STACK, Reach
from .has_moments import random_elements
from .linear import element_of, linear_form

_KINDS = ("real", "positive", "unit", "boolean", "category")  # of numbers whose beliefs have points


def composition(exprs: Iterable[Expr], known: IsData) -> Composition | None:
    """What expressions are composed of; None where that is no function of a few numbers of each instance.

    A real number that is linear in Gaussian variables is taken as a whole, unless it shares one with another number.
    """
    exprs = tuple(exprs)
    for forms in (True, False):
        found = _collected(exprs, known, forms)
        if found is not None and _independent(found.numbers, known):
            return found
    return None


def _collected(exprs: tuple[Expr, ...], known: IsData, forms: bool) -> Composition | None:
    numbers: dict[tuple, Expr] = {}
    data: dict[tuple, Expr] = {}
    stack = list(reversed(exprs))
    while stack:
        node = stack.pop()
        if known(node):
            data.setdefault(atom_key(node), node)
        elif _is_number(node, known, forms):
            numbers.setdefault(atom_key(node), node)
        elif isinstance(node, Let):
            stack.append(node.expression)
        elif isinstance(node, Apply) and (node.operation.reach is Reach.ELEMENT or _is_stack(node)):
            stack.extend(reversed(node.args))
        else:
            return None
    return Composition(tuple(numbers.values()), tuple(data.values()))


def _is_stack(node: Apply) -> bool:
    """Whether an operation makes a vector of numbers, which are those of one instance."""
    return applies(node, STACK) and node.over is None


def _is_number(node: Expr, known: IsData, forms: bool) -> bool:
    if element_of(node, known) is not None:
        return node.domain.kind in _KINDS
    if not node.domain.is_real:
        return False
    try:
        form = linear_form(node, known)
    except UnsupportedError:
        return False
    return form is not None and (forms or len(form.terms) == 1)


def _independent(numbers: tuple[Expr, ...], known: IsData) -> bool:
    """Whether no two numbers use one random element."""
    found = [random_elements(number, known) for number in numbers]
    return sum(map(len, found)) == len(set().union(*found))
