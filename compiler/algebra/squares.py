"""A square against data: r^2 > c is r > sqrt(c) or -r > sqrt(c), and c > r^2 is both of their opposites."""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import numpy as np

from ..language.atoms import ONE, atom_key, product
from ..language.monomials import expand
from ..language.nodes import Apply, Constant, Expr, IsData
from ..language.operations import MAX, POWER
from ..language.operators import apply


class Square(NamedTuple):
    """base^2 against root^2 in one comparison: `outside` means base^2 > root^2; a negative c counts as zero."""

    base: Expr
    root: Expr
    outside: bool

    def inside(self) -> tuple[Expr, Expr]:
        """The two comparisons that must both hold for base^2 < root^2."""
        return self.root > self.base, self.base > -self.root


def square_of(comparison: Apply, known: IsData) -> Square | None:
    """What a comparison of a constant times the square of a number with data says; None for anything else."""
    left, right = (expand(arg, known) for arg in comparison.args)
    parts = [(1.0, *part) for part in left] + [(-1.0, *part) for part in right]
    squares = [part for part in parts if part[2]]
    if len(squares) != 1 or len(squares[0][2]) != 2 or len({atom_key(atom) for atom in squares[0][2]}) != 1:
        return None
    sign, coefficients, (base, _) = squares[0]
    if not all(isinstance(c, Constant) and c.value.ndim == 0 for c in coefficients):
        return None  # the sign of data is not known here
    scale = sign * float(np.prod([c.value for c in coefficients if isinstance(c, Constant)]))
    if scale == 0.0:
        return None
    rest = [product(own) * (-s / scale) for s, own, atoms in parts if not atoms]
    bound = functools.reduce(operator.add, rest, 0.0 * ONE)
    return Square(base, apply(POWER, apply(MAX, bound, 0.0), exponent=0.5), scale > 0.0)
