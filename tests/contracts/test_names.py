"""Factors and families are known in their own files: no other room names one, or an argument of a factor."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cavity.factors import REGISTRY
from cavity.factors.families import ALL, ExponentialFamily

ROOT = Path(__file__).parents[2]
MODULES = [path for room in ("compiler", "engine") for path in sorted((ROOT / room).rglob("*.py"))]
FACTORS = {*REGISTRY, "gaussian_process"}
EDGES = {edge for factor in REGISTRY.values() for edge in factor.edges} | {"inputs"}
# `Point` is none of them: it holds a value that is known, and that it does shows in the type.
FAMILIES = {family.__name__ for family in ALL if issubclass(family, ExponentialFamily)}
FILES_OF_FAMILIES = {family.__module__.rsplit(".", 1)[-1] for family in ALL}


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


def families_in(tree):
    """Families that are imported, asked for by attribute, or told by the name of their type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and "families" in (node.module or "").split("."):
            own = node.module.rsplit(".", 1)[-1] in FILES_OF_FAMILIES
            yield from ((node.lineno, found.name) for found in node.names if own or found.name in FAMILIES)
        if isinstance(node, ast.Attribute) and node.attr in FAMILIES and _text_of(node.value) == "families":
            yield node.lineno, node.attr
        if isinstance(node, ast.Compare):
            yield from ((side.lineno, side.value) for side in node.comparators if _text(side) in FAMILIES)
        if isinstance(node, ast.Subscript) and _text_of(node.value) == "BY_NAME":
            yield node.lineno, "BY_NAME"


def _text_of(node):
    return getattr(node, "id", getattr(node, "attr", None))


def _of_arguments(node):
    """Whether an expression is the arguments of a term or a block."""
    return getattr(node, "attr", None) == "args" or getattr(node, "id", None) == "args"


def _is_get(node):
    return isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "get" and bool(node.args)


def _text(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_factor_no_argument_and_no_family_is_named(path):
    tree = ast.parse(path.read_text())
    assert not list(names_in(tree)), "let the factor declare what is asked of it (factors/factor.py, factors/roles.py)"
    assert not list(families_in(tree)), (
        "let the family declare what is asked of it (factors/families/base.py and capabilities.py), and take it from "
        "FOR_DOMAIN or from `family_of(variable)`"
    )


@pytest.mark.parametrize(
    "code",
    ['x == "gaussian"', 'block.args["mean"]', 'args.get("scale")', 'edge == "mean"', '"probability" in block.args'],
)
def test_the_law_sees_names(code):
    assert list(names_in(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "from ...factors.families import FOR_DOMAIN, Gamma",
        "from ...factors.families.gaussian import Gaussian as Normal",
        "families.Beta.from_stats(stats)",
        'type(belief).__name__ == "Poisson"',
        'BY_NAME["Wishart"].uniform()',
    ],
)
def test_the_law_sees_families(code):
    assert list(families_in(ast.parse(code)))
    assert not list(families_in(ast.parse("from ...factors.families import FOR_DOMAIN, Family, Point")))
