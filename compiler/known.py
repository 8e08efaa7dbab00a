"""What a plan knows of an expression: whether it is data, and which random variables it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .expressions import Expr, Gather, Let, Random, parents
from .graph import Graph


@dataclasses.dataclass(frozen=True)
class Known:
    """Tells whether an expression is data: all random variables and lets below it are observed or fixed.

    `sizes` are those of the plates, as far as they are known.
    """

    observed: frozenset[str]
    sizes: Mapping[str, int]

    def __call__(self, expr: Expr) -> bool:
        if isinstance(expr, (Random, Let)) and expr.name in self.observed:
            return True
        if isinstance(expr, Random):
            return False
        return all(self(child) for child in parents(expr))


def known_in(graph: Graph) -> Known:
    """What is data in a graph."""
    declared = {name: plate.size for name, plate in graph.model.plates.items() if plate.size is not None}
    return Known(graph.observed, {**declared, **(graph.sizes or {})})


def ungathered(expr: Expr) -> Expr:
    """What an element is gathered from, through all gathers."""
    while isinstance(expr, Gather):
        expr = expr.source
    return expr


def latent_names(graph: Graph, roots: list[Expr]) -> tuple[str, ...]:
    """The random variables below `roots` that are not observed, in declaration order.

    Below means through lets, not through definitions.
    """
    found: set[str] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, (Random, Let)) and node.name in graph.observed:
            continue
        if isinstance(node, Random):
            found.add(node.name)
        else:
            stack.extend(parents(node))
    return tuple(name for name in graph.model.randoms if name in found)
