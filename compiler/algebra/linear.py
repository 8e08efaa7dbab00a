"""Linear forms: real expressions that are linear in Gaussian variables, the shape in which EP meets them."""

from __future__ import annotations

import dataclasses
import functools
import operator

from ..blocks.site import LinearForm, LinearTerm
from ..language.atoms import atom_key, product
from ..language.monomials import expand
from ..language.nodes import Expr, Gather, IsData, Let, Random, applies
from ..language.operations import DOT, SUM
from .polynomial import monomials
from .sums import all_unrolled, summed


def linear_form(expr: Expr, known: IsData) -> LinearForm | None:
    """`expr` as a linear form of Gaussian variables, or None where it is not linear in them."""
    if not all(_may_be_linear(atoms, known) for _, atoms in expand(expr, known)):
        return None  # before it is asked for moments, which what is not linear may lack
    terms, offsets = [], []
    sizes = getattr(known, "sizes", {})
    for coefficients, atoms in monomials(expr, known, lambda parts: all_unrolled(parts, sizes)):
        if not atoms:
            offsets.append(coefficients)
            continue
        term = linear_term(atoms[0], coefficients, known) if len(atoms) == 1 else None
        if term is None and len(atoms) == 1 and getattr(known, "sums", False):
            term = summed_term(atoms[0], coefficients, known)
        if term is None:
            return None
        terms.append(term)
    return LinearForm(_merged(terms), tuple(offsets))


def _may_be_linear(atoms: tuple[Expr, ...], known: IsData) -> bool:
    """Whether a product of atoms is data, one Gaussian number, or a sum of such over a plate."""
    if len(atoms) != 1:
        return not atoms
    if applies(atoms[0], SUM):
        return all(_may_be_linear(inner, known) for _, inner in expand(atoms[0].args[0], known))
    return linear_term(atoms[0], (), known) is not None


def _merged(terms: list[LinearTerm]) -> tuple[LinearTerm, ...]:
    """Terms of the same element as one: two of them would be two cavities of one variable."""
    groups: dict[tuple, list[LinearTerm]] = {}
    for term in terms:
        groups.setdefault((atom_key(term.element), term.over), []).append(term)
    return tuple(_sum(group) if len(group) > 1 else group[0] for group in groups.values())


def _sum(group: list[LinearTerm]) -> LinearTerm:
    first = group[0]
    if first.direction is None:
        return dataclasses.replace(first, coefficients=(_total([product(term.coefficients) for term in group]),))
    directions = [
        product(term.coefficients) * term.direction if term.coefficients else term.direction for term in group
    ]
    return dataclasses.replace(first, coefficients=(), direction=_total(directions))


def _total(parts: list) -> Expr:
    return functools.reduce(operator.add, parts)


def linear_term(atom: Expr, coefficients: tuple[Expr, ...], known: IsData) -> LinearTerm | None:
    """The atom as an element of a Gaussian variable, or its inner product with data; None for anything else."""
    direction = None
    if applies(atom, DOT):
        left, right = atom.args
        if known(left):
            left, right = right, left
        if not known(right):
            return None
        atom, direction = left, right
    variable = element_of(atom, known)
    if variable is None or not (variable.domain.is_real if direction is None else variable.domain.is_vector):
        return None
    return LinearTerm(variable, atom, coefficients, direction)


def summed_term(atom: Expr, coefficients: tuple[Expr, ...], known: IsData) -> LinearTerm | None:
    """A sum of multiples of the elements of a Gaussian variable along a plate; None for anything else."""
    if (found := summed(atom)) is None:
        return None
    over, data, inner = found
    term = linear_term(inner, (*coefficients, *data), known)
    return None if term is None or term.direction is not None else dataclasses.replace(term, over=over)


def element_of(expr: Expr, known: IsData) -> Random | None:
    """The variable of which `expr` is an element chosen by index data (or all of it), else None."""
    if isinstance(expr, Let):
        return element_of(expr.expression, known)
    while isinstance(expr, Gather) and known(expr.index):
        expr = expr.source
    return expr if isinstance(expr, Random) else None
