"""The names of other systems, both ways: each leads to ours, and each of ours is in the table."""

import inspect
import re

import doc_scripts
import pytest

import cavity as cv
from cavity.factors.factor import Term
from cavity.names_elsewhere import ROWS, TERMS, ours


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.ours)
def test_what_the_table_names_exists(row):
    for name in re.findall(r"cv\.(\w+)", row.ours):
        assert hasattr(cv, name), name
    for name in re.findall(r"\bm\.(\w+)", row.ours):
        assert hasattr(cv.Model, name), name
    for name in re.findall(r"posterior\.(\w+)", row.ours):
        assert hasattr(cv.Posterior, name), name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.ours)
def test_the_names_of_other_systems_lead_to_ours(row):
    for system, name in row.names():
        found = {there.ours: systems for there, systems in ours(name)}
        assert system in found[row.ours]
        last = name.split(".")[-1]
        if last.isidentifier() and not hasattr(cv, last):
            with pytest.raises(AttributeError) as raised:
                getattr(cv, last)
            assert all(own in str(raised.value) for own in found)


def test_every_term_of_ours_is_in_the_table():
    builders = {
        name
        for name in cv.__all__
        if inspect.isfunction(own := getattr(cv, name)) and inspect.signature(own).return_annotation in ("Term", Term)
    }
    named = {name for row in ROWS for name in re.findall(r"cv\.(\w+)", row.ours)}
    assert builders <= named, sorted(builders - named)


def test_no_name_stands_for_something_else_of_ours():
    """Where another system's name exists here it is what its row says."""
    for row in TERMS:
        for system, name in row.names():
            if name in cv.__all__:
                assert f"cv.{name}" in row.ours, (system, name)


def test_a_slip_of_the_pen_is_seen_and_the_rest_leads_to_the_docs():
    with pytest.raises(AttributeError, match=r"Did you mean `cv\.gaussian`\?"):
        cv.gausian
    with pytest.raises(AttributeError, match=r"docs/language\.md"):
        cv.qqqqqq
    assert not hasattr(cv, "__wrapped__")


def test_a_model_says_what_its_methods_are_called():
    with pytest.raises(AttributeError, match=r"m\.let\(name, expression\)"):
        cv.Model().deterministic
    with pytest.raises(AttributeError, match=r"Did you mean `model\.random`"):
        cv.Model().randm


def test_the_page_is_current():
    module = doc_scripts.load("make_names")
    assert module.renewed() == module.PAGE.read_text()
