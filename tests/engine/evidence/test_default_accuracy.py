"""The default answer of models whose factorised beliefs are far off, against quadrature and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats

import cavity as cv
from cavity.engine.evidence.integrated import Integrated

RANDOM = np.random.default_rng(3)
X = RANDOM.uniform(0.0, 10.0, 12)
Y = 1.0 + 2.0 * X + RANDOM.normal(0.0, 0.8, 12)
DESIGN = np.column_stack([np.ones(12), X])
LOGS = np.linspace(-8.0, 5.0, 4001)  # of a standard deviation


def line(**noise):
    m = cv.Model("line")
    row = m.plate("row")
    x = m.input("x", cv.real, plates=row)
    level = m.random("level", cv.gaussian(0.0, sd=10.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=10.0))
    ((word, term),) = noise.items()
    scale = m.random("scale", term)
    m.random("y", cv.gaussian(level + slope * x, **{word: scale}), plates=row)
    return m, {"x": X, "y": Y}


def given(sd):
    """The log evidence, the means and the variances of level and slope given the noise."""
    covariance = 100.0 * DESIGN @ DESIGN.T + sd**2 * np.eye(12)
    precision = DESIGN.T @ DESIGN / sd**2 + np.eye(2) / 100.0
    mean = np.linalg.solve(precision, DESIGN.T @ Y / sd**2)
    evidence = scipy.stats.multivariate_normal(np.zeros(12), covariance, allow_singular=True).logpdf(Y)
    return evidence, mean, np.diag(np.linalg.inv(precision))


def integrals(log_prior, to_sd):
    """By the trapezoid rule over the logarithm of the scale: log evidence, means and variances of level and slope."""
    rows = [given(to_sd(np.exp(u))) for u in LOGS]
    heights = np.array([row[0] for row in rows]) + log_prior(np.exp(LOGS)) + LOGS
    weights = np.exp(heights - heights.max())
    total = np.log(weights.sum() * (LOGS[1] - LOGS[0])) + heights.max()
    weights /= weights.sum()
    means, variances = (np.array([row[k] for row in rows]) for k in (1, 2))
    mean = weights @ means
    return total, mean, weights @ (variances + (means - mean) ** 2), weights @ np.exp(LOGS)


NOISES = {
    "half_normal": ({"sd": cv.half_normal(2.0)}, scipy.stats.halfnorm(scale=2.0).logpdf, lambda s: s),
    "half_cauchy": ({"sd": cv.half_cauchy(2.0)}, scipy.stats.halfcauchy(scale=2.0).logpdf, lambda s: s),
    "log_normal": ({"sd": cv.log_normal(0.0, 1.0)}, scipy.stats.lognorm(1.0).logpdf, lambda s: s),
    "gamma": ({"sd": cv.gamma(2.0, 1.0)}, scipy.stats.gamma(2.0).logpdf, lambda s: s),
    "variance": ({"variance": cv.half_normal(2.0)}, scipy.stats.halfnorm(scale=2.0).logpdf, np.sqrt),
    "precision": ({"precision": cv.gamma(2.0, 1.0)}, scipy.stats.gamma(2.0).logpdf, lambda t: 1.0 / np.sqrt(t)),
}


@pytest.mark.parametrize("name", NOISES)
def test_a_straight_line_with_unknown_noise(name):
    noise, log_prior, to_sd = NOISES[name]
    model, data = line(**noise)
    posterior = cv.infer(model, data)
    evidence, mean, variance, scale = integrals(log_prior, to_sd)
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=1e-3)
    for place, name in enumerate(("level", "slope")):
        assert abs(posterior[name].mean - mean[place]) < 0.005 * np.sqrt(variance[place])
        np.testing.assert_allclose(posterior[name].variance, variance[place], rtol=0.01)
    np.testing.assert_allclose(posterior["scale"].mean, scale, rtol=0.005)


def test_fast_is_one_inference_with_beliefs_apart():
    model, data = line(sd=cv.half_normal(2.0))
    fast, right = cv.infer(model, data, accuracy="fast"), cv.infer(model, data)
    assert isinstance(fast, cv.Posterior)
    assert fast["level"].sd < 0.8 * right["level"].sd
    assert right.plain["level"].sd == fast["level"].sd


@pytest.mark.parametrize("options", [{"effort": 0.0}, {"method": "vmp"}, {"method": {"scale": "vmp"}}])
def test_what_may_not_be_integrated_is_not(options):
    model, data = line(precision=cv.gamma(2.0, 1.0))
    assert not isinstance(cv.infer(model, data, **options), Integrated)


def test_what_is_taught_by_earlier_data_stays_one_belief():
    model, data = line(precision=cv.gamma(2.0, 1.0))
    earlier = cv.infer(model, data, accuracy="fast")
    assert not isinstance(cv.infer(model, data, prior={"scale": earlier["scale"]}), Integrated)


@pytest.mark.parametrize("effort", [-1.0, "much", True, float("nan")])
def test_an_effort_is_a_number_of_seconds(effort):
    model, data = line(precision=cv.gamma(2.0, 1.0))
    with pytest.raises(cv.ModelError, match="effort"):
        cv.infer(model, data, effort=effort)


def test_an_exact_plan_is_left_alone():
    m = cv.Model()
    p = m.random("p", cv.beta(1.0, 1.0))
    m.random("x", cv.bernoulli(p), plates=m.plate("n"))
    assert isinstance(cv.infer(m, {"x": [True, False, True]}), cv.Posterior)


CONTROL, TREATED = np.array([0, 0, 1, 0, 0], bool), np.array([1, 0, 1, 1, 1], bool)


def test_whether_a_treatment_is_effective():
    """A selector of two models of all data is summed out: Beta integrals are exact."""
    m = cv.Model("clinical trial")
    control, treated = m.plate("control"), m.plate("treated")
    effective = m.random("effective", cv.bernoulli(0.5))
    all_, one, other = (m.random(name, cv.beta(1.0, 1.0)) for name in ("all", "if_control", "if_treated"))
    m.random("x", cv.switch(effective, cv.bernoulli(one), cv.bernoulli(all_)), plates=control)
    m.random("y", cv.switch(effective, cv.bernoulli(other), cv.bernoulli(all_)), plates=treated)
    posterior = cv.infer(m, {"x": CONTROL, "y": TREATED})
    apart = scipy.special.beta(2, 5) * scipy.special.beta(5, 2)
    together = scipy.special.beta(6, 6)
    np.testing.assert_allclose(posterior["effective"].mean, apart / (apart + together), rtol=1e-12)
    np.testing.assert_allclose(posterior.log_evidence, np.log(0.5 * apart + 0.5 * together), rtol=1e-12)


def test_selectors_and_scales_are_integrated_together():
    """Whether there is a slope, with unknown noise: a grid for each state."""
    m = cv.Model("is there a slope")
    row = m.plate("row")
    x = m.input("x", cv.real, plates=row)
    sloped = m.random("sloped", cv.bernoulli(0.3))
    scale = m.random("scale", cv.half_normal(2.0))
    level, slope = (m.random(name, cv.gaussian(0.0, sd=1.0)) for name in ("level", "slope"))
    flat, steep = cv.gaussian(level, sd=scale), cv.gaussian(level + slope * x, sd=scale)
    m.random("y", cv.switch(sloped, steep, flat), plates=row)
    data = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 1.5]), np.array([0.1, -0.4, 0.3, 0.6, 0.4, 0.9])
    posterior = cv.infer(m, {"x": data[0], "y": data[1]})
    evidences = []
    for design in (np.ones((6, 1)), np.column_stack([np.ones(6), data[0]])):
        logs = [
            scipy.stats.multivariate_normal(np.zeros(6), design @ design.T + np.exp(2.0 * u) * np.eye(6)).logpdf(
                data[1]
            )
            for u in LOGS
        ]
        heights = np.array(logs) + scipy.stats.halfnorm(scale=2.0).logpdf(np.exp(LOGS)) + LOGS
        evidences.append(scipy.special.logsumexp(heights) + np.log(LOGS[1] - LOGS[0]))
    logs = np.log([0.7, 0.3]) + evidences
    np.testing.assert_allclose(posterior["sloped"].mean, np.exp(logs[1] - scipy.special.logsumexp(logs)), rtol=1e-3)
    np.testing.assert_allclose(posterior.log_evidence, scipy.special.logsumexp(logs), atol=1e-3)


def test_what_cannot_be_computed_at_an_all_but_impossible_point_leaves_no_trace():
    """At the far end of a grid the spread of groups is next to nothing, and their joint precision is singular."""
    m = cv.Model("eight schools")
    school = m.plate("school")
    centre, spread = m.random("centre", cv.gaussian(0.0, sd=5.0)), m.random("spread", cv.half_cauchy(5.0))
    effect = m.random("effect", cv.gaussian(centre, sd=spread), plates=school)
    m.random("y", cv.gaussian(effect, sd=[15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]), plates=school)
    posterior = cv.infer(m, {"y": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]})
    np.testing.assert_allclose(posterior["spread"].mean, 3.597705, rtol=2e-3)
    np.testing.assert_allclose(posterior.log_evidence, -31.311347, atol=1e-3)
    assert np.isfinite(posterior["effect"].mean).all()
    assert np.isfinite(posterior["centre"].sd)
