"""The pages cannot rot: their Python blocks run, print what stands below them, and generated tables are current."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def load(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = load("run_pages")
QUICK = {
    "README.md",
    "index.md",
    "add-a-factor.md",
    "0006-plate-order.md",
}  # the others compile one program after the other


def page(path):
    return pytest.param(path, id=path.name, marks=[] if path.name in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize("path", [page(path) for path in PAGES.PAGES if PAGES.BLOCK.search(path.read_text())])
def test_blocks_run_and_print_what_the_page_says(path):
    assert PAGES.differences(path) == []


def test_the_table_of_methods_is_current():
    tables = load("make_tables")
    assert tables.renewed() == (DOCS / "methods.md").read_text(), "run python docs/make_tables.py"


def test_links_between_pages_lead_somewhere():
    for path in PAGES.PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} points to {target}"
