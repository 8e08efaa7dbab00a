"""Linear forms: real expressions that are linear in Gaussian variables, the shape in which EP meets them."""

from __future__ import annotations

from collections.abc import Callable

from .expressions import Apply, Expr, Gather, Let, Random
from .graph import LinearForm, LinearTerm
from .polynomial import monomials


def linear_form(expr: Expr, known: Callable[[Expr], bool]) -> LinearForm | None:
    """`expr` as a linear form of Gaussian variables, or None where it is not linear in them."""
    terms, offsets = [], []
    for coefficients, atoms in monomials(expr, known):
        if not atoms:
            offsets.append(coefficients)
            continue
        term = _term(atoms[0], coefficients, known) if len(atoms) == 1 else None
        if term is None:
            return None
        terms.append(term)
    return LinearForm(tuple(terms), tuple(offsets))


def _term(atom: Expr, coefficients: tuple[Expr, ...], known: Callable[[Expr], bool]) -> LinearTerm | None:
    direction = None
    if isinstance(atom, Apply) and atom.op == "dot":
        left, right = atom.args
        if known(left):
            left, right = right, left
        if not known(right):
            return None
        atom, direction = left, right
    variable = element_of(atom, known)
    if variable is None or variable.domain.kind != ("real" if direction is None else "vector"):
        return None
    return LinearTerm(variable, atom, coefficients, direction)


def element_of(expr: Expr, known: Callable[[Expr], bool]) -> Random | None:
    """The variable of which `expr` is an element chosen by index data (or all of it), else None."""
    if isinstance(expr, Let):
        return element_of(expr.expression, known)
    while isinstance(expr, Gather) and known(expr.index):
        expr = expr.source
    return expr if isinstance(expr, Random) else None
