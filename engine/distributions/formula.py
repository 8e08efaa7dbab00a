"""Expressions of the arguments of a term, as nested tuples: what is left of them when the model is gone.

("source", i) is the i-th random argument, ("known", i) the i-th known value, (operation, exponent, ...) an operation on
others; the exponent is that of a power, else None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import PyTree

from ...compiler.language.nodes import Apply
from ...compiler.language.operations import Reach
from ...factors.arrays import Array
from ..values.operations import VALUES

Tree = tuple[Any, ...]


def has_formula(expr: Apply) -> bool:
    """Whether an operation makes one number of the numbers of each instance."""
    return expr.operation.reach is Reach.ELEMENT and not expr.domain.is_boolean


def evaluated(tree: Tree, sources: Sequence[Array], known: Sequence[PyTree]) -> PyTree:
    """The value of an expression at values of its random and known parts."""
    if tree[0] in ("source", "known"):
        return (sources if tree[0] == "source" else known)[tree[1]]
    operation, exponent, *parts = tree
    options = {} if exponent is None else {"exponent": exponent}
    return VALUES[operation](*(evaluated(part, sources, known) for part in parts), **options)
