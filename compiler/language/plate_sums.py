"""Sums over a plate as monomials.

What has no element on the plate is taken out of the sum; what is left is one atom, a sum of products of independent
elements.
"""

from __future__ import annotations

import functools
import operator

from ...factors.domains import real
from ...factors.errors import UnsupportedError
from .atoms import ONE, Monomial, atom_key, variables
from .nodes import Apply, Expr, Gather, IsData, Let, Once, Plate, Random, gathers_of, source_of, union_plates
from .operations import SUM


def summed(expr: Apply, parts: list[Monomial], known: IsData) -> list[Monomial]:
    """The sum of monomials over a plate; those with the same atoms have one sum of their data factors."""
    over = expr.option("over")
    groups: dict[tuple, tuple[list[Expr], tuple[Expr, ...], tuple[Expr, ...]]] = {}
    for coefficients, atoms in parts:
        inside = tuple(atom for atom in atoms if over in set(atom.plates))
        outside = tuple(atom for atom in atoms if over not in set(atom.plates))
        gathers = _chosen(inside, over, known)
        if gathers:
            coefficients = (_once(_product(coefficients), gathers, over),)
        for atom in () if gathers else inside:
            _check_elements(expr, atom, over, known)
        key = (tuple(map(atom_key, outside)), tuple(map(atom_key, inside)))
        groups.setdefault(key, ([], outside, inside))[0].append(_product(coefficients))
    found = []
    for coefficients, outside, inside in groups.values():
        total = functools.reduce(operator.add, coefficients)
        if inside:
            found.append(((), (*outside, _sum(_product((total, *inside)), over))))
        else:
            found.append(((_sum(total, over),), outside))
    return found


def _chosen(atoms: tuple[Expr, ...], over: Plate, known: IsData) -> tuple[Gather, ...]:
    """The gathers by which index data along the plate choose the only atom among the elements of a variable."""
    gathers = gathers_of(atoms[0]) if len(atoms) == 1 else []
    of_variable = bool(gathers) and isinstance(source_of(atoms[0]), Random)
    if not of_variable or not all(known(gather.index) for gather in gathers):
        return ()
    axes = {gather.axis for gather in gathers}
    if over in set(source_of(atoms[0]).plates) - axes:  # each is another element
        return ()
    return tuple(gather for gather in gathers if over in set(gather.index.plates))


def _once(coefficient: Expr, gathers: tuple[Gather, ...], over: Plate) -> Once:
    plates = union_plates(coefficient.plates, *(gather.index.plates for gather in gathers))
    return Once(coefficient, gathers, over, plates, real)


def _product(factors: tuple[Expr, ...]) -> Expr:
    return functools.reduce(operator.mul, factors) if factors else ONE


def _sum(expr: Expr, over: Plate) -> Apply:
    return Apply(SUM, (expr,), (("over", over),), tuple(plate for plate in expr.plates if plate is not over), real)


def _check_elements(expr: Apply, atom: Expr, over: Plate, known: IsData) -> None:
    """The elements along the plate must be different variables, which are independent."""
    if not dependent(atom, over, known):
        return
    raise UnsupportedError(
        f"'{expr}' sums '{atom}' over plate '{over.name}', whose elements share random variables, so they are "
        "dependent. Take what they share out of the sum."
        + (" Gaussian weights may be one vector: cv.dot(weight, x)." if _is_weight(atom) else "")
    )


def _is_weight(atom: Expr) -> bool:
    """Whether an atom is an element of a real variable, which a vector could hold; no function of one is."""
    source = source_of(atom)
    return isinstance(source, Random) and source.domain.is_real


def dependent(expr: Expr, over: Plate, known: IsData) -> bool:
    """Whether the elements of an expression along a plate may share random variables."""
    own = [variable for variable in variables(expr) if not known(variable)]
    return not all(over in set(variable.plates) for variable in own) or _repeats(expr, over, known)


def _repeats(expr: Expr, over: Plate, known: IsData) -> bool:
    """Whether index data along the plate may choose one element several times."""
    if isinstance(expr, Let):
        return _repeats(expr.expression, over, known)
    if isinstance(expr, Gather):
        return over in set(expr.index.plates) or _repeats(expr.source, over, known)
    return isinstance(expr, Apply) and any(_repeats(arg, over, known) for arg in expr.args if not known(arg))
