"""Laplace's approximation in cube roots, against closed forms and quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, norm

import cavity as cv
from cavity.engine.evidence import laplace


def waits(shape=1.0):
    m = cv.Model("waits")
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(shape=shape, rate=2.0), plates=n)
    m.random("y", cv.poisson(rate))
    m.let("mean wait", 1.0 / rate)
    return m


def test_gamma_posteriors_are_exact_by_weights():
    """Rates of five counts: Gamma(1 + y, 3), and the evidence of a negative binomial."""
    y = np.array([0, 1, 2, 5, 20])
    found = cv.laplace_approximation(waits(), {"y": y}, seed=1)
    assert found.converged
    assert found["rate"].mean == pytest.approx((1.0 + y) / 3.0, rel=0.04)
    assert found["rate"].variance == pytest.approx((1.0 + y) / 9.0, rel=0.12)
    exact = np.sum(np.log(2.0) - (y + 1.0) * np.log(3.0))  # y! cancels
    assert found.log_evidence == pytest.approx(exact, abs=4.0 * found.error)
    assert found.error < 0.02
    assert found["mean wait"].mean[4] == pytest.approx(3.0 / 20.0, rel=0.03)


def test_the_gaussian_alone_is_near_gamma_variables(monkeypatch):
    """Without weights, in cube roots: means within .5 %, variances within 10 %, beyond what 4,000 draws err."""
    monkeypatch.setattr(laplace, "MOST_WORK", 0.0)
    y = np.array([0, 0, 1, 5, 20])
    found = cv.laplace_approximation(waits(), {"y": y})
    assert "too many for weights" in found.diagnosis
    assert np.isnan(found.error)
    assert found["rate"].mean == pytest.approx((1.0 + y) / 3.0, rel=0.05)
    assert found["rate"].variance == pytest.approx((1.0 + y) / 9.0, rel=0.2)
    each = np.log(2.0) - (y + 1.0) * np.log(3.0)
    assert found.log_evidence == pytest.approx(each.sum(), abs=0.01)


def test_a_skewed_posterior_with_a_real_and_a_positive_number_against_quadrature():
    m = cv.Model("mean and spread")
    n = m.plate("n")
    mean, sd = m.random("mean", cv.gaussian(0.0, sd=3.0)), m.random("sd", cv.exponential(1.0))
    m.random("y", cv.gaussian(mean, sd=sd), plates=n)
    y = np.array([0.4, 1.9, 0.1])
    found = cv.laplace_approximation(m, {"y": y})

    def over_mean(s):
        return quad(lambda a: np.prod(norm.pdf(y, a, s)) * norm.pdf(a, 0.0, 3.0), -8.0, 9.0, points=[0.8])[0]

    z, first = (quad(lambda s, k=k: s**k * over_mean(s) * np.exp(-s), 1e-3, 30.0)[0] for k in (0, 1))
    assert found.log_evidence == pytest.approx(np.log(z), abs=5.0 * found.error)
    assert found["sd"].mean == pytest.approx(first / z, rel=0.04)


def test_a_local_level_with_its_chain_integrated_out_against_a_grid():
    m = cv.Model("local level")
    t = m.plate("t")
    step = m.random("step", cv.gamma(shape=2.0, rate=2.0))
    level = m.chain("level", over=t, first=cv.gaussian(0.0, variance=4.0), then=lambda x: cv.gaussian(x, variance=step))
    m.random("y", cv.gaussian(level, variance=0.5))
    y = np.cumsum(np.random.default_rng(2).normal(size=12))
    found = cv.laplace_approximation(m, {"y": y}, integrate=["level"])
    assert "level" not in found.draws
    at, shared = np.linspace(0.02, 12.0, 600), np.minimum.outer(np.arange(12), np.arange(12))
    logs = []
    for s in at:
        covariance = 4.0 + s * shared + 0.5 * np.eye(12)
        square = y @ np.linalg.solve(covariance, y)
        logs.append(gamma.logpdf(s, 2.0, scale=0.5) - 0.5 * (square + np.linalg.slogdet(2 * np.pi * covariance)[1]))
    weight = np.exp(np.array(logs) - max(logs))
    exact = max(logs) + np.log(weight.sum() * (at[1] - at[0]))
    assert found.log_evidence == pytest.approx(exact, abs=0.01)
    assert found["step"].mean == pytest.approx(weight @ at / weight.sum(), rel=0.02)


def test_same_seed_same_draws_and_what_is_refused():
    y = np.array([3, 4])
    one, same = (cv.laplace_approximation(waits(), {"y": y}, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.draws["rate"], same.draws["rate"])
    with pytest.raises(cv.DataError, match="no draws of 'z'"):
        one["z"]
    with pytest.raises(cv.DataError, match="start= names 'z'"):
        cv.laplace_approximation(waits(), {"y": y}, start={"z": 1.0})
    m = cv.Model("bound")
    x = m.random("x", cv.gaussian(0.0, sd=1.0))
    m.constrain(x > 1.0)
    m.constrain(x * x > 2.0)
    with pytest.raises(cv.UnsupportedError, match="jump to zero"):
        cv.laplace_approximation(m, {})


def test_an_improper_posterior_is_refused():
    m = cv.Model("improper")
    scale = m.random("scale", cv.flat(cv.positive))
    m.random("y", cv.gaussian(0.0, sd=scale))
    with pytest.raises(cv.UnsupportedError, match="may be improper"):
        cv.laplace_approximation(m, {"y": 0.0})
