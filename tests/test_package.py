"""The package ships what the repository holds, and importing it is cheap and leaves no traces."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import cavity

ROOT = Path(__file__).parents[1]
ROOMS = ("factors", "compiler", "engine", "models")


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT.anchor, check=True
    ).stdout


def test_every_package_folder_is_listed_for_shipping():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = [path.parent for room in ROOMS for path in (ROOT / room).rglob("__init__.py")]
    found = {"cavity"} | {"cavity." + ".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert sorted(listed) == sorted(found)


@pytest.mark.parametrize("heavy", ["matplotlib", "sklearn", "scipy.stats", "arviz", "numpyro"])
def test_import_does_not_load(heavy):
    assert run(f"import sys, cavity; print({heavy!r} in sys.modules)").strip() == "False"


# What each costs, in modules beyond those of JAX. The first has the language and the vocabulary, the second the engine.
MOST = {"import cavity": 240, "import cavity; cavity.infer": 477}
NEEDLESS = {
    "cavity.engine.checks.nuts", "cavity.engine.plots.figure", "cavity.models", "concurrent.futures.process",
    "jax.experimental.pallas", "jax.extend", "jax.scipy.stats", "networkx", "numba", "pandas", "scipy",
}  # fmt: skip


@pytest.mark.parametrize("code", MOST)
def test_import_loads_little_beyond_jax(code):
    added = run(f"import sys, jax; old = set(sys.modules); {code}; print(*sorted(set(sys.modules) - old))").split()
    assert [name for name in added if name in NEEDLESS] == []
    assert "cavity" in added
    assert len(added) <= MOST[code]


def test_import_loads_no_engine():
    assert run("import sys, cavity; print('cavity.engine' in sys.modules)").strip() == "False"


def test_the_front_door_loads_what_is_asked_for():
    code = "import sys, cavity as cv; print('models' in dir(cv), cv.models.skills().name, cv.infer is cv.infer)"
    assert run(code).split() == ["True", "skills", "True"]
    assert set(cavity.__all__) <= set(dir(cavity))
    for name in cavity.__all__:
        assert getattr(cavity, name) is vars(cavity)[name]
    with pytest.raises(AttributeError, match="module 'cavity' has no attribute 'infr'"):
        cavity.infr


def test_the_front_door_offers_every_builder_of_the_vocabulary():
    door = runpy.run_path(str(ROOT / "docs" / "make_front_door.py"))
    assert door["renewed"]() == (ROOT / "__init__.py").read_text(), "run python docs/make_front_door.py"
    offered = {name for names in door["builders"]().values() for name in names}
    assert offered <= set(dir(cavity)) & set(cavity.__all__)
    assert cavity.__all__ == sorted(cavity.__all__)


def test_no_folder_of_tests_passes_for_a_library():
    """A folder on the path is a package to whoever asks for its name: SciPy asked for `sparse` and was given tests."""
    searched = [path for path in map(Path, sys.path) if path.is_relative_to(ROOT / "tests")]
    inside = [path for folder in searched for path in folder.iterdir() if path.is_dir()]
    assert [path for path in inside if path.name != "__pycache__"] == []


def test_no_test_is_imported_by_another():
    """Which of them was collected before it depends on the number of workers; what two need stands in `common`."""
    for path in (ROOT / "tests").rglob("*.py"):
        imported = re.findall(r"^\s*(?:from|import) (test_\w+)", path.read_text(), re.MULTILINE)
        assert imported == [], path


def test_what_tests_share_has_one_name_each():
    """All folders `common` are on the path: of two modules of one name, the folder collected last hides the other."""
    names = [path.name for path in (ROOT / "tests").rglob("common/*.py")]
    assert sorted(names) == sorted(set(names))


ROOMIEST = 20  # modules of a folder: of more, a reader does not know where to begin


def test_no_folder_holds_more_than_a_reader_takes_in():
    for folder in [ROOT / room for room in ROOMS] + [path for room in ROOMS for path in (ROOT / room).rglob("*/")]:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= ROOMIEST, folder


def test_import_leaves_jax_in_its_default_precision():
    assert run("import cavity, jax; print(jax.config.jax_enable_x64)").strip() == "False"


LONGEST = 60  # lines of a function, its docstring included: more are not read from top to bottom


def long_functions(path: Path, longest: int) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > longest:
                yield node.name, lines


def test_a_long_function_is_seen(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("class A:\n    def f(self):\n        'One.'\n        return 1\n\n\ndef g():\n    pass\n")
    assert list(long_functions(path, 2)) == [("f", 3)]
    assert list(long_functions(path, 3)) == []


def test_functions_are_read_from_top_to_bottom():
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    found = {f"{path.relative_to(ROOT)} {name}" for path in paths for name, _ in long_functions(path, LONGEST)}
    assert found == set()


def imported(name: str, modules: dict[str, Path]) -> Iterator[str]:
    """What a module imports anywhere in it: at its top, inside functions, and for type checkers alone."""
    path = modules[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            inside = [f"{source}.{alias.name}" for alias in node.names]
            yield from (module if module in modules else source for module in inside)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def circles(modules: dict[str, Path]) -> set[frozenset[str]]:
    graph = nx.DiGraph()
    for name in modules:
        graph.add_edges_from((name, other) for other in imported(name, modules) if other in modules)
    return {frozenset(found) for found in nx.strongly_connected_components(graph) if len(found) > 1}


def test_a_circle_is_seen_however_it_is_closed(tmp_path):
    """At the top, inside a function, for type checkers; `d` is imported by all and imports none of them."""
    texts = {
        "a": "from .b import x\nfrom . import d",
        "b": "def f():\n    from . import c",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import y",
        "d": "import p.d",
    }
    modules = {f"p.{name}": tmp_path / f"{name}.py" for name in texts}
    for name, text in texts.items():
        modules[f"p.{name}"].write_text(text)
    assert circles(modules) == {frozenset({"p.a", "p.b", "p.c"})}


def test_no_module_imports_itself_by_way_of_others():
    modules = {"cavity": ROOT / "__init__.py"}
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(["cavity", *(part for part in parts if part != "__init__")])] = path
    assert circles(modules) == set()
