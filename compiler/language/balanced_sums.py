"""Long sums as balanced trees: a sum that a Python loop builds, s = s + x, is as deep as it is long.

Whoever reads an expression does so level by level, so the depth of a sum of n terms should be log n. Sums are
associative: a long chain is taken apart into its terms, and put together again in pairs. The same for long chains of
logical operations. Short ones stay as they were written.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from ...factors.errors import ModelError
from . import operators
from .nodes import Apply, Expr, Gather, applies, parents, with_parents
from .operations import ADD, AND, OR, SUBTRACT, XOR, Operation

LONG = 32  # operands of a chain


@contextlib.contextmanager
def not_too_deep() -> Iterator[None]:
    """A ModelError in place of Python's own where an expression nests deeper than its stack; a decorator, too."""
    try:
        yield
    except RecursionError:
        raise ModelError(
            "An expression of this model is nested too deep: some hundred operations stand inside each other, or as "
            "many lets. Sums may be as long as they like; a recursion such as `s = 0.9 * s + x` in a loop takes a "
            "level for each step. Declare it as a chain, m.chain(...), or write it as one weighted sum."
        ) from None


def balanced(expr: Expr) -> Expr:
    """The same expression with all long chains in it as balanced trees, down to what has a name of its own."""
    new: dict[Expr, Expr] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in new or not isinstance(node, (Apply, Gather)):
            new.setdefault(node, node)
            stack.pop()
            continue
        chain = _operands(node)
        below = [operand for operand, _ in chain] if len(chain) > LONG else parents(node)
        missing = [operand for operand in below if operand not in new]
        if missing:
            stack.extend(missing)
            continue
        new[node] = _joined(node, chain, new) if len(chain) > LONG else with_parents(node, new)
        stack.pop()
    return new[expr]


ALIKE = {ADD: (ADD, SUBTRACT), SUBTRACT: (ADD, SUBTRACT), AND: (AND,), OR: (OR,), XOR: (XOR,)}
"""What a chain may hold beside the operation that ends it."""


def _operands(node: Expr) -> list[tuple[Expr, bool]]:
    """The operands of the chain that a node ends, in order, and whether each is subtracted."""
    if not applies(node, *ALIKE):
        return []
    alike, found = ALIKE[node.operation], []
    stack: list[tuple[Expr, bool]] = [(node, False)]
    while stack:
        here, minus = stack.pop()
        if applies(here, *alike):
            left, right = here.args
            stack += [(right, minus != applies(here, SUBTRACT)), (left, minus)]
        else:
            found.append((here, minus))
    return found


def _joined(node: Expr, chain: list[tuple[Expr, bool]], new: dict[Expr, Expr]) -> Expr:
    """The operands of a chain, put together in pairs; what is subtracted, by itself."""
    assert isinstance(node, Apply)
    operation = ADD if applies(node, SUBTRACT) else node.operation
    plus = _in_pairs(operation, [new[operand] for operand, minus in chain if not minus])
    less = [new[operand] for operand, minus in chain if minus]
    found = operators.subtract(plus, _in_pairs(operation, less)) if less else plus
    if not isinstance(found, Apply) or found.domain != node.domain:
        return node
    return dataclasses.replace(found, plates=node.plates)


def _in_pairs(operation: Operation, operands: Sequence[Expr]) -> Expr:
    while len(operands) > 1:
        pairs = [operands[i : i + 2] for i in range(0, len(operands), 2)]
        operands = [
            pair[0]
            if len(pair) == 1
            else operators.add(*pair)
            if operation is ADD
            else operators.apply(operation, *pair)
            for pair in pairs
        ]
    return operands[0]
