"""Models of the same data beside each other."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import cavity as cv

X = np.linspace(-2.0, 2.0, 30)
Y = 1.0 + 2.0 * X + np.random.default_rng(0).normal(size=30)


def line(name, slope):
    m = cv.Model(name)
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    mean = m.random("a", cv.gaussian(0.0, variance=10.0))
    if slope:
        mean = mean + m.random("b", cv.gaussian(0.0, variance=10.0)) * x
    m.random("y", cv.gaussian(mean, variance=1.0), plates=n)
    return cv.infer(m, {"x": X, "y": Y})


def exact(design):
    """Log evidence and leave-one-out densities of a linear model in closed form."""
    covariance = np.eye(30) + 10.0 * design @ design.T
    precision = np.linalg.inv(covariance)
    gap = precision @ Y / np.diag(precision)
    loo = scipy.stats.norm.logpdf(gap, scale=np.diag(precision) ** -0.5)
    return scipy.stats.multivariate_normal.logpdf(Y, np.zeros(30), covariance), loo


@pytest.fixture(scope="module")
def posteriors():
    return line("flat", False), line("line", True)


def test_the_numbers_of_linear_models(posteriors):
    found = cv.compare(posteriors)
    assert found.names == ("line", "flat")
    better, worse = exact(np.stack([np.ones(30), X], axis=1)), exact(np.ones((30, 1)))
    assert_allclose(found.log_evidence, [better[0], worse[0]], rtol=1e-8)
    assert_allclose(found.loo, [better[1].sum(), worse[1].sum()], rtol=1e-6)
    gaps = worse[1] - better[1]
    assert_allclose(found.loo_difference, [0.0, gaps.sum()], rtol=1e-5)
    assert_allclose(found.loo_error, [0.0, np.sqrt(30) * gaps.std(ddof=1)], rtol=1e-5)
    assert "log Bayes factor" in str(found)
    assert len(str(found).splitlines()) == 3


def test_names_and_tables(posteriors):
    flat, sloped = posteriors
    assert flat.compare(sloped).names == ("line", "flat")
    assert cv.compare({"one": flat, "two": sloped}).names == ("two", "one")
    assert set(cv.compare([flat, flat]).names) == {"flat", "flat 2"}
    pytest.importorskip("pandas")
    assert list(flat.compare(sloped).to_frame().index) == ["line", "flat"]


def test_different_data_are_not_compared(posteriors):
    m = cv.Model("other")
    m.random("y", cv.gaussian(0.0, variance=1.0), plates=m.plate("n"))
    with pytest.raises(cv.DataError, match="different values of 'y'"):
        posteriors[0].compare(cv.infer(m, {"y": Y + 1.0}))


@pytest.mark.parametrize("given", [[], 3, [1, 2], {}])
def test_what_is_not_to_be_compared(given, posteriors):
    with pytest.raises(cv.ModelError, match="compare"):
        cv.compare(given)
    with pytest.raises(cv.ModelError, match="compare"):
        cv.compare(posteriors[0])


def test_missing_values_and_labels_are_part_of_the_data():
    def level(y):
        m = cv.Model()
        m.random("y", cv.gaussian(0.0, variance=1.0), plates=m.plate("n"))
        return cv.infer(m, {"y": y})

    def kinds(y):
        m = cv.Model()
        m.random("y", cv.categorical([0.3, 0.7]), plates=m.plate("n"))
        return cv.infer(m, {"y": y})

    for one, other in (
        (level([1.0, 2.0, np.nan]), level([1.0, 2.0, 0.0])),
        (kinds(["u", "v", "v"]), kinds(["v", "w", "w"])),
    ):
        with pytest.raises(cv.DataError, match="different values of 'y'"):
            cv.compare([one, other])
    assert cv.compare([level([1.0, np.nan]), level([1.0, np.nan])]).loo_difference[1] == 0.0
