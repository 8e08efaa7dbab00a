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


MADE_UP = {
    "name": "skills",
    "settings": {"players": 100},
    "machine": {
        "date": "2001-02-03",
        "commit": "0123abc",
        "processor": "a processor",
        "cores": 2,
        "load": [0.25, 0.5, 0.75],
        "system": "a system",
        "python": "3.11.1",
        "versions": {"jax": "0.10.0", "absent": None},
    },
    "comparisons": [
        {
            "title": "A | B",
            "rows": [
                {
                    "name": "peer",
                    "cold_cpu": 0.5,
                    "cold_wall": 0.25,
                    "cpu": {"median": 0.0125},
                    "wall": {"median": 0.0075},
                    "units": 3,
                    "rounds": 2,
                    "ratio": {"median": 2.5, "min": 2.25, "max": 2.75},
                },
                {
                    "name": "cavity",
                    "cold_cpu": 1.0,
                    "cold_wall": 2.0,
                    "cpu": {"median": 0.005},
                    "wall": {"median": 0.004},
                    "units": 7,
                    "rounds": 2,
                    "ratio": {"median": 1.0, "min": 1.0, "max": 1.0},
                },
            ],
            "facts": {"sweeps": 7},
        }
    ],
}


def test_a_page_of_a_made_up_result_is_written_word_for_word():
    lines = PAGES.page(MADE_UP).splitlines()
    assert lines[0] == "# skills"
    assert (
        "Measured on 2001-02-03 at commit 0123abc: a processor, 2 cores, load 0.2 at the start, a system, "
        "Python 3.11.1; jax 0.10.0."
    ) in lines
    assert "Made by `benchmarks/skills.py` (players=100); `make bench` makes it anew." in lines
    assert "| peer | 500 | 250 | 12.5 | 7.5 | 3 | 2 | 2.5 (2.25, 2.75) |" in lines
    assert "| cavity | 1000 | 2000 | 5 | 4 | 7 | 2 | 1 (1, 1) |" in lines
    assert lines[-1] == "* sweeps: 7"


def test_results_become_pages_and_entries_of_the_list(tmp_path):
    pages, results = tmp_path / "pages", tmp_path / "results"
    pages.mkdir()
    results.mkdir()
    (pages / "index.md").write_text(f"Before\n\n{PAGES.BEGIN}\n{PAGES.END}\n\nafter\n")
    (results / "skills.json").write_text(json.dumps(MADE_UP))
    places = mock.patch.multiple(PAGES, PAGES=pages, RESULTS=results, INDEX=pages / "index.md")
    with places, mock.patch.object(sys, "argv", ["pages.py", "skills"]):
        PAGES.main()
    index = (pages / "index.md").read_text()
    assert (pages / "skills.md").read_text() == PAGES.page(MADE_UP)
    assert f"* [skills](skills.md): {PAGES.what('skills')}\n" in index
    assert index.startswith("Before\n")
    assert index.endswith("\n\nafter\n")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What the harness keeps of a contest of two functions that do nothing, and of facts without contestants."""
    harness = load("harness")
    harness.RESULTS = tmp_path_factory.mktemp("results")
    report = harness.Report("skills", small=True)
    report.add(harness.compare("Nothing", {"peer": lambda: 3, "cavity": lambda: 3}, repeats=2), sweeps=7, apart=1 / 3)
    report.table("Apart", "In seconds.", ("", "first", "second"), [["a | b", "1.5", "2 (1, 3)"]], {"a": [1, 2, 3]})
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
    (comparison, table, _) = measured["comparisons"]
    for cells, entry in zip(rows, comparison["rows"], strict=True):
        seconds = entry["cold_cpu"], entry["cold_wall"], entry["cpu"]["median"], entry["wall"]["median"]
        assert cells[0] == entry["name"]
        assert [float(cell) for cell in cells[1:5]] == pytest.approx([1e3 * one for one in seconds], rel=1e-3)
        assert [float(cell) for cell in cells[5:7]] == [3, 2]
        ratios = [float(number) for number in re.findall(r"[\d.e+-]+", cells[7])]
        assert ratios == pytest.approx([entry["ratio"][name] for name in ("median", "min", "max")], rel=1e-2)
    assert "* sweeps: 7\n* apart: 0.3333\n" in text
    assert table["table"]["measured"] == {"a": [1, 2, 3]}
    apart = "## Apart\n\nIn seconds.\n\n|  | first | second |\n| --- | ---: | ---: |\n| a / b | 1.5 | 2 (1, 3) |\n\n"
    assert apart in text
    assert text.endswith("## Memory\n\n* peak: 2.5\n")


def test_the_list_of_pages_is_that_of_the_folder():
    names = sorted(path.stem for path in FOLDER.glob("*.md") if path.name != "index.md")
    text = (FOLDER / "index.md").read_text()
    assert PAGES.index(text, names) == text, "run python benchmarks/pages.py"
    assert "(skills.md)" in PAGES.index(text, ["skills"])


def unmeasured(folder):
    """The pages of a folder that do not say on which day and at which commit their numbers were measured."""
    stamp = re.compile(r"^Measured on \d{4}-\d\d-\d\d at commit \w+: ", re.M)
    pages = (path for path in sorted(folder.glob("*.md")) if path.name != "index.md")
    return [path.name for path in pages if not stamp.search(path.read_text())]


def test_every_page_was_measured_somewhere(tmp_path):
    assert unmeasured(FOLDER) == []
    (tmp_path / "skills.md").write_text(PAGES.page(MADE_UP))
    (tmp_path / "pasted.md").write_text("# pasted\n\nTwice as fast.\n")
    assert unmeasured(tmp_path) == ["pasted.md"]


LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]+)?\)")
FILE = re.compile(r"`((?:benchmarks|compiler|docs|engine|examples|factors|models|tests)/[\w./-]*\.\w+)`")


def missing(path, root=ROOT):
    """What a page links to, and the files of this project that it names, where they are not there."""
    text = path.read_text()
    links = [target for target in LINK.findall(text) if not (path.parent / target).exists()]
    return links + [name for name in FILE.findall(text) if not (root / name).exists()]


def test_what_readme_decisions_and_benchmarks_point_at_is_there():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "decisions").glob("*.md")), *sorted(FOLDER.glob("*.md"))]
    assert {path.name: found for path in pages if (found := missing(path))} == {}
    assert any(FILE.search(path.read_text()) for path in pages)


def test_what_is_missing_is_seen(tmp_path):
    (tmp_path / "page.md").write_text("See [a](page.md), [b](nowhere.md#part) and `benchmarks/nowhere.py`.\n")
    assert missing(tmp_path / "page.md", tmp_path) == ["nowhere.md", "benchmarks/nowhere.py"]


def test_make_bench_runs_benchmarks_that_are_there_and_their_pages():
    makefile = (ROOT / "Makefile").read_text()
    names = re.search(r"^BENCHMARKS := (.*)$", makefile, re.M)[1].split()
    assert all((ROOT / "benchmarks" / f"{name}.py").exists() for name in names)
    assert "benchmarks/pages.py $(BENCHMARKS)" in makefile


def test_answers_are_compared_over_the_parameters_that_both_have():
    with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
        first_answer = load("first_answer")
    ours = {"slope": [[1.0, 2.0], [0.5, 0.25]], "scale": [[3.0], [1.0]]}
    assert first_answer.apart({"slope": [[1.5, 1.75], [0.6, 0.2]]}, ours) == ["1.00", "0.80 to 1.20"]
    assert first_answer.apart({"other": [[1.0], [1.0]]}, ours) == ["", ""]
