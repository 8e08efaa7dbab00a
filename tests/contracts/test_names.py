"""A factor is known in its own file: no other room names a factor or one of its arguments."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cavity.factors import REGISTRY

ROOT = Path(__file__).parents[2]
MODULES = [path for room in ("compiler", "engine") for path in sorted((ROOT / room).rglob("*.py"))]
FACTORS = {*REGISTRY, "gaussian_process"}
EDGES = {edge for factor in REGISTRY.values() for edge in factor.edges} | {"inputs"}


def names_in(tree):
    """The names of factors that stand as text, and the names of arguments that are asked for or compared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in FACTORS:
            yield node.lineno, node.value
        if isinstance(node, ast.Subscript) and _of_arguments(node.value) and _text(node.slice) in EDGES:
            yield node.lineno, _text(node.slice)
        if _is_get(node) and _of_arguments(node.func.value) and _text(node.args[0]) in EDGES:
            yield node.lineno, _text(node.args[0])
        if isinstance(node, ast.Compare):
            about = isinstance(node.left, ast.Name) and node.left.id in ("edge", "argument")
            sides = [node.left, *node.comparators]
            if about or any(map(_of_arguments, sides)):
                yield from ((node.lineno, _text(side)) for side in sides if _text(side) in EDGES)


def _of_arguments(node):
    """Whether an expression is the arguments of a term or a block."""
    return getattr(node, "attr", None) == "args" or getattr(node, "id", None) == "args"


def _is_get(node):
    return isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "get" and bool(node.args)


def _text(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_factor_and_no_argument_is_named(path):
    found = list(names_in(ast.parse(path.read_text())))
    assert not found, "let the factor declare what is asked of it (factors/factor.py, factors/roles.py)"


@pytest.mark.parametrize(
    "code",
    ['x == "gaussian"', 'block.args["mean"]', 'args.get("scale")', 'edge == "mean"', '"probability" in block.args'],
)
def test_the_law_sees_names(code):
    assert list(names_in(ast.parse(code)))
