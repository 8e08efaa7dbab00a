"""Writes two parts of the package's `__init__.py`: the builders of all factor files, and where the engine's names are.

Run from a checkout: python docs/make_front_door.py, or make vocabulary

A public function of a factor file that says that it returns a `Term` is a builder, and `cv.<name>` is that function.
The imports are written out rather than made when the package is imported, so that type checkers, editors and readers
see them. What the file imports for type checkers alone is loaded when it is first asked for, and the table of these
names is made from those imports. `tests/test_package.py` fails where either is not current.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path

DOOR = Path(__file__).parents[1] / "__init__.py"
ROOMS = ("combined", "discrete", "positive", "real", "vectors")
BEGIN, END = "# The vocabulary, made by docs/make_front_door.py: begin\n", "# The vocabulary: end\n"
TABLE = "# Where the names of the engine are, made by docs/make_front_door.py: begin\n"
TABLE_END = "# Where the names of the engine are: end\n"
WIDTH = 116


def builders():
    """The names of the builders by module, in order."""
    found = {}
    for room in ROOMS:
        package = importlib.import_module(f"cavity.factors.{room}")
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            names = [name for name, value in vars(module).items() if _is_builder(name, value, module)]
            if names:
                found[f"{room}.{info.name}"] = sorted(names)
    return found


def _is_builder(name, value, module):
    own = inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    return own and inspect.signature(value).return_annotation == "Term"


def later(text):
    """The module of each name that is imported under `if TYPE_CHECKING`, in order of the names."""
    blocks = [node for node in ast.parse(text).body if isinstance(node, ast.If)]
    imports = [node for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING" for node in block.body]
    return dict(sorted((alias.name, f".{node.module}") for node in imports for alias in node.names))


def renewed():
    """The text of `__init__.py` with its vocabulary and its table made anew."""
    text, found = DOOR.read_text(), builders()
    lines = "".join(f"from .factors.{module} import {', '.join(names)}\n" for module, names in found.items())
    old = set(re.findall(r"import (.*)", text[text.index(BEGIN) : text.index(END)]))
    before = {name for line in old for name in line.split(", ")}
    text = text[: text.index(BEGIN)] + BEGIN + lines + "\n" + text[text.index(END) :]
    start, end = text.index("__all__ = [\n") + len("__all__ = [\n"), text.index("]  # fmt: skip")
    names = set(re.findall(r'"(\w+)"', text[start:end])) - before | {n for names in found.values() for n in names}
    listed = ", ".join(f'"{name}"' for name in sorted(names)) + ","
    filled = textwrap.fill(listed, WIDTH, initial_indent="    ", subsequent_indent="    ")
    text = text[:start] + filled + "\n" + text[end:]
    rows = "".join(f'    "{name}": "{module}",\n' for name, module in later(text).items())
    return text[: text.index(TABLE) + len(TABLE)] + f"_LATER = {{\n{rows}}}\n" + text[text.index(TABLE_END) :]


if __name__ == "__main__":
    DOOR.write_text(renewed())
