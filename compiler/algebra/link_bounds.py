"""The links inside the arguments of factors, and the bounds that they offer."""

from __future__ import annotations

from collections.abc import Iterable

from ...factors import LINKS
from ...factors.errors import UnsupportedError
from ..blocks.base import Block
from ..graph import Draft
from ..language.nodes import Apply, Expr, IsData, Random, parents
from .known import known_in


def links_in(args: Iterable[Expr], known: IsData) -> set[str]:
    """The names of the links of random numbers."""
    found, stack = set(), list(args)
    while stack:
        node = stack.pop()
        if known(node):
            continue
        if isinstance(node, Apply) and node.op in LINKS:
            found.add(node.op)
        if not isinstance(node, Random):
            stack.extend(parents(node))
    return found


def check_bound(draft: Draft, blocks: list[Block]) -> None:
    """A bound asked for in the whole model must be that of some link in it; elsewhere it has no meaning."""
    bound, known = draft.default.bound, known_in(draft)
    names = {name for block in blocks for name in links_in(block.arguments, known)}
    if bound is not None and not any(bound in LINKS[name].bounds for name in names):
        raise UnsupportedError(f"No factor of the model has the bound {bound!r}. {offers(names)}")


def offers(names: set[str]) -> str:
    """The bounds of these links in a sentence."""
    bounds = "; ".join(f"{name}: {', '.join(LINKS[name].bounds)}" for name in sorted(names))
    return f"It offers {bounds or 'no link in it'}."
