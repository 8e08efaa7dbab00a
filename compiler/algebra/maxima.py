"""Maxima split into two cases: max(a, b) is a where a > b, and b where b > a, each linear where its argument is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from ..language.atoms import atom_key
from ..language.nodes import Apply, Expr, IsData, Let, applies
from ..language.operations import MAX


@dataclasses.dataclass(frozen=True, eq=False)
class MaximumSide:
    """Where `above` > 0, the maximum `whole` is `part`."""

    whole: Apply
    part: Expr
    above: Expr

    def of(self, expr: Expr) -> Expr:
        """An expression as it is on this side."""
        if atom_key(expr) == atom_key(self.whole):
            return self.part
        if isinstance(expr, Let):
            inside = self.of(expr.expression)
            return expr if inside is expr.expression else inside
        if isinstance(expr, Apply):
            args = tuple(map(self.of, expr.args))
            same = all(new is old for new, old in zip(args, expr.args, strict=True))
            return expr if same else dataclasses.replace(expr, args=args)
        return expr

    def of_all(self, exprs: Mapping[str, Expr]) -> dict[str, Expr]:
        """Named expressions as they are on this side."""
        return {name: self.of(expr) for name, expr in exprs.items()}


def maximum_sides(exprs: Iterable[Expr], known: IsData) -> tuple[MaximumSide, MaximumSide] | None:
    """The two sides of the first maximum that expressions are made of; None where there is none."""
    stack = list(exprs)
    while stack:
        node = stack.pop(0)
        if known(node):
            continue
        if applies(node, MAX):
            left, right = node.args
            return MaximumSide(node, left, left - right), MaximumSide(node, right, right - left)
        if isinstance(node, Let):
            stack.append(node.expression)
        elif isinstance(node, Apply):
            stack.extend(node.args)
    return None
