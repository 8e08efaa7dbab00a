"""Whether an expression is data, given the names that are observed, and which random variables it depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..blocks.base import Block
from ..graph import Facts
from ..language.nodes import Expr, Gather, Let, Random, parents


@dataclasses.dataclass(frozen=True)
class Known:
    """Whether an expression is data: all random variables and lets below it are observed or fixed.

    `sizes` are those of the plates, as far as they are known; `sums` whether linear forms may hold long sums.
    """

    observed: frozenset[str]
    sizes: Mapping[str, int]
    sums: bool = False

    def __call__(self, expr: Expr) -> bool:
        seen, stack = {expr}, [expr]
        while stack:
            node = stack.pop()
            if isinstance(node, (Random, Let)) and node.name in self.observed:
                continue
            if isinstance(node, Random):
                return False
            new = [child for child in parents(node) if child not in seen]
            seen.update(new)
            stack.extend(new)
        return True


def known_in(facts: Facts) -> Known:
    """What is data in a draft or a plan."""
    declared = {name: plate.size for name, plate in facts.model.plates.items() if plate.size is not None}
    return Known(facts.observed, {**declared, **(facts.sizes or {})}, facts.sums)


def ungathered(expr: Expr) -> Expr:
    """What an element is gathered from, through all gathers."""
    while isinstance(expr, Gather):
        expr = expr.source
    return expr


def root(expr: Expr) -> Any:
    """The variable that `expr` is an element of; a discrete let is one of its own, with a belief and a factor."""
    while True:
        if isinstance(expr, Gather):
            expr = expr.source
        elif isinstance(expr, Let) and expr.domain.is_discrete:
            return expr
        elif isinstance(expr, Let) and isinstance(expr.expression, (Gather, Random, Let)):
            expr = expr.expression
        else:
            return expr


def told(block: Block, latent: Mapping[str, Expr]) -> list[str]:
    """The names of the `latent` variables that a block sends messages to, in their order."""
    names = {*block.latent, *(getattr(root(atom), "name", "") for atom in block.atoms)} - set(block.parameters)
    return [name for name in latent if name in names]


def latent_names(facts: Facts, roots: list[Expr]) -> tuple[str, ...]:
    """The random variables below `roots` that are not observed, in declaration order.

    Below means through lets, not through definitions.
    """
    found: set[str] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, (Random, Let)) and node.name in facts.observed:
            continue
        if isinstance(node, Random):
            found.add(node.name)
        else:
            stack.extend(parents(node))
    joined = (name for name in facts.latent if name not in facts.model.randoms)  # beliefs that several share
    return tuple(name for name in (*facts.model.randoms, *joined) if name in found)
