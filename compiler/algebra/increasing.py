"""Vectors whose entries increase by their form: each is the one before and something positive."""

from __future__ import annotations

import itertools
from collections import Counter

from ..language.atoms import atom_key
from ..language.monomials import expand
from ..language.nodes import Expr, applies, is_data, unnamed
from ..language.operations import STACK


def is_increasing(expr: Expr) -> bool:
    """Whether an expression is a stack of numbers of which each exceeds the one before, whatever is random in them."""
    root = unnamed(expr)
    if not applies(root, STACK) or root.over is not None:
        return False
    return all(itertools.starmap(_exceeds, itertools.pairwise(root.args)))


def _exceeds(low: Expr, high: Expr) -> bool:
    """Whether `high` is the sum of `low` and positive numbers."""
    above = {_key(part): part for part in expand(high, is_data)}
    counts = [Counter(_key(part) for part in expand(side, is_data)) for side in (low, high)]
    if counts[0] - counts[1]:
        return False
    left = [above[key] for key in counts[1] - counts[0]]
    return bool(left) and all(e.domain.is_bounded for coefficients, atoms in left for e in (*coefficients, *atoms))


def _key(part: tuple[tuple[Expr, ...], tuple[Expr, ...]]) -> tuple:
    return tuple(tuple(map(atom_key, group)) for group in part)
