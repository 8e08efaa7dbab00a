"""Statements without noise in which the data make all variables cancel: an element against itself, a coefficient of 0.

What is left of `skill[winner] > skill[loser]` where both are one player is 0 > 0, for which a site has no moments.
`compiler/language/cancelled.py` refuses expressions that cancel whatever the data are.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

import numpy as np

from ...compiler.algebra.known import Known
from ...compiler.algebra.linear import linear_form
from ...compiler.blocks.site import LinearForm, LinearTerm
from ...compiler.data.bind import Binding
from ...compiler.language.model import Model
from ...compiler.language.nodes import Apply, Constant, Expr, Let, Plate
from ...factors.errors import DataError, UnsupportedError
from ...factors.switches import double_precision
from ..blocks.site.site_data import form_offset, product
from ..values.evaluate import value
from ..values.plated import Placed, spread
from ..values.scope import Scope

NOTHING = 1e-12  # of the coefficients that cancel: rounding


class Statement(NamedTuple):
    """A number that is compared with zero (`greater`) or exactly observed, and what is wanted of it."""

    name: str
    expr: Expr
    number: Expr
    greater: bool
    wanted: np.ndarray | bool | None


def check_sharp(model: Model, scope: Scope, binding: Binding) -> None:
    """Raises DataError, with the place, where such a statement depends on no variable and does not follow."""
    known = Known(frozenset(binding.observed) - frozenset(binding.missing), {})
    for statement in _statements(model, binding):
        if not known(statement.number):
            _check(statement, known, scope)


def _statements(model: Model, binding: Binding) -> Iterator[Statement]:
    for name, expr in model.constraints.items():
        yield from (_comparison(name, part, True) for part in _conjuncts(expr) if _compares(part))
    for name, let in model.lets.items():
        wanted = binding.observed.get(name) if name not in binding.missing else None
        if _compares(let.expression):
            yield _comparison(name, let.expression, wanted)
        elif wanted is not None and let.domain.is_real:
            yield Statement(name, let.expression, let.expression, False, wanted)


def _conjuncts(expr: Expr) -> Iterator[Expr]:
    expr = expr.expression if isinstance(expr, Let) else expr
    if isinstance(expr, Apply) and expr.op == "and":
        for arg in expr.args:
            yield from _conjuncts(arg)
    else:
        yield expr


def _compares(expr: Expr) -> TypeGuard[Apply]:
    kinds = {arg.domain.kind for arg in expr.args} if isinstance(expr, Apply) and expr.op == "greater" else set()
    return bool(kinds) and not kinds & {"category", "count"}


def _comparison(name: str, expr: Apply, wanted: np.ndarray | bool | None) -> Statement:
    return Statement(name, expr, operator.sub(*expr.args), True, wanted)


def _check(statement: Statement, known: Known, scope: Scope) -> None:
    try:
        form = linear_form(statement.number, known)
    except UnsupportedError:
        return
    if form is None or _always_depends(form):
        return
    plates = statement.number.plates
    with double_precision():
        gone = _cancelled(form, plates, scope)
        left = np.asarray(spread(form_offset(form, scope), plates, scope.sizes))
    if not statement.greater:
        wrong = gone
    elif statement.wanted is None:
        wrong = gone & (left == 0)
    else:
        wrong = gone & ((left > 0) != np.asarray(statement.wanted, bool))
    if wrong.any():
        place = [int(i) for i in np.argwhere(wrong)[0]]
        where = f" at {place}" + (f" and {int(wrong.sum()) - 1} more" if wrong.sum() > 1 else "") if place else ""
        raise DataError(
            f"'{statement.name}', {statement.expr}{where}: the data make all variables cancel (an element beside "
            "itself, or a coefficient of zero), so that nothing random is left"
            + (", and the comparison does not hold. " if statement.greater else " to observe. ")
            + "Correct the data, or leave such instances out."
        )


def _always_depends(form: LinearForm) -> bool:
    """Whether this is plain without the data: every variable once, none times data."""
    once = len({term.variable for term in form.terms}) == len(form.terms)
    fixed = all(
        term.direction is None and all(isinstance(c, Constant) and np.all(c.value != 0) for c in term.coefficients)
        for term in form.terms
    )
    return not form.terms or bool(form.noise) or (once and fixed)


def _cancelled(form: LinearForm, plates: tuple[Plate, ...], scope: Scope) -> np.ndarray:
    """Where the coefficients of every element add up to nothing."""
    positions = [_position(term, plates, scope) for term in form.terms]
    weights = [_weight(term, plates, scope) for term in form.terms]
    found = np.ones([scope.sizes[plate.name] for plate in plates], bool)
    for first, own in enumerate(form.terms):
        total, size = 0.0, 0.0
        for j, term in enumerate(form.terms):
            if term.variable is own.variable:
                same = (positions[j] == positions[first])[..., None]
                total, size = total + same * weights[j], size + same * np.abs(weights[j])
        found &= (np.abs(total) <= NOTHING * size).all(-1)
    return found


def _position(term: LinearTerm, plates: tuple[Plate, ...], scope: Scope) -> np.ndarray:
    """The number of the element that each instance uses."""
    shape = [scope.sizes[plate.name] for plate in term.variable.plates]
    numbers = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    placed = value(term.element, scope.with_data({term.variable.name: numbers}))
    return np.asarray(spread(placed, plates, scope.sizes))


def _weight(term: LinearTerm, plates: tuple[Plate, ...], scope: Scope) -> np.ndarray:
    """What an element is multiplied by, with one event axis."""
    coefficient = np.asarray(spread(product(term.coefficients, scope), plates, scope.sizes), float)[..., None]
    if term.direction is None:
        return coefficient
    direction: Placed = value(term.direction, scope)
    return coefficient * np.asarray(spread(direction, plates, scope.sizes), float)
