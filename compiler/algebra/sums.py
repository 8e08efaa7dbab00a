"""A sum over a plate in a linear form: as many terms, where the plate is small and its size known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ...factors.domains import index
from ..language.atoms import Monomial, variables
from ..language.nodes import Apply, Constant, Expr, Gather, Plate, applies
from ..language.operations import MULTIPLY, SUM

# Terms of a linear form that a sum becomes, of each of which every instance of its factor keeps a message; what is
# longer is one term, along a direction of a joint belief.
LARGEST = 32


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
    positions = [Constant(np.array(i, np.int32), (), index(over)) for i in range(size)]
    return [((*coefficients, *(at(c, over, i) for c in data)), (at(inner, over, i),)) for i in positions]


def summed(expr: Expr) -> tuple[Plate, tuple[Expr, ...], Expr] | None:
    """A sum of data times single elements as its plate, the data and the element; None for any other expression."""
    if not applies(expr, SUM):
        return None
    data, inner = _split(expr.args[0])
    return None if inner is None else (expr.option("over"), data, inner)


def _split(product: Expr) -> tuple[tuple[Expr, ...], Expr | None]:
    """The data factor and the only random factor of what `summed` made; None where there are several."""
    if applies(product, MULTIPLY):
        left, right = product.args
        return ((left,), right) if not variables(left) else ((), None)
    return (), product


def at(expr: Expr, over: Plate, position: Constant) -> Expr:
    """The expression at one position of a plate."""
    if over not in set(expr.plates):
        return expr
    plates = tuple(plate for plate in expr.plates if plate is not over)
    if isinstance(expr, Apply):
        return dataclasses.replace(expr, args=tuple(at(arg, over, position) for arg in expr.args), plates=plates)
    return Gather(expr, position, plates, expr.domain, over)
