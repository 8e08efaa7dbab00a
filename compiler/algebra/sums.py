"""A sum over a plate in a linear form: as many terms, where the plate is small and its size known."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Mapping

from ...factors.domains import index
from ..language.atoms import Monomial, product, variables
from ..language.monomials import expand
from ..language.nodes import Apply, Expr, Gather, IsData, Let, Places, Plate, Position, applies
from ..language.operations import MULTIPLY, SUM

LARGEST = 32  # terms of a linear form that a sum becomes: each instance of its factor keeps a message for all of them


def all_unrolled(terms: list[Monomial], sizes: Mapping[str, int]) -> list[Monomial]:
    """The monomials with all small sums among them unrolled."""
    return [part for monomial in terms for part in unrolled(monomial, sizes)]


def unrolled(monomial: Monomial, sizes: Mapping[str, int]) -> list[Monomial]:
    """A monomial that is a sum of data times single elements as one monomial for each element; others as they are."""
    coefficients, atoms = monomial
    if len(atoms) != 1 or not applies(atoms[0], SUM):
        return [monomial]
    over, term = atoms[0].option("over"), atoms[0].args[0]
    size = sizes.get(over.name, 1)  # a plan that runs knows all sizes; without data one term shows its form
    data, inner = _split(term)
    if size > LARGEST or inner is None:
        return [monomial]
    positions = [Position(i, (), index(over), str(i)) for i in range(size)]
    return [((*coefficients, *(at(c, over, i) for c in data)), (at(inner, over, i),)) for i in positions]


def spelled_out(expr: Expr, known: IsData, sizes: Mapping[str, int]) -> Expr:
    """An expression with the sums by groups in it as sums of their terms, where these are few."""
    if applies(expr, SUM) and isinstance(expr.over, Places) and sizes[expr.over.name] <= LARGEST:
        terms = all_unrolled(expand(expr, known), sizes)
        return functools.reduce(operator.add, (product((*data, *atoms)) for data, atoms in terms))
    if isinstance(expr, Let) and not known(expr) and not expr.domain.is_discrete:
        return spelled_out(expr.expression, known, sizes)
    if isinstance(expr, Apply):
        args = tuple(spelled_out(arg, known, sizes) for arg in expr.args)
        same = all(new is old for new, old in zip(args, expr.args, strict=True))
        return expr if same else dataclasses.replace(expr, args=args)
    return expr


def _split(term: Expr) -> tuple[tuple[Expr, ...], Expr | None]:
    """The data factor and the only random factor of what `summed` made; None where there are several."""
    if applies(term, MULTIPLY):
        left, right = term.args
        return ((left,), right) if not variables(left) else ((), None)
    return (), term


def at(expr: Expr, over: Plate, position: Position) -> Expr:
    """The expression at one position of a plate."""
    if over not in set(expr.plates):
        return expr
    plates = tuple(plate for plate in expr.plates if plate is not over)
    if isinstance(expr, Apply):
        return dataclasses.replace(expr, args=tuple(at(arg, over, position) for arg in expr.args), plates=plates)
    return Gather(expr, position, plates, expr.domain, over)
