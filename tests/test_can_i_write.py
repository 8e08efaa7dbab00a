"""The page of models: it is current, its programs are short, and they give what the tables say."""

import functools

import doc_scripts
import pytest
from first_hour_models import FILES, load

BEST = ("right", "off", "wrong", "failed")
QUICK = (
    "two_coins", "truncated_gaussian", "learning_a_gaussian", "cyclist", "murder_mystery", "three_questions",
    "jill_and_fred", "coin", "random_walk", "line", "wet_grass", "monty_hall", "two_dice", "handedness", "tanks",
    "remission_times", "extra_zeros", "teams_of_any_size", "states_of_known_levels", "chance_by_itself", "small_steps",
    "drifts_by_regime",
)  # fmt: skip


@pytest.fixture(scope="module")
def page():
    return doc_scripts.load("make_can_i_write")


def test_the_page_is_current(page):
    assert page.renewed() == page.PAGE.read_text()


def test_programs_are_short_and_are_python(page):
    sections = page.programs()
    assert sum(map(len, sections.values())) >= 80
    for title, found in sections.items():
        for name, text, _ in found:
            assert len(text.splitlines()) <= page.LONGEST, (title, name)
            compile(text, name, "exec")


def said():
    """What docs/first-hour.md says of each model."""
    rows = [line.split(" | ") for line in (doc_scripts.DOCS / "first-hour.md").read_text().splitlines()]
    return {row[0].removeprefix("| "): row[1] for row in rows if len(row) > 5 and row[1] in BEST}


@functools.cache
def declared():
    """All models: file and function by name."""
    return {function.__name__: (file, function) for file in FILES for function in load(file).MODELS}


def marked(name):
    return load("table").run(*declared()[name])["mark"]


@pytest.mark.parametrize("name", QUICK)
def test_a_program_gives_the_truth(name):
    assert marked(name) == "right"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(said()) - set(QUICK)))
def test_a_program_gives_what_the_table_says(name):
    assert BEST.index(marked(name)) <= BEST.index(said()[name])
