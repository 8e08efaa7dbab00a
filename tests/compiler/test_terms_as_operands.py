"""Terms, mixtures, switches, ordered vectors and tables in arithmetic: each works, or says what to do."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import cavity as cv


def nameless():
    m = cv.Model()
    b = m.random("b", cv.bernoulli(0.5))
    terms = cv.gaussian(0.0, sd=1.0), cv.gaussian(3.0, sd=1.0)
    return {
        "mixture": cv.mixture(0.5, *terms),
        "switch": cv.switch(b, *terms),
        "ordered vector": cv.ordered(terms[0], size=3),
        "table": cv.table([1.0, 2.0]),
    }


@pytest.mark.parametrize("what", ["mixture", "switch", "ordered vector", "table"])
def test_what_has_no_variable_cannot_be_computed_with(what):
    value, remedy = nameless()[what], "index it first" if what == "table" else "name its variable first"
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, sd=1.0))
    uses = [
        *(
            lambda f=f: f(value, 2.0)
            for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)
        ),
        *(
            lambda f=f: f(2.0, value)
            for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)
        ),
        *(lambda f=f: f(x, value) for f in (operator.add, operator.mul, operator.gt, operator.lt)),
        *(lambda f=f: f(value) for f in (operator.neg, abs, operator.invert, cv.exp, cv.sqrt)),
        lambda: np.ones(2) * value,
        lambda: value > 0.0,
        lambda: cv.max(value, 1.0),
    ]
    for use in uses:
        with pytest.raises(cv.ModelError, match=remedy):
            use()


@pytest.mark.parametrize("what", ["mixture", "switch", "ordered vector"])
def test_as_an_argument_they_are_named_not_printed(what):
    value = nameless()[what]
    m = cv.Model()
    with pytest.raises(cv.ModelError, match=rf"is itself an? {what}. Name its variable first") as problem:
        m.random("x", cv.gaussian(value, sd=1.0))
    assert "Factor(" not in str(problem.value)
    with pytest.raises(cv.ModelError, match=rf"is given an? {what}"):
        m.let("y", value)
    if what != "switch":  # which may begin a chain
        with pytest.raises(cv.ModelError, match=rf"first= is an? {what}"):
            m.chain("z", over=m.plate("t"), first=value, then=lambda p: cv.gaussian(p, sd=1.0))


def test_terms_in_all_kinds_of_arithmetic():
    m = cv.Model()
    half = cv.gaussian(0.0, sd=1.0)
    m.let("size", abs(half))
    m.let("positive", half > 0.0)
    m.let("power", 2.0**half)
    m.let("neither", ~cv.bernoulli(0.3) & cv.bernoulli(0.5))
    found = cv.infer(m, {})
    np.testing.assert_allclose(found["size"].mean, np.sqrt(2.0 / np.pi), rtol=1e-3)
    np.testing.assert_allclose(found["positive"].mean, 0.5, atol=1e-9)
    np.testing.assert_allclose(found["power"].mean, np.exp(0.5 * np.log(2.0) ** 2), rtol=1e-6)
    np.testing.assert_allclose(found["neither"].mean, 0.35, atol=1e-9)
    with pytest.raises(cv.ModelError, match="Leave the index out"):
        half[0]
    with pytest.raises(TypeError, match="not iterable"):
        list(half)
