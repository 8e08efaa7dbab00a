"""Real expressions as polynomials: sums of products of data and of random atoms.

An atom is anything random that is not a sum or product: a variable, an element of one, an inner product, an
exponential.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..factors.domains import real
from ..factors.errors import UnsupportedError
from .expressions import Apply, Constant, Expr, Gather, Let, Random, parents

Monomial = tuple[tuple[Expr, ...], tuple[Expr, ...]]  # data factors, random atoms
MINUS_ONE = Constant(np.array(-1.0), (), real)


def atom_key(expr: Expr) -> tuple:
    """Equal for atoms that are the same random number in every instance."""
    if isinstance(expr, Let):
        return atom_key(expr.expression)
    if isinstance(expr, (Gather, Apply)):
        head = ("gather",) if isinstance(expr, Gather) else (expr.op, expr.options)
        return (*head, *(atom_key(child) for child in parents(expr)))
    return (id(expr),)


def monomials(expr: Expr, known: Callable[[Expr], bool]) -> list[Monomial]:
    """`expr` as a list of monomials, those with the same atoms merged only if their data factors are.

    `known` tells what counts as data. Raises UnsupportedError for powers of an atom and for atoms that are dependent.
    """
    found = expand(expr, known)
    for _, atoms in found:
        keys = [atom_key(atom) for atom in atoms]
        if len(keys) != len(set(keys)):
            raise UnsupportedError(
                f"'{expr}' has a power of '{atoms[0]}' higher than one, whose variance needs third moments. "
                "Introduce a second variable, or use cv.exp of a real one."
            )
    _check_independent(expr, found)
    return found


def expand(expr: Expr, known: Callable[[Expr], bool]) -> list[Monomial]:
    """`expr` as a list of monomials, whatever their powers and however their atoms depend on each other."""
    if known(expr):
        return [((expr,), ())]
    if isinstance(expr, Let):
        return expand(expr.expression, known)
    if not isinstance(expr, Apply):
        return [((), (expr,))]
    if expr.op == "add":
        return expand(expr.args[0], known) + expand(expr.args[1], known)
    if expr.op == "subtract":
        return expand(expr.args[0], known) + _scaled(MINUS_ONE, expand(expr.args[1], known))
    if expr.op == "negate":
        return _scaled(MINUS_ONE, expand(expr.args[0], known))
    if expr.op == "divide" and known(expr.args[1]):
        return _scaled(1.0 / expr.args[1], expand(expr.args[0], known))
    if expr.op == "multiply":
        left, right = (expand(arg, known) for arg in expr.args)
        return [(c + d, a + b) for c, a in left for d, b in right]
    if expr.op == "power" and expr.option("exponent") > 0:
        return [((), (expr.args[0],) * expr.option("exponent"))]
    return [((), (expr,))]


def _scaled(factor: Expr, terms: list[Monomial]) -> list[Monomial]:
    return [((factor, *coefficients), atoms) for coefficients, atoms in terms]


def variables(expr: Expr) -> set[Random]:
    """All random variables below `expr`, through lets but not through their own definitions."""
    if isinstance(expr, Random):
        return {expr}
    return set().union(*(variables(child) for child in parents(expr))) if parents(expr) else set()


def _check_independent(expr: Expr, found: list[Monomial]) -> None:
    """Atoms with different keys must not share a variable, except as different elements of one plated variable."""
    atoms = {atom_key(atom): atom for _, atoms in found for atom in atoms}
    owners: dict[Random, Expr] = {}
    for atom in atoms.values():
        for variable in variables(atom):
            other = owners.setdefault(variable, atom)
            elements = isinstance(_strip(other), Gather) and isinstance(_strip(atom), Gather)
            if other is not atom and not elements:
                raise UnsupportedError(
                    f"'{expr}' uses '{variable.name}' in two different ways, '{other}' and '{atom}', "
                    "whose covariance has no rule. Write it with one of them, for example one cv.dot with the summed "
                    "vector."
                )


def _strip(expr: Expr) -> Expr:
    while isinstance(expr, Apply) and expr.op == "dot":
        expr = next((arg for arg in expr.args if isinstance(arg, (Gather, Random))), expr.args[0])
    return expr
