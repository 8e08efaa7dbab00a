"""Atoms: what is random in a polynomial and neither sum nor product, and which of them are the same number.

An atom is a variable, an element of one, an inner product, an exponential, a logarithm, a maximum. Quotients and powers
are products of atoms with integer exponents.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

import numpy as np

from ...factors.domains import real
from .nodes import Apply, Constant, Expr, Gather, Let, Member, Position, Random, applies, parents
from .operations import DIVIDE

Monomial = tuple[tuple[Expr, ...], tuple[Expr, ...]]  # data factors, random atoms
ONE = Constant(np.array(1.0), (), real)
MINUS_ONE = Constant(np.array(-1.0), (), real)


def atom_key(expr: Expr) -> tuple:
    """Equal for atoms that are the same random number in every instance."""
    if isinstance(expr, Let):
        return atom_key(expr.expression)
    if isinstance(expr, (Gather, Apply)):
        head = ("gather",) if isinstance(expr, Gather) else (expr.op, expr.options)
        return (*head, *(atom_key(child) for child in parents(expr)))
    if isinstance(expr, Member):
        return ("member", expr.present, atom_key(expr.by), *map(id, expr.plates))
    if isinstance(expr, Position):
        return ("position", id(expr.domain.plate), expr.start, *map(id, expr.plates))
    return (id(expr),)


def powers(atoms: tuple[Expr, ...]) -> dict[tuple, tuple[Expr, int]]:
    """The bases of a product of atoms by key, with their exponents; those that cancel are left out."""
    found: dict[tuple, tuple[Expr, int]] = {}
    for atom in atoms:
        base, sign = base_of(atom)
        key = atom_key(base)
        found[key] = (base, found.get(key, (base, 0))[1] + sign)
    return {key: power for key, power in found.items() if power[1] != 0}


def base_of(atom: Expr) -> tuple[Expr, int]:
    """An atom as a base and its exponent, 1 or -1: a reciprocal is an atom."""
    return (atom.args[1], -1) if applies(atom, DIVIDE) else (atom, 1)


def product(factors: Iterable[Expr]) -> Expr:
    """The product of expressions; one where there are none."""
    return functools.reduce(operator.mul, factors, ONE)


def variables(expr: Expr) -> set[Random]:
    """All random variables below `expr`, through lets but not through their own definitions."""
    if isinstance(expr, Random):
        return {expr}
    return set().union(*(variables(child) for child in parents(expr))) if parents(expr) else set()
