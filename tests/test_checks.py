"""`make check` and the hooks before a commit run the same commands; the version is the same in both of its places."""

import re
import tomllib
from pathlib import Path

import cavity

ROOT = Path(__file__).parents[1]


def recipe(target):
    """The commands of a target of the Makefile, for the default environment."""
    text = (ROOT / "Makefile").read_text()
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)[1].splitlines()
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in lines]


def test_hooks_run_what_make_check_runs():
    hooks = re.findall(r"^ +entry: (.*)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    assert hooks == recipe("check")
    assert len(hooks) == 4


def test_the_version_is_the_same_in_both_places():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == cavity.__version__
