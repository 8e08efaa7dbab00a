"""Calls of builders that do not fit: what was asked, what it is called here, and how it is written."""

import inspect

import pytest

import cavity as cv
from cavity.factors.errors import ModelError
from cavity.how_to_call import SAID_OTHERWISE


def refusal(term):
    m = cv.Model()
    with pytest.raises(ModelError) as error:
        m.random("x", term())
    return str(error.value)


@pytest.mark.parametrize(
    ("term", "parts"),
    [
        (lambda: cv.gaussian(0, 1), ["gaussian(0, 1)", "1 argument by place", "variance=, precision= or sd="]),
        (lambda: cv.gaussian(0.0, std=1.0), ["no std=", "Here it is sd="]),
        (lambda: cv.gaussian(mu=0.0, sigma=1.0), ["no mu=", "Here it is mean="]),
        (lambda: cv.gaussian(), ["mean= must be given"]),
        (lambda: cv.gaussian(0.0, mean=1.0, sd=1.0), ["mean is given twice"]),
        (lambda: cv.gamma(alpha=1.0, beta=2.0), ["no alpha=", "Here it is shape="]),
        (lambda: cv.beta(alpha=1.0, beta=2.0), ["no alpha=", "Here it is a="]),
        (lambda: cv.poisson(lam=2.0), ["poisson(lam=2.0)", "Here it is rate="]),
        (lambda: cv.bernoulli(p=0.5), ["Here it is probability="]),
        (lambda: cv.uniform(lower=0.0, upper=1.0), ["Here it is low="]),
        (lambda: cv.student_t(nu=3.0, mu=0.0, sigma=1.0), ["Here it is dof="]),
        (lambda: cv.half_normal(sd=1.0), ["Here it is scale=", "half_normal(scale)"]),
        (lambda: cv.exponential(foo=1.0), ["no foo=", "exponential(rate, mean=)"]),
        (lambda: cv.switch(), ["selector= must be given", "switch(selector, *terms)"]),
    ],
)
def test_calls_that_do_not_fit(term, parts):
    told = refusal(term)
    for part in parts:
        assert part in told


def test_every_builder_of_terms_says_how_it_is_called():
    builders = [getattr(cv, name) for name in cv.__all__ if callable(getattr(cv, name, None))]
    terms = [
        b for b in builders if getattr(inspect.unwrap(b), "__annotations__", {}).get("return") in ("Term", "Switch")
    ]
    assert len(terms) > 40
    for builder in terms:
        if builder is cv.factor:
            continue
        assert "no nonsense=" in refusal(lambda builder=builder: builder(nonsense=1.0))


def test_a_name_that_is_ours_is_nobody_elses():
    for ours, theirs in SAID_OTHERWISE.items():
        assert ours not in theirs


def test_what_fits_passes():
    m = cv.Model()
    m.random("x", cv.switch(m.random("z", cv.bernoulli(0.5)), cv.gaussian(0.0, sd=1.0), cv.gaussian(mean=1.0, sd=1.0)))
