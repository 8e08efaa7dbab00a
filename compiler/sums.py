"""Sums over a plate inside real expressions.

What has no element on the plate is taken out of the sum; what is left is one atom, a sum of products of independent
elements. A linear form meets it as many terms, where the plate is small and its size known.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Mapping

import numpy as np

from ..factors.domains import index, real
from ..factors.errors import UnsupportedError
from .expressions import Apply, Constant, Expr, Gather, Let, Plate

LARGEST = 32  # terms of a linear form that a sum becomes: each instance of its factor keeps a message for all of them

Monomial = tuple[tuple[Expr, ...], tuple[Expr, ...]]


def summed(expr: Apply, parts: list[Monomial], known: Callable[[Expr], bool]) -> list[Monomial]:
    """The sum of monomials over a plate; those with the same atoms have one sum of their data factors."""
    over = expr.option("over")
    groups: dict[tuple, tuple[list[Expr], tuple[Expr, ...], tuple[Expr, ...]]] = {}
    for coefficients, atoms in parts:
        inside = tuple(atom for atom in atoms if over in set(atom.plates))
        outside = tuple(atom for atom in atoms if over not in set(atom.plates))
        for atom in inside:
            _check_elements(expr, atom, over, known)
        key = (tuple(map(polynomial.atom_key, outside)), tuple(map(polynomial.atom_key, inside)))
        groups.setdefault(key, ([], outside, inside))[0].append(_product(coefficients))
    found = []
    for coefficients, outside, inside in groups.values():
        total = functools.reduce(operator.add, coefficients)
        if inside:
            found.append(((), (*outside, _sum(_product((total, *inside)), over))))
        else:
            found.append(((_sum(total, over),), outside))
    return found


def _product(factors: tuple[Expr, ...]) -> Expr:
    return functools.reduce(operator.mul, factors) if factors else polynomial.ONE


def _sum(expr: Expr, over: Plate) -> Apply:
    return Apply("sum", (expr,), (("over", over),), tuple(plate for plate in expr.plates if plate is not over), real)


def _check_elements(expr: Apply, atom: Expr, over: Plate, known: Callable[[Expr], bool]) -> None:
    """The elements along the plate must be different variables, which are independent."""
    if not dependent(atom, over, known):
        return
    raise UnsupportedError(
        f"'{expr}' sums '{atom}' over plate '{over.name}', whose elements share random variables, so they are "
        "dependent. Take what they share out of the sum, or write it as an inner product of vectors (cv.dot)."
    )


def dependent(expr: Expr, over: Plate, known: Callable[[Expr], bool]) -> bool:
    """Whether the elements of an expression along a plate may share random variables."""
    own = [variable for variable in polynomial.variables(expr) if not known(variable)]
    return not all(over in set(variable.plates) for variable in own) or _repeats(expr, over, known)


def _repeats(expr: Expr, over: Plate, known: Callable[[Expr], bool]) -> bool:
    """Whether index data along the plate may choose one element several times."""
    if isinstance(expr, Let):
        return _repeats(expr.expression, over, known)
    if isinstance(expr, Gather):
        return over in set(expr.index.plates) or _repeats(expr.source, over, known)
    return isinstance(expr, Apply) and any(_repeats(arg, over, known) for arg in expr.args if not known(arg))


def unrolled(monomial: Monomial, sizes: Mapping[str, int]) -> list[Monomial]:
    """A monomial that is a sum of data times single elements as one monomial for each element; others as they are."""
    coefficients, atoms = monomial
    if len(atoms) != 1 or not isinstance(atoms[0], Apply) or atoms[0].op != "sum":
        return [monomial]
    over, product = atoms[0].option("over"), atoms[0].args[0]
    size = sizes.get(over.name, 1)  # a plan that runs knows all sizes; without data one term shows its form
    data, inner = _split(product)
    if size > LARGEST or inner is None:
        return [monomial]
    positions = [Constant(np.array(i, np.int32), (), index(over)) for i in range(size)]
    return [((*coefficients, *(at(c, over, i) for c in data)), (at(inner, over, i),)) for i in positions]


def _split(product: Expr) -> tuple[tuple[Expr, ...], Expr | None]:
    """The data factor and the only random factor of what `summed` made; None where there are several."""
    if isinstance(product, Apply) and product.op == "multiply":
        left, right = product.args
        return ((left,), right) if not polynomial.variables(left) else ((), None)
    return (), product


def at(expr: Expr, over: Plate, position: Constant) -> Expr:
    """The expression at one position of a plate."""
    if over not in set(expr.plates):
        return expr
    plates = tuple(plate for plate in expr.plates if plate is not over)
    if isinstance(expr, Apply):
        return dataclasses.replace(expr, args=tuple(at(arg, over, position) for arg in expr.args), plates=plates)
    return Gather(expr, position, plates, expr.domain, over)


from . import polynomial  # noqa: E402 - sums hold polynomials, and polynomials sums
