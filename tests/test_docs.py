"""The pages cannot rot: their Python blocks run, print what stands below them, and generated tables are current."""

import ast
import re

import pytest
from doc_scripts import DOCS, load

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


ROOT = DOCS.parent
ALL = [*PAGES.PAGES, *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY"))]


def test_links_between_pages_lead_somewhere():
    for path in ALL:
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(#[^)\s]+)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} points to {target}"
            if anchor:
                place = path if not target else path.parent / target
                assert anchor[1:] in anchors(place), f"{path.name} points to {target}{anchor}"


def anchors(path):
    """The headings of a page as GitHub and MyST name them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links_to_sources_name_what_is_there():
    """`[`name`](file.py)`: the file defines the name, a method as `Class.name`, or is called so itself."""
    found = 0
    for path in ALL:
        for name, target in re.findall(r"\[`([\w./]+)`\]\(([^)#]+\.py)\)", path.read_text()):
            place = (path.parent / target).resolve()
            assert name in defined(place), f"{path.name}: {target} does not define {name}"
            found += 1
    assert found > 50  # docs/architecture.md has most of them


def defined(path):
    """The names that a file defines at its top and in its classes, and its own."""
    own = path.parent.name if path.stem == "__init__" else path.stem
    return {own, *names(ast.parse(path.read_text()).body, "")}


def names(body, before):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield before + node.name
            yield from names(node.body, f"{before}{node.name}.") if isinstance(node, ast.ClassDef) else ()
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (before + target.id for target in targets if isinstance(target, ast.Name))


PLACE = re.compile(r"`{1,2}((?:factors|compiler|engine|models|tests|benchmarks|docs|examples)/[\w/.-]+)`{1,2}")
NOT_COMMITTED = {"docs/_build/html", "benchmarks/results/"}


def test_places_that_the_pages_name_exist():
    for path in ALL:
        for place in set(PLACE.findall(path.read_text())) - NOT_COMMITTED:
            assert (ROOT / place).exists(), f"{path.name} speaks of {place}"


def test_every_page_is_in_a_table_of_contents():
    text = "".join(path.read_text() for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    listed = {
        line.strip() for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL) for line in block.split("\n")
    }
    for path in PAGES.PAGES[1:]:
        place = path.relative_to(DOCS).with_suffix("")
        assert path.stem == "index" or {str(place), place.name} & listed, f"no toctree has {place}"


def test_the_picture_of_the_rooms_is_current():
    rooms = load("make_rooms")
    assert rooms.renewed() == (DOCS.parent / "CONTRIBUTING.md").read_text(), "run python docs/make_rooms.py"


def test_the_picture_shows_every_folder():
    rooms = load("make_rooms")
    places = [path.parent for package in rooms.PACKAGES for path in ROOT.glob(f"{package}/*/*.py")]
    assert {str(place.relative_to(ROOT)) for place in places} <= set(rooms.rooms())


WORDS = """block, site, slot, edge, cell, message, cavity, row block, floor, plate, gate, natural parameters, sufficient
statistics, log evidence, plan, draft, outcome, factor, family, belief, sweep, instance, element, linear form"""


def test_the_glossary_has_the_words_of_the_sources():
    heads = re.findall(r"^\*\*(.*?)\.\*?\*\*", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    entries = [word.strip() for head in heads for word in head.split(",")]
    assert {word.strip() for word in " ".join(WORDS.split()).split(",")} <= set(entries)
    assert len(entries) == len(set(entries)), "one entry for each word"
    for page in ("concepts.md", "index.md"):
        assert "(glossary.md)" in (DOCS / page).read_text()
