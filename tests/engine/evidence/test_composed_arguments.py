"""Factors whose arguments are functions of several numbers: run by default, against integrals over a grid."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import cavity as cv

RNG = np.random.default_rng(5)


def moments(log_density, *axes):
    """Means and sds of the coordinates of a dense grid."""
    grids = np.meshgrid(*axes, indexing="ij")
    logs = log_density(*grids)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    means = [np.sum(weights * grid) for grid in grids]
    return means, [np.sqrt(np.sum(weights * (grid - mean) ** 2)) for grid, mean in zip(grids, means, strict=True)]


def agree(posterior, names, means, sds, within=0.05):
    for name, mean, sd in zip(names, means, sds, strict=True):
        assert abs(posterior[name].mean - mean) < within * sd, name
        assert posterior[name].sd == pytest.approx(sd, rel=within), name


def test_a_saturating_curve():
    """Michaelis-Menten kinetics, with a positive expression as the mean."""
    x = np.array([0.02, 0.06, 0.11, 0.22, 0.56, 1.1] * 2)
    y = 210.0 * x / (0.065 + x) + RNG.normal(0.0, 8.0, 12)
    m = cv.Model("enzyme")
    n = m.plate("n")
    at = m.input("x", cv.positive, plates=n)
    top = m.random("top", cv.gamma(2.0, 0.02))
    half = m.random("half", cv.gamma(2.0, 20.0))
    m.random("y", cv.gaussian(top * at / (half + at), sd=10.0))
    m.let("efficiency", top / half)
    posterior = cv.infer(m, {"x": x, "y": y})

    def log_density(top, half):
        mean = top[..., None] * x / (half[..., None] + x)
        prior = scipy.stats.gamma(2.0, scale=50.0).logpdf(top) + scipy.stats.gamma(2.0, scale=0.05).logpdf(half)
        return prior + scipy.stats.norm(mean, 10.0).logpdf(y).sum(-1)

    axes = np.linspace(150.0, 300.0, 400), np.linspace(0.005, 0.2, 400)
    agree(posterior, ("top", "half"), *moments(log_density, *axes))
    tops, halves = np.meshgrid(*axes, indexing="ij")
    weights = np.exp(log_density(tops, halves) - log_density(tops, halves).max()).ravel()
    ratio = (tops / halves).ravel()
    order = np.argsort(ratio)
    levels = np.cumsum(weights[order]) / weights.sum()
    for level in (0.05, 0.5, 0.95):
        exact = ratio[order][np.searchsorted(levels, level)]
        sd = np.sqrt(np.average((ratio - np.average(ratio, weights=weights)) ** 2, weights=weights))
        assert abs(posterior["efficiency"].quantile(level) - exact) < 0.05 * sd


def test_a_change_point_of_rates():
    """Given the point each half of the counts touches one rate, so that all is exact: against enumeration."""
    counts = np.concatenate([RNG.poisson(3.0, 25), RNG.poisson(1.0, 25)])
    m = cv.Model("change point")
    n = m.plate("n")
    year = m.input("year", cv.real, plates=n)
    change = m.random("change", cv.discrete_uniform(50))
    early, late = m.random("early", cv.gamma(1.0, 1.0)), m.random("late", cv.gamma(1.0, 1.0))
    m.random("y", cv.poisson(cv.where(change > year, early, late)))
    posterior = cv.infer(m, {"year": np.arange(50.0), "y": counts})
    from scipy.special import gammaln, softmax

    first = np.array([counts[:c].sum() for c in range(50)])
    total, c = counts.sum(), np.arange(50)
    logs = gammaln(1.0 + first) - (1.0 + first) * np.log(1.0 + c)
    logs += gammaln(1.0 + total - first) - (1.0 + total - first) * np.log(51.0 - c)
    p = softmax(logs)
    np.testing.assert_allclose(posterior["change"].mean, p, atol=1e-9)
    np.testing.assert_allclose(posterior["early"].mean, p @ ((1.0 + first) / (1.0 + c)), rtol=1e-9)


def test_data_that_choose_between_gaussians_keep_them_linear():
    treated = np.arange(20) % 3 == 0
    y = np.where(treated, 2.0, -1.0) + RNG.normal(size=20)
    m = cv.Model("treatment")
    n = m.plate("n")
    chosen = m.input("treated", cv.boolean, plates=n)
    a, b = (m.random(name, cv.gaussian(0.0, sd=10.0)) for name in "ab")
    m.random("y", cv.gaussian(cv.where(chosen, a, b), sd=1.0), plates=n)
    posterior = cv.infer(m, {"treated": treated, "y": y})
    for name, own in (("a", y[treated]), ("b", y[~treated])):
        precision = 0.01 + len(own)
        np.testing.assert_allclose(posterior[name].mean, own.sum() / precision, rtol=1e-9)
        np.testing.assert_allclose(posterior[name].variance, 1.0 / precision, rtol=1e-9)
    assert "answers: exact" in posterior.explain()


def test_a_positive_number_is_a_real_argument():
    m = cv.Model("positive mean")
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(rate, sd=1.0), plates=n)
    y = np.array([0.3, -0.8, 0.4])
    posterior = cv.infer(m, {"y": y})

    def log_density(rate):
        return np.log(rate) - rate - 0.5 * np.sum((rate[..., None] - y) ** 2, -1)

    agree(posterior, ("rate",), *moments(log_density, np.linspace(1e-4, 10.0, 20001)))
