"""Formulas of mixed regressions: what they say, and what is none."""

import itertools

import numpy as np
import pytest

import cavity as cv
from cavity.models.mixed.formula import Effects, Formula, parsed
from cavity.models.mixed.model import mixed

pandas = pytest.importorskip("pandas")


def test_what_a_formula_says():
    assert parsed("y ~ a + b.2 + (1 | g) + (0 + a || h)") == Formula(
        "y", True, ("a", "b.2"), (Effects("g", True, (), False), Effects("h", False, ("a",), False))
    )
    assert parsed("y ~ 0 + a") == Formula("y", False, ("a",), ())
    assert parsed("y ~ (a | g)") == Formula("y", True, (), (Effects("g", True, ("a",), True),))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("y", "no formula"),
        ("~ a", "no formula"),
        ("y ~", "no formula"),
        ("y ~ a * b", "no column"),
        ("y ~ log(a)", "no group"),
        ("y ~ a +", "nothing beside"),
        ("y ~ y", "both sides"),
        ("y ~ (0 | g)", "nothing that varies"),
        ("y ~ (1 | g) + (a | g)", "two sets"),
        ("y ~ (a + b | g)", "more than two"),
        ("y ~ 0", "depends on nothing"),
    ],
)
def test_what_is_no_formula(text, told):
    with pytest.raises(cv.ModelError, match=told):
        mixed(text, pandas.DataFrame({"y": [0.0, 1.0], "a": [1.0, 2.0], "b": [1.0, 2.0], "g": ["x", "z"]}), "gaussian")


def test_columns_of_text_and_effects_that_are_correlated_or_not():
    frame = pandas.DataFrame({"y": [1, 0, 1], "kind": ["a", "b", "c"], "x": [1.0, 2.0, 3.0], "g": [1, 1, 2]})
    model, data = mixed("y ~ kind + (x | g)", frame, "bernoulli")
    assert {"slope of kind b", "slope of kind c", "correlation by g", "effects by g"} <= set(model.randoms)
    np.testing.assert_array_equal(data["columns by g"], [[1, 1], [1, 2], [1, 3]])
    np.testing.assert_array_equal(data["column kind c"], [0, 0, 1])
    assert data["group g"] == ["1", "1", "2"]
    model, _ = mixed("y ~ (x || g)", frame, "poisson")
    assert {"intercept by g", "x by g", "sd of x by g"} <= set(model.randoms)


@pytest.mark.parametrize(
    ("family", "y", "told"),
    [
        ("poisson", [0.5, 1.0], "counts"),
        ("bernoulli", ["a", "b", "c"], "two"),
        ("gaussian", [1.0, np.nan], "row 1"),
        ("gaussian", [1.0, np.inf], "infinite in row 1"),
    ],
)
def test_outcomes_that_do_not_fit(family, y, told):
    with pytest.raises(cv.DataError, match=told):
        mixed("y ~ 1", pandas.DataFrame({"y": y}), family)


def test_without_an_intercept_text_has_a_column_for_each_value():
    frame = pandas.DataFrame({"y": [1.0, 0.0, 1.0], "kind": ["a", "b", "c"], "other": ["p", "q", "q"], "g": [1, 1, 2]})
    model, data = mixed("y ~ 0 + kind + other", frame, "gaussian")
    slopes = {name for name in model.randoms if name.startswith("slope")}
    assert slopes == {"slope of kind a", "slope of kind b", "slope of kind c", "slope of other q"}
    np.testing.assert_array_equal(data["column kind a"], [1, 0, 0])
    model, _ = mixed("y ~ 1 + (0 + other || g)", frame, "gaussian")
    assert {"other p by g", "other q by g"} <= set(model.randoms)
    with pytest.raises(cv.ModelError, match="correlations of two at most"):
        mixed("y ~ 1 + (kind | g)", frame, "gaussian")
    model, _ = mixed("y ~ 1 + (kind | g)", frame.assign(kind="a"), "gaussian")  # one value says nothing
    assert "correlation by g" not in model.randoms


def test_the_larger_of_two_numbers_is_true():
    _, data = mixed("y ~ 1", pandas.DataFrame({"y": [9, 10, 10]}), "bernoulli")
    np.testing.assert_array_equal(data["y"], [False, True, True])


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_columns_may_be_called_as_parts_of_the_model_are(family):
    """The same answer whatever the columns are called."""
    random = np.random.default_rng(0)
    frame = pandas.DataFrame({"y": random.poisson(2.0, 12), "x": random.normal(size=12), "g": np.arange(12) % 3})
    words = ("row", "intercept", "noise")
    for own in itertools.permutations(words):
        renamed = frame.rename(columns=dict(zip(("y", "x", "g"), own, strict=True)))
        y, x, g = own
        plain, data = mixed("y ~ x + (x || g)", frame, family)
        model, other = mixed(f"{y} ~ {x} + ({x} || {g})", renamed, family)
        assert len(model.randoms) == len(plain.randoms)
        assert len(model.plates) == len(plain.plates)
        assert len(other) == len(data)
        cv.compile(model, other)
