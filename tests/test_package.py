"""The package ships what the repository holds, and importing it is cheap and leaves no traces."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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


def test_import_leaves_jax_in_its_default_precision():
    assert run("import cavity, jax; print(jax.config.jax_enable_x64)").strip() == "False"
