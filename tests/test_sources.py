"""Every source that a docstring or a declaration cites is in docs/references.bib."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENTRIES = re.split(r"^(?=@)", (ROOT / "docs" / "references.bib").read_text(), flags=re.MULTILINE)[1:]
KEYS = {key for entry in ENTRIES for key in re.findall(r"^@\w+\{([^,]+),", entry)}
FILES = [path for room in ("factors", "compiler", "engine", "models", "docs") for path in (ROOT / room).rglob("*.*")]
FILES = [path for path in FILES if path.suffix in {".py", ".md"} and "_build" not in path.parts]
CITATION = re.compile(r"(?:Source|source|cite)\W{1,4}([^\n]*)")
KEY = re.compile(r"\b[a-z]{3,}(?:19|20)\d\d[a-z]*\b")


def cited(path):
    return {key for line in CITATION.findall(path.read_text()) for key in KEY.findall(line)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sources_are_known(path):
    assert cited(path) <= KEYS


def test_sources_are_cited_at_all():
    assert any(cited(path) for path in FILES)


def test_entries_are_closed_and_each_is_there_once():
    """One that is not closed, as a merge may leave it, stops the documentation."""
    assert [entry.splitlines()[0] for entry in ENTRIES if entry.count("{") != entry.count("}")] == []
    assert len(KEYS) == len(ENTRIES)
