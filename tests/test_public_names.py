"""Names that users write: those of the front door and every import path of the pages resolve, and none is lost unseen.

`public_names.txt` is the committed list; `pytest tests/test_public_names.py --update-snapshots` adds new names to it.
A name leaves the list by hand alone: somebody imports it.
"""

import ast
import importlib
import re
from pathlib import Path

import pytest

import cavity

ROOT = Path(__file__).parents[1]
SNAPSHOT = Path(__file__).with_name("public_names.txt")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
PAGES = [path for path in PAGES if "_build" not in path.parts]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"\bcavity(?:\.[A-Za-z_]\w*)+")


def listed():
    return SNAPSHOT.read_text().split()


def documented():
    """Every path of `from cavity... import ...` in the pages and examples, and every dotted path in their text."""
    found = {f"cavity.{name}" for name in cavity.__all__}
    for path in PAGES:
        text = path.read_text()
        for block in [text] if path.suffix == ".py" else PYTHON.findall(text):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cavity":
                    found |= {f"{node.module}.{alias.name}" for alias in node.names}
        found |= set(DOTTED.findall(text))
    return found


def resolved(path):
    """What a dotted path names: a module, or an attribute of one."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("path", listed())
def test_a_documented_path_resolves(path):
    if path.startswith("cavity.models.") and path.split(".")[2][0].isupper():
        pytest.importorskip("sklearn")
    resolved(path)


def test_every_documented_path_is_in_the_list(request):
    found, known = documented(), set(listed())
    if request.config.getoption("--update-snapshots"):
        SNAPSHOT.write_text("\n".join(sorted(found | known)) + "\n")
        return
    assert sorted(found - known) == [], "new names: run pytest tests/test_public_names.py --update-snapshots"


def test_the_front_door_is_the_list():
    front = {path.split(".")[1] for path in listed() if path.count(".") == 1}
    assert front - {"models", "engine", "compiler", "factors"} == set(cavity.__all__)
