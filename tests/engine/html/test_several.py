"""Programs, batches, posteriors without a model and fitted trees in a notebook: sound parts, with their numbers."""

import numpy as np
import pytest
from read_html import Page
from small_models import mean_model

import cavity as cv
from cavity.models.trees.fitted_tree import fit_tree
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.arrays import Leaves
from cavity.models.trees.tree import Tree

DATA = {"x": [1.0, 2.0, 5.0]}


@pytest.fixture(scope="module")
def program():
    return cv.compile(mean_model(), observed=["x"])


@pytest.fixture(scope="module")
def parts(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "answer"
    program(DATA).save(path)
    batch = program.batch([DATA, {"x": [0.0, 1.0, 2.0]}])
    return {"program": program, "batch": batch, "saved": cv.load(path)}


@pytest.mark.parametrize("name", ["program", "batch", "saved"])
def test_parts_are_sound(parts, name):
    page = Page(parts[name]._repr_html_())
    assert not page.all("script", "link", "iframe", "img")
    for cell in page.all("th"):
        assert cell.attributes["scope"] in ("row", "col")
    for frame in [e for e in page.elements if "wide" in e.attributes.get("class", "").split()]:
        assert frame.attributes["tabindex"] == "0"
        assert frame.attributes["aria-label"]
    for picture in page.all("svg"):
        assert picture.attributes["role"] == "img"
        assert len(picture.attributes["aria-label"]) > 20


def test_a_batch_has_the_evidence_of_each(parts):
    text = parts["batch"]._repr_html_()
    for value in parts["batch"].log_evidence:
        assert f"{value:.5g}" in text
    assert "2 of 2 inferences converged" in text


def test_a_saved_posterior_has_its_numbers(parts):
    saved = parts["saved"]
    text = saved._repr_html_()
    assert f"{float(saved['mean'].mean):.4g}" in text
    assert "cv.load(path, model)" in text


def test_a_program_tells_what_it_is_given(parts):
    assert "Compiled for observations of x" in parts["program"]._repr_html_()


def test_a_fitted_tree_is_drawn_with_its_rows():
    parent, depth = np.array([4, 4, 5, 5, 6, 6, -1]), np.array([np.inf] * 4 + [0.9, 0.7, 0.2])
    leaves = Leaves(np.random.default_rng(0).normal(size=(4, 2)), np.zeros((4, 1)))
    found = fit_tree(Tree(parent, depth), leaves, TreePrior())
    page = Page(found._repr_html_())
    assert len(page.all("svg")) == 1
    assert "4 rows and 2 columns" in found._repr_html_()
