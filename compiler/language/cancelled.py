"""Expressions in which all variables cancel, such as a > a: they are constants, and refused where they are named."""

from __future__ import annotations

import collections
from collections.abc import Iterator

import numpy as np

from ...factors.arrays import Numeric
from ...factors.errors import ModelError, UnsupportedError
from .atoms import MINUS_ONE, Monomial, atom_key, powers
from .monomials import expand
from .nodes import Apply, Constant, Expr, Gather, applies, is_data, parents
from .operations import GREATER


def check_cancelled(owner: str, expression: Expr) -> None:
    """Raises ModelError where the variables of a comparison in an expression cancel.

    A number of which nothing random is left, r - r, is known, and has a marginal without a spread.
    """
    for node in _comparisons(expression):
        if not is_data(node) and _cancels(*node.args):
            raise ModelError(
                f"{owner}: the variables in '{node}' cancel, so that it is the same whatever their values. Correct the "
                "expression; a truth value that is known needs no variable."
            )


def _comparisons(expression: Expr) -> Iterator[Apply]:
    """The comparisons of numbers that an expression is made of, down to what has a name of its own."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if applies(node, GREATER) and all(arg.domain.is_numeric for arg in node.args):
            yield node
        if isinstance(node, (Apply, Gather)):
            stack.extend(parents(node))


def _cancels(left: Expr, right: Expr) -> bool:
    """Whether nothing random is left of the difference of two expressions, written as a polynomial."""
    try:
        parts = expand(left, is_data) + [((MINUS_ONE, *c), atoms) for c, atoms in expand(right, is_data)]
    except UnsupportedError:
        return False
    totals: collections.defaultdict[_Like, Numeric] = collections.defaultdict(float)
    for part in parts:
        key, number = _like(part)
        if key[0]:
            totals[key] = totals[key] + number
    return all(np.all(total == 0.0) for total in totals.values())


_Like = tuple[frozenset, frozenset]  # the powers of atoms, and the data


def _like(part: Monomial) -> tuple[_Like, Numeric]:
    """What like terms have in common, the powers of their atoms and their data, and the number before it."""
    coefficients, atoms = part
    number, data = 1.0, collections.Counter()
    for factor in coefficients:
        if isinstance(factor, Constant) and not factor.plates:
            number = number * np.asarray(factor.value, float)
        else:
            data[atom_key(factor)] += 1
    bases = frozenset((key, exponent) for key, (_, exponent) in powers(atoms).items())
    return (bases, frozenset(data.items())), number
