"""Modules open with what they compute, docstrings and comments use the words of the field; what they name exists.

What a user reaches has a docstring that names each argument and each error that its own lines raise.
"""

import ast
import dataclasses
import inspect
import io
import re
import textwrap
import tokenize
from pathlib import Path

import pytest

import cavity as cv
from cavity import models
from cavity.engine.answers.next_prior import Beliefs, Contribution
from cavity.engine.batched import Batch
from cavity.engine.checks.loo import LeaveOneOut
from cavity.engine.checks.nuts import Check
from cavity.engine.checks.trust import Trust
from cavity.engine.evidence.integrated import Integrated
from cavity.engine.files.saved_posterior import Saved

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


# What a user reaches --------------------------------------------------------------------------------------------------

ANSWERS = (Batch, Beliefs, Check, Contribution, Integrated, LeaveOneOut, Saved, Trust)  # by asking for one
MADE = (cv.Posterior, Integrated, Batch)  # by the library alone: nobody gives their arguments


def reached():
    """What goes by a public name, and the classes of what that answers."""
    found = {f"cv.{name}": getattr(cv, name) for name in cv.__all__}
    found |= {f"models.{name}": getattr(models, name) for name in models.__all__}
    found |= {kind.__name__: kind for kind in ANSWERS}
    try:
        from cavity.models import estimators
    except ImportError:  # scikit-learn is an extra
        return found
    found |= {f"estimators.{name}": getattr(estimators, name) for name in estimators.__all__}
    return found | {kind.__name__: kind for kind in (models.DiffusionTree, models.NSFA)}


def members(kind):
    """The public methods and properties of a class that this library wrote; those of `cv.Model` are its language."""
    for name, member in inspect.getmembers(kind):
        function = member.fget if isinstance(member, property) else getattr(member, "func", member)
        ours = getattr(function, "__module__", None) or ""
        if not name.startswith("_") and callable(function) and ours.startswith("cavity") and kind is not cv.Model:
            yield name, member, inspect.unwrap(function)


def callables():
    """Path, object and function of everything that a user calls or reads; a class counts as its constructor."""
    for path, found in reached().items():
        if inspect.isclass(found) and not issubclass(found, Warning | Exception):
            yield path, found, None
            yield from ((f"{path}.{name}", member, function) for name, member, function in members(found))
        elif inspect.isroutine(found):
            yield path, found, inspect.unwrap(found)


def arguments(found):
    """The names of what is given, and of a record the names of its fields."""
    if dataclasses.is_dataclass(found):
        return [field.name for field in dataclasses.fields(found)]
    if not callable(found) or found in MADE:
        return []
    every = inspect.signature(found).parameters.values()
    return [one.name for one in every if one.kind is not one.VAR_KEYWORD and one.name not in ("self", "args")]


def raised(tree):
    """The errors that the lines of a function raise themselves, those of functions inside it not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield ast.unparse(node.exc.func).split(".")[-1]
        yield from raised(node)


def unsaid(found, function):
    """What the docstring of an object lacks: itself, or names of arguments and of errors."""
    text = found.__doc__ if inspect.isclass(found) else inspect.getdoc(found)
    if not text or not text.strip():
        return ["a docstring"]
    wanted = arguments(found)
    if function is not None:
        lines = textwrap.dedent(inspect.getsource(function))
        wanted += [name for name in raised(ast.parse(lines).body[0]) if name != "NotImplementedError"]
    return [name for name in dict.fromkeys(wanted) if not re.search(rf"\b{re.escape(name)}\b", text)]


def test_what_a_user_reaches_names_its_arguments_and_errors():
    faults = {path: lacks for path, found, function in callables() if (lacks := unsaid(found, function))}
    assert faults == {}


def test_many_are_reached():
    paths = {path for path, _, _ in callables()}
    assert {"cv.infer", "cv.Posterior.predict", "cv.Marginal.sd", "models.mixture", "Trust.verdict"} <= paths


def test_what_is_unsaid_is_seen():
    def shifted(x, by):
        """The sum of x and another."""
        if by is None:
            raise cv.DataError("nothing to add")
        return x + by

    def bare():
        return None

    assert unsaid(shifted, shifted) == ["by", "DataError"]
    assert unsaid(bare, bare) == ["a docstring"]
