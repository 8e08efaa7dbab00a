"""Largest and smallest numbers, derived and observed, against grids; expressions that are observed in part."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import cavity as cv

close = np.testing.assert_allclose
N = stats.norm


def two(**noise):
    m = cv.Model("two")
    a, b = m.random("a", cv.gaussian(0.0, sd=1.0)), m.random("b", cv.gaussian(0.5, sd=2.0))
    return m, a, b


def moments(weights, parts):
    """Mean and sd of a mixture from (mean, variance) of its parts."""
    means, variances = np.array(parts).T
    mean = weights @ means
    return mean, np.sqrt(weights @ (variances + (means - mean) ** 2))


@pytest.mark.parametrize("smallest", [False, True])
def test_an_observed_extreme_of_two_numbers(smallest):
    m, a, b = two()
    m.let("y", cv.min(a, b) if smallest else cv.max(a, b))
    found = cv.infer(m, {"y": 1.5})
    tail = N.sf if smallest else N.cdf
    logs = np.array([N.pdf(1.5, 0, 1) * tail(1.5, 0.5, 2), N.pdf(1.5, 0.5, 2) * tail(1.5, 0, 1)])
    close(found.log_evidence, np.log(logs.sum()), atol=1e-10)
    cut = (1.5, np.inf) if smallest else (-np.inf, 1.5)
    rest = stats.truncnorm(*np.array(cut), 0, 1)
    mean, sd = moments(logs / logs.sum(), [(1.5, 0.0), (rest.mean(), rest.var())])
    close([found["a"].mean, found["a"].sd], [mean, sd], rtol=1e-9)
    rest = stats.truncnorm(*((np.array(cut) - 0.5) / 2.0), 0.5, 2.0)
    mean, sd = moments(logs[::-1] / logs.sum(), [(1.5, 0.0), (rest.mean(), rest.var())])
    close([found["b"].mean, found["b"].sd], [mean, sd], rtol=1e-9)
    assert "the smallest" in found.explain() if smallest else "the largest" in found.explain()


def rows(noise):
    m = cv.Model("rows")
    g, t = m.plate("g"), m.plate("t", 3)
    mu = m.random("mu", cv.gaussian(0.0, sd=3.0))
    x = m.random("x", cv.gaussian(mu, sd=1.0), plates=(g, t))
    if noise is None:
        m.let("y", cv.max(x, over=t))
    else:
        m.random("y", cv.gaussian(cv.max(x, over=t), sd=noise))
    return m


@pytest.mark.parametrize("noise", [None, 0.5])
def test_observed_maxima_over_a_plate_of_which_one_is_missing(noise):
    y = np.random.default_rng(0).normal(size=(12, 3)).max(1) + 2.0
    y[4] = np.nan
    found = cv.infer(rows(noise), {"y": y})
    grid, s = np.linspace(0.0, 4.0, 801), np.linspace(-6.0, 10.0, 2001)
    log_prior, step = N.logpdf(grid, 0.0, 3.0), grid[1] - grid[0]
    if noise is None:
        likelihood = [np.log(3.0) + N.logpdf(v, grid) + 2.0 * N.logcdf(v, grid) for v in y if np.isfinite(v)]
    else:
        density = 3.0 * N.pdf(s, grid[:, None]) * N.cdf(s, grid[:, None]) ** 2
        likelihood = [np.log((density * N.pdf(v, s, noise)).sum(1) * (s[1] - s[0])) for v in y if np.isfinite(v)]
    logs = log_prior + sum(likelihood)
    weights = np.exp(logs - logs.max())
    mean = weights @ grid / weights.sum()
    sd = np.sqrt(weights @ (grid - mean) ** 2 / weights.sum())
    close([found["mu"].mean, found["mu"].sd], [mean, sd], rtol=2e-5)
    close(found.log_evidence, np.log(weights.sum() * step) + logs.max(), atol=1e-4)


def test_extremes_over_a_plate_are_derived_values():
    m = cv.Model("derived")
    t = m.plate("t", 5)
    x = m.random("x", cv.gaussian(0.0, sd=1.0), plates=t)
    m.random("y", cv.gaussian(x, sd=1.0))
    m.let("top", cv.max(x, over=t))
    m.let("range", cv.max(x, over=t) - cv.min(x, over=t))
    y = np.array([-1.0, 0.2, 0.4, 1.5, 1.1])
    found = cv.infer(m, {"y": y})
    drawn = 0.5 * y + np.sqrt(0.5) * np.random.default_rng(0).normal(size=(400_000, 5))
    for name, values in (("top", drawn.max(1)), ("range", np.ptp(drawn, axis=1))):
        close(found[name].mean, values.mean(), atol=0.01)
        close(found[name].sd, values.std(), rtol=0.02)
        close(found[name].quantile([0.1, 0.9]), np.quantile(values, [0.1, 0.9]), atol=0.03)


def test_curved_expressions_of_many_numbers_keep_their_variance():
    m = cv.Model("curved")
    t = m.plate("t", 6)
    x = m.random("x", cv.gaussian(0.3, sd=1.0), plates=t)
    m.random("y", cv.gaussian(x, sd=1.0))
    m.let("square", sum((x[i] ** 2 for i in range(1, 6)), x[0] ** 2))
    m.let("growth", sum((cv.exp(x[i]) for i in range(1, 5)), cv.exp(x[0])))
    y = np.linspace(-1.0, 1.0, 6)
    found = cv.infer(m, {"y": y})
    mean, variance = 0.5 * (y + 0.3), 0.5
    close(found["square"].mean, (mean**2 + variance).sum(), rtol=1e-6)
    close(found["square"].variance, (2.0 * variance**2 + 4.0 * mean**2 * variance).sum(), rtol=0.03)
    grown = np.exp(mean + 0.5 * variance)[:5]
    close(found["growth"].mean, grown.sum(), rtol=0.002)
    close(found["growth"].variance, (grown**2 * np.expm1(variance)).sum(), rtol=0.03)


def test_what_is_no_extreme_of_separate_numbers_is_told_to_take_noise():
    m, a, b = two()
    m.let("y", cv.max(a + b, b))
    with pytest.raises(cv.UnsupportedError, match="Observe it with noise"):
        cv.infer(m, {"y": 1.5})
    m = cv.Model("no size")
    t = m.plate("t")
    x = m.random("x", cv.gaussian(0.0, sd=1.0), plates=t)
    with pytest.raises(cv.ModelError, match="Give the plate a size"):
        cv.max(x, over=t)
    with pytest.raises(cv.ModelError, match="a single value"):
        cv.max(x, 2.0, over=t)


# observed in part -----------------------------------------------------------------------------------------------------


def test_a_sum_that_is_observed_in_part():
    m = cv.Model("sum")
    n = m.plate("n")
    a, b = m.random("a", cv.gaussian(0.0, sd=1.0), plates=n), m.random("b", cv.gaussian(1.0, sd=2.0), plates=n)
    m.let("s", a + b)
    found, whole = cv.infer(m, {"s": [3.0, np.nan, 0.0]}), cv.infer(m, {"s": [3.0, 0.0]})
    close(found.log_evidence, whole.log_evidence, atol=1e-9)
    close(found["a"].mean[[0, 2]], whole["a"].mean, atol=1e-9)
    close([found["a"].mean[1], found["b"].sd[1], found["s"].mean[1]], [0.0, 2.0, 1.0], atol=1e-9)
    close(found["s"].sd, [0.0, np.sqrt(5.0), 0.0], atol=1e-9)


def test_a_product_that_is_observed_in_part():
    m = cv.Model("product")
    n = m.plate("n")
    a, b = m.random("a", cv.gamma(2.0, 1.0), plates=n), m.random("b", cv.gamma(3.0, 1.0), plates=n)
    m.let("s", a * b)
    found, whole = cv.infer(m, {"s": [3.0, np.nan, 1.0]}), cv.infer(m, {"s": [3.0, 1.0]})
    close(found.log_evidence, whole.log_evidence, atol=1e-9)
    close(found["a"].mean, [whole["a"].mean[0], 2.0, whole["a"].mean[1]], atol=1e-9)


def test_logical_expressions_that_are_observed_in_part():
    m = cv.Model("logic")
    n, c = m.plate("n", 3), m.random("c", cv.bernoulli(0.5))
    a, b = m.random("a", cv.bernoulli(0.3), plates=n), m.random("b", cv.bernoulli(0.6), plates=n)
    m.let("s", a & b & c)
    m.let("u", a | b | c)
    data = {
        "s": np.ma.array([True, False, False], mask=[True, False, False]),
        "u": np.ma.array([True, False, True], mask=[False, True, False]),
    }
    found = cv.infer(m, data)
    total, of_a = 0.0, np.zeros(3)
    for bits in itertools.product([False, True], repeat=7):
        a, b, c = np.array(bits[:3]), np.array(bits[3:6]), bits[6]
        fits = [(v != data[k].data)[~data[k].mask].sum() == 0 for k, v in (("s", a & b & c), ("u", a | b | c))]
        weight = all(fits) * 0.5 * np.prod(np.where(a, 0.3, 0.7)) * np.prod(np.where(b, 0.6, 0.4))
        total, of_a = total + weight, of_a + weight * a
    close(found["a"].mean, of_a / total, atol=1e-9)
    close(found.log_evidence, np.log(total), atol=1e-9)
    close(cv.log_density(m, data)({}), np.log(total), atol=1e-9)


def test_an_expression_that_others_depend_on_may_not_be_missing_in_part():
    m = cv.Model("used")
    n = m.plate("n")
    a = m.random("a", cv.gaussian(0.0, sd=1.0), plates=n)
    s = m.let("s", 2.0 * a)
    m.random("y", cv.gaussian(s, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="that others depend on"):
        cv.infer(m, {"s": [1.0, np.nan], "y": [1.0, 1.0]})
