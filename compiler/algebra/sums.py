"""A sum over a plate in a linear form: as many terms, where the plate is small and its size known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ...factors.domains import index
from ..language.atoms import Monomial, variables
from ..language.nodes import Apply, Expr, Gather, Plate, Position, applies
from ..language.operations import MULTIPLY, SUM

LARGEST = 32  # terms of a linear form that a sum becomes: each instance of its factor keeps a message for all of them


def unrolled(monomial: Monomial, sizes: Mapping[str, int]) -> list[Monomial]:
    """A monomial that is a sum of data times single elements as one monomial for each element; others as they are."""
    coefficients, atoms = monomial
    if len(atoms) != 1 or not applies(atoms[0], SUM):
        return [monomial]
    over, product = atoms[0].option("over"), atoms[0].args[0]
    size = sizes.get(over.name, 1)  # a plan that runs knows all sizes; without data one term shows its form
    data, inner = _split(product)
    if size > LARGEST or inner is None:
        return [monomial]
    positions = [Position(i, (), index(over), str(i)) for i in range(size)]
    return [((*coefficients, *(at(c, over, i) for c in data)), (at(inner, over, i),)) for i in positions]


def _split(product: Expr) -> tuple[tuple[Expr, ...], Expr | None]:
    """The data factor and the only random factor of what `summed` made; None where there are several."""
    if applies(product, MULTIPLY):
        left, right = product.args
        return ((left,), right) if not variables(left) else ((), None)
    return (), product


def at(expr: Expr, over: Plate, position: Position) -> Expr:
    """The expression at one position of a plate."""
    if over not in set(expr.plates):
        return expr
    plates = tuple(plate for plate in expr.plates if plate is not over)
    if isinstance(expr, Apply):
        return dataclasses.replace(expr, args=tuple(at(arg, over, position) for arg in expr.args), plates=plates)
    return Gather(expr, position, plates, expr.domain, over)
