"""Roots, absolute values, quotients and choices as named expressions: their distributions, against draws or SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import cavity as cv

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
RNG = np.random.default_rng(0)


def gaussians(m, *means):
    return [m.random(f"x{i}", cv.gaussian(mean, sd=1.0)) for i, mean in enumerate(means)]


def of_one(expression, law):
    """The quantiles of a function of one number, by the quantiles of a law of SciPy."""
    m = cv.Model()
    m.let("it", expression(m))
    found = cv.infer(m, {})["it"]
    np.testing.assert_allclose(found.quantile(LEVELS), law.ppf(LEVELS), atol=3e-3)
    np.testing.assert_allclose([found.mean, found.sd], [law.mean(), law.std()], rtol=1e-3)


def test_the_root_of_a_gamma_number():
    """Also that NumPy's function and a power build the same expression."""
    for root in (cv.sqrt, np.sqrt, lambda x: x**0.5):
        of_one(
            lambda m, root=root: root(m.random("x", cv.gamma(3.0, 2.0))), scipy.stats.gengamma(3.0, 2.0, scale=0.5**0.5)
        )


@pytest.mark.parametrize("absolute", [abs, cv.abs, np.abs])
def test_the_absolute_value_of_a_gaussian_number(absolute):
    of_one(lambda m: absolute(gaussians(m, 0.3)[0]), scipy.stats.foldnorm(0.3))


def test_what_is_chosen_by_a_comparison():
    """A rectified number: half of it is an atom at zero."""
    m = cv.Model()
    (x,) = gaussians(m, 0.5)
    m.let("it", cv.where(x > 0.0, x, 0.0))
    found, law = cv.infer(m, {})["it"], scipy.stats.norm(0.5)
    np.testing.assert_allclose(found.quantile(LEVELS), np.maximum(law.ppf(LEVELS), 0.0), atol=0.01)
    mean = law.expect(lambda t: t, lb=0.0)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-3)
    np.testing.assert_allclose(found.sd, np.sqrt(law.expect(lambda t: t**2, lb=0.0) - mean**2), rtol=1e-3)


def test_tanh_of_a_linear_form_has_the_quantiles_of_the_form():
    m = cv.Model()
    a, b = gaussians(m, 0.2, -0.4)
    m.let("it", cv.tanh(0.5 * (a - b)))
    found = cv.infer(m, {})["it"]
    np.testing.assert_allclose(
        found.quantile(LEVELS), np.tanh(0.5 * scipy.stats.norm(0.6, 2**0.5).ppf(LEVELS)), rtol=1e-3
    )


def test_a_quotient_of_gaussians_has_quantiles_and_no_mean():
    """Those of the Cauchy distribution, and of dependent numbers those of draws."""
    m = cv.Model()
    a, b = gaussians(m, 0.0, 0.0)
    m.let("cauchy", a / b)
    found = cv.infer(m, {})["cauchy"]
    np.testing.assert_allclose(found.quantile(LEVELS), scipy.stats.cauchy.ppf(LEVELS), rtol=0.02, atol=0.02)
    assert np.isnan(found.mean)
    assert "x1 may be zero" in found.note
    assert "may be zero" in repr(found)
    low, high = found.interval(0.5)
    assert np.mean(np.abs(found.sample(0, (4000,))) < high) == pytest.approx(0.5, abs=0.05)
    assert low == pytest.approx(-high, rel=0.05)


def test_where_a_line_meets_zero_uses_the_correlation_of_its_two_numbers():
    x, y = np.linspace(1.0, 5.0, 12), np.linspace(-2.0, 2.5, 12) + RNG.normal(0.0, 0.6, 12)
    m = cv.Model()
    n = m.plate("n")
    at = m.input("x", cv.real, plates=n)
    a, b = (m.random(name, cv.gaussian(0.0, sd=10.0)) for name in "ab")
    m.random("y", cv.gaussian(a + b * at, sd=0.6))
    m.let("root", -a / b)
    found = cv.infer(m, {"x": x, "y": y})["root"]
    design = np.stack([np.ones(12), x], axis=1)
    covariance = np.linalg.inv(design.T @ design / 0.36 + np.eye(2) / 100.0)
    drawn = RNG.multivariate_normal(covariance @ design.T @ y / 0.36, covariance, 400_000)
    roots = -drawn[:, 0] / drawn[:, 1]
    sd = roots.std()
    assert np.all(np.abs(found.quantile(LEVELS) - np.quantile(roots, LEVELS)) < 0.03 * sd)
    assert abs(found.mean - roots.mean()) < 0.03 * sd
    assert found.sd == pytest.approx(sd, rel=0.03)


def test_a_lethal_dose():
    """The bioassay of Racine et al.: the dose at which half of the animals die, against a dense grid."""
    dose, deaths = np.array([-0.86, -0.3, -0.05, 0.73]), np.array([0, 1, 3, 5])
    m = cv.Model("bioassay")
    d = m.plate("dose")
    x = m.input("x", cv.real, plates=d)
    a, b = m.random("a", cv.gaussian(0.0, sd=2.0)), m.random("b", cv.gaussian(10.0, sd=5.0))
    m.random("deaths", cv.binomial(5, cv.logistic(a + b * x)))
    m.let("ld50", -a / b)
    found = cv.infer(m, {"x": dose, "deaths": deaths})["ld50"]
    aa, bb = np.meshgrid(np.linspace(-6.0, 8.0, 600), np.linspace(0.3, 35.0, 700), indexing="ij")
    score = aa[..., None] + bb[..., None] * dose
    logs = scipy.stats.norm(0.0, 2.0).logpdf(aa) + scipy.stats.norm(10.0, 5.0).logpdf(bb)
    logs += np.sum(deaths * score - 5 * np.logaddexp(0.0, score), axis=-1)
    weights, ratio = np.exp(logs - logs.max()).ravel(), (-aa / bb).ravel()
    order = np.argsort(ratio)
    below = np.cumsum(weights[order]) / weights.sum()
    exact = ratio[order][np.searchsorted(below, LEVELS)]
    spread = (exact[-1] - exact[0]) / 3.29
    assert np.all(np.abs(found.quantile(LEVELS) - exact) < 0.05 * spread)


def test_a_sum_over_a_long_plate_is_exact_with_what_is_made_of_it():
    m = cv.Model("long sum")
    k = m.plate("k", 120)
    z = m.random("z", cv.gaussian(0.0, sd=1.0), plates=k)
    total = m.let("total", cv.sum(z, over=k))
    m.let("scaled", cv.exp(total / 10.0))
    m.random("y", cv.gaussian(total, sd=1.0))
    posterior = cv.infer(m, {"y": 12.0})
    np.testing.assert_allclose(posterior["z"].mean, 12.0 / 121.0, rtol=1e-9)
    np.testing.assert_allclose(posterior["z"].variance, 1.0 - 1.0 / 121.0, rtol=1e-9)
    np.testing.assert_allclose(posterior["total"].mean, 120.0 * 12.0 / 121.0, rtol=1e-9)
    np.testing.assert_allclose(posterior["total"].variance, 120.0 / 121.0, rtol=1e-9)
    law = scipy.stats.lognorm(np.sqrt(120.0 / 121.0) / 10.0, scale=np.exp(144.0 / 121.0))
    np.testing.assert_allclose(posterior["scaled"].quantile(LEVELS), law.ppf(LEVELS), rtol=1e-4)
    assert posterior.log_evidence == pytest.approx(scipy.stats.norm(0.0, 11.0).logpdf(12.0), rel=1e-9)
    assert "answers: exact" in posterior.explain()


def test_weights_over_a_plate_are_a_vector():
    """A regression with a sum of products over 40 columns is the regression with an inner product."""
    x, y = RNG.normal(size=(60, 40)), RNG.normal(size=60)
    m = cv.Model("by plates")
    n, k = m.plate("n"), m.plate("k", 40)
    w = m.random("w", cv.gaussian(0.0, sd=1.0), plates=k)
    m.random("y", cv.gaussian(cv.sum(w * m.input("x", cv.real, plates=(n, k)), over=k), sd=0.5))
    found = cv.infer(m, {"x": x, "y": y})
    covariance = np.linalg.inv(x.T @ x / 0.25 + np.eye(40))
    np.testing.assert_allclose(found["w"].mean, covariance @ x.T @ y / 0.25, rtol=1e-8)
    np.testing.assert_allclose(found["w"].variance, np.diag(covariance), rtol=1e-8)
