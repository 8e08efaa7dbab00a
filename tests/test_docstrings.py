"""Modules open with what they compute, docstrings and comments use the words of the field; what they name exists."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [path for room in ("factors", "compiler", "engine", "models") for path in sorted((ROOT / room).rglob("*.py"))]
NAMES = {str(path.relative_to(ROOT)) for path in FILES}
# Factors send messages and messages are uniform: nobody speaks, hears or is silent. docs/glossary.md has the words.
PRIVATE = re.compile(r"\b(speaks?|spoken|silent|sa(?:y|ys|id) nothing|hears?|heard)\b", re.IGNORECASE)
PLACE = re.compile(r"[\w/]+\.py\b")
MODULE = re.compile(r"`(?:cavity\.)?((?:engine|compiler|factors|models)(?:\.\w+)+)`")


def docstrings(path):
    """The docstrings of a file: of itself, its classes and its functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))
    return [text for node in nodes if (text := ast.get_docstring(node))]


def comments(path):
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def is_module(dotted):
    """Whether a dotted path is a module, or begins with one that is more than a package of rooms."""
    parts = dotted.split(".")
    starts = ("/".join(parts[:cut]) for cut in range(len(parts), 1, -1))
    return any(f"{start}.py" in NAMES or f"{start}/__init__.py" in NAMES for start in starts)


def unsentenced(path):
    """The first paragraph of a module's docstring, where it is no sentence."""
    text = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].rstrip()
    return [] if text.endswith((".", ":")) else [text or "no docstring"]


def private(path):
    return [text for text in [*docstrings(path), *comments(path)] if PRIVATE.search(text)]


def nowhere(path):
    """Files and modules that a docstring or a comment names and that are not there."""
    text = "\n".join([*docstrings(path), *comments(path)])
    places = [place for place in PLACE.findall(text) if not (ROOT / place).exists()]
    places = [place for place in places if not any(name == place or name.endswith(f"/{place}") for name in NAMES)]
    return places + [dotted for dotted in MODULE.findall(text) if not is_module(dotted)]


@pytest.mark.parametrize("faults", [unsentenced, private, nowhere])
def test_docstrings(faults):
    assert {str(path.relative_to(ROOT)): found for path in FILES if (found := faults(path))} == {}


def test_the_faults_are_seen(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""Messages that say nothing (see `engine.nowhere` and nowhere.py)"""\n')
    assert unsentenced(path)
    assert private(path)
    assert nowhere(path) == ["nowhere.py", "engine.nowhere"]
