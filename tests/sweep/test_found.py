"""What the sweep has found, each as the smallest model that showed it, against a dense grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import cavity as cv

close = np.testing.assert_allclose


def on_a_grid(log_density, low, high):
    """Mean, sd and log evidence of a scalar with this log joint density."""
    x = np.linspace(low, high, 20001)
    log = log_density(x)
    evidence = logsumexp(log) + np.log(x[1] - x[0])
    weights = np.exp(log - logsumexp(log))
    mean = weights @ x
    return mean, np.sqrt(weights @ (x - mean) ** 2), evidence


@pytest.mark.parametrize("method", ["auto", "ep"])
def test_a_site_reads_the_dispersion(method):
    """The negative binomial's EP site took the dispersion to be one, whatever it was."""
    m = cv.Model()
    dispersion = m.input("dispersion", cv.positive)
    s = m.random("s", cv.gaussian(0.3, variance=1.0))
    m.random("y", cv.negative_binomial(mean=cv.exp(1.5 * s), dispersion=dispersion))
    program = cv.compile(m, ["y"], method=method)
    for r in (0.4, 2.4, 9.0):
        posterior = program({"y": 3, "dispersion": r})
        mean, sd, evidence = on_a_grid(
            lambda x, r=r: stats.norm.logpdf(x, 0.3, 1.0) + stats.nbinom.logpmf(3, r, r / (r + np.exp(1.5 * x))), -9, 9
        )
        close([posterior["s"].mean, posterior["s"].sd, posterior.log_evidence], [mean, sd, evidence], rtol=1e-7)


def test_cutpoints_of_an_ordered_outcome_over_slots():
    """A gate before an ordered outcome under EP: the vector of cutpoints was read as a number."""
    m = cv.Model()
    k, n = m.plate("k", 2), m.plate("n", 1)
    level = m.input("level", cv.real, plates=k)
    z = m.random("z", cv.bernoulli(0.3), plates=n)
    s = m.random("s", cv.gaussian(0.2, variance=1.5))
    m.random("y", cv.ordered_logistic(s + level[z], [-0.6, 0.8]))
    posterior = cv.infer(m, {"y": [1], "level": [-1.0, 2.0]}, method="ep")

    def log_density(x):
        middle = [np.log(p * (expit(0.8 - x - a) - expit(-0.6 - x - a))) for p, a in ((0.7, -1.0), (0.3, 2.0))]
        return stats.norm.logpdf(x, 0.2, np.sqrt(1.5)) + np.logaddexp(*middle)

    mean, sd, evidence = on_a_grid(log_density, -12, 12)
    close([posterior["s"].mean, posterior["s"].sd, posterior.log_evidence], [mean, sd, evidence], rtol=1e-6)


def test_the_power_of_a_power_has_moments():
    """sd= and variance=s**2 are read as precision 1 / s^2, which VMP refused although it averages s^-2."""
    found = []
    for scale in (lambda s: {"precision": s**-2}, lambda s: {"sd": s}, lambda s: {"variance": s**2}):
        m = cv.Model()
        r = m.random("r", cv.gaussian(0.0, variance=1.0))
        s = m.random("s", cv.gamma(3.0, 2.0))
        m.random("y", cv.gaussian(r, **scale(s)), plates=m.plate("n"))
        posterior = cv.infer(m, {"y": [1.0, 2.0, 4.0]}, method="vmp", tolerance=1e-10)
        found.append([posterior["r"].mean, posterior["s"].mean, posterior.log_evidence])
    close(found[1:], [found[0]] * 2, rtol=1e-8)


def test_a_log_normal_prior_far_from_one_starts_proper():
    """Its belief started as an improper Gamma, without moments: every sweep was NaN."""
    m = cv.Model()
    p = m.random("p", cv.log_normal(-1.97, variance=0.617))
    r = m.random("r", cv.gaussian(-0.782, variance=0.887))
    m.random("y", cv.gaussian(r, precision=p), plates=m.plate("n"))
    posterior = cv.infer(m, {"y": [-0.635, 1.431, 2.416, 0.2]}, method="vmp")
    assert posterior.converged
    assert np.all(np.isfinite([posterior["p"].mean, posterior["p"].sd, posterior["r"].sd, posterior.log_evidence]))


def test_a_bounded_variable_on_a_plate_has_unconstrained_coordinates():
    """Bounds on a plate were read as numbers inside a trace: log densities and trust() crashed."""
    m = cv.Model()
    u = m.random("u", cv.uniform(-2.0, 3.0), plates=m.plate("n", 2))
    m.random("y", cv.gaussian(u, variance=1.0))
    y, z = np.array([0.3, 0.4]), np.array([0.2, -0.3])
    x = -2.0 + 5.0 * expit(z)
    wanted = np.sum(stats.norm.logpdf(y, x) + np.log(expit(z) * expit(-z)))
    close(cv.log_density(m, {"y": y}).unconstrained(z), wanted, rtol=1e-12)


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
def test_a_difference_that_is_certain_has_a_mean(method):
    """A named expression without variance was a Gaussian without precision, whose mean was NaN."""
    m = cv.Model()
    r = m.random("r", cv.gaussian(1.0, variance=2.0))
    m.let("none", r - r)
    m.let("three", 3.0 + 2.0 * r - r - r)
    m.random("y", cv.gaussian(r, variance=1.0))
    posterior = cv.infer(m, {"y": 2.0}, method=method)
    close([posterior["none"].mean, posterior["three"].mean], [0.0, 3.0], atol=1e-12)
    close([posterior["none"].sd, posterior["three"].sd], 0.0, atol=1e-99)


def test_a_belief_that_one_factor_tells_whole():
    """Nothing is left for messages to move: the empty state was of single precision, and its sweep was not."""
    m = cv.Model()
    a = m.random("a", cv.gaussian(-1.4, variance=2.9))
    covariance = np.array([[1.5, 0.6], [0.6, 1.0]])
    m.random("y", cv.vector_gaussian(cv.stack(a, 0.5), covariance=covariance))
    m.random("b", cv.between(a, 0.1, np.inf))
    posterior = cv.infer(m, {"y": np.array([-1.2, -1.7])})
    p = np.linalg.inv(covariance)
    precision = 1.0 / 2.9 + p[0, 0]
    mean = (-1.4 / 2.9 - 1.2 * p[0, 0] + p[0, 1] * (-1.7 - 0.5)) / precision
    close([posterior["a"].mean, posterior["a"].variance], [mean, 1.0 / precision])
    close(posterior["b"].mean, stats.norm.sf(0.1, mean, precision**-0.5), rtol=1e-6)
