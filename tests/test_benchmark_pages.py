"""The pages of benchmarks hold the numbers that were measured, with machine, date and commit; nothing is timed here."""

import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "benchmarks"


def load(name):
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ), mock.patch.dict(sys.modules, {spec.name: module}):  # the harness pins threads
        spec.loader.exec_module(module)
    return module


PAGES = load("pages")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What the harness keeps of a contest of two functions that do nothing, and of facts without contestants."""
    harness = load("harness")
    harness.RESULTS = tmp_path_factory.mktemp("results")
    report = harness.Report("skills", small=True)
    report.add(harness.compare("Nothing", {"peer": lambda: 3, "cavity": lambda: 3}, repeats=2), sweeps=7, apart=1 / 3)
    report.facts("Memory", peak=2.5)
    return json.loads(report.path.read_text())


def test_a_page_says_machine_date_and_commit(measured):
    text, machine = PAGES.page(measured), measured["machine"]
    assert f"Measured on {machine['date']} at commit {machine['commit']}: {machine['processor']}" in text
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", machine["date"])
    assert machine["commit"]
    assert "(small=True)" in text


def test_a_page_holds_every_number(measured):
    text = PAGES.page(measured)
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| (peer|cavity) ", line)]
    (comparison, _) = measured["comparisons"]
    for cells, entry in zip(rows, comparison["rows"], strict=True):
        seconds = entry["cold_cpu"], entry["cold_wall"], entry["cpu"]["median"], entry["wall"]["median"]
        assert cells[0] == entry["name"]
        assert [float(cell) for cell in cells[1:5]] == pytest.approx([1e3 * one for one in seconds], rel=1e-3)
        assert [float(cell) for cell in cells[5:7]] == [3, 2]
        ratios = [float(number) for number in re.findall(r"[\d.e+-]+", cells[7])]
        assert ratios == pytest.approx([entry["ratio"][name] for name in ("median", "min", "max")], rel=1e-2)
    assert "* sweeps: 7\n* apart: 0.3333\n" in text
    assert text.endswith("## Memory\n\n* peak: 2.5\n")


def test_the_list_of_pages_is_that_of_the_folder():
    names = sorted(path.stem for path in FOLDER.glob("*.md") if path.name != "index.md")
    text = (FOLDER / "index.md").read_text()
    assert PAGES.index(text, names) == text, "run python benchmarks/pages.py"
    assert "(skills.md)" in PAGES.index(text, ["skills"])


def test_every_page_was_measured_somewhere():
    for path in FOLDER.glob("*.md"):
        assert path.name == "index.md" or re.search(
            r"^Measured on \d{4}-\d\d-\d\d at commit \w+", path.read_text(), re.M
        )


def test_make_bench_runs_benchmarks_that_are_there_and_their_pages():
    makefile = (ROOT / "Makefile").read_text()
    names = re.search(r"^BENCHMARKS := (.*)$", makefile, re.M)[1].split()
    assert all((ROOT / "benchmarks" / f"{name}.py").exists() for name in names)
    assert "benchmarks/pages.py $(BENCHMARKS)" in makefile
