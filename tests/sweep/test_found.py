"""What the sweep has found, each as the smallest model that showed it, against a dense grid."""

from __future__ import annotations

import jax.numpy as jnp
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


def lifetimes(builder):
    """Weibull times of a known shape, an input, and a random scale."""
    m = cv.Model()
    shape = m.input("shape", cv.positive)
    scale = m.random("scale", cv.gamma(2.0, 1.0))
    m.random("y", builder(shape=shape, scale=scale), plates=m.plate("row"))
    return m


OWN_WEIBULL = cv.factor(
    "own_weibull",
    out=cv.positive,
    shape=cv.positive,
    scale=cv.positive,
    log_density=lambda out, shape, scale: (
        jnp.log(shape / scale) + (shape - 1.0) * jnp.log(out / scale) - (out / scale) ** shape
    ),
)


@pytest.mark.parametrize("builder", [cv.weibull, OWN_WEIBULL], ids=["vocabulary", "own density"])
def test_a_scale_of_which_a_high_power_is_averaged(builder):
    """E scale^-8 is infinite under the first Gamma belief: the first message made it a point, and the run converged."""
    program = cv.compile(lifetimes(builder), ["y"], method="vmp")
    for shape in (5.0, 8.0, 12.0, 40.0):
        y = 1.7 * np.random.default_rng(0).weibull(shape, 30)
        mean, sd, evidence = on_a_grid(
            lambda x, k=shape, y=y: (
                stats.gamma.logpdf(x, 2.0) + sum(stats.weibull_min.logpdf(t, k, scale=x) for t in y)
            ),
            0.5,
            4.0,
        )
        posterior = program({"y": y, "shape": shape})
        assert posterior.converged
        close(posterior["scale"].mean, mean, atol=0.02 * sd)
        close(posterior["scale"].sd, sd, rtol=0.03)  # a Gamma belief is not the posterior
        assert evidence - 0.01 < posterior.log_evidence < evidence


def square(method):
    """A Gaussian, its child, and their sum observed: the variables meet in two factors, which is a loop."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    a = m.random("a", cv.gaussian(x, variance=1.0))
    m.random("y", cv.gaussian(x + a, variance=1.0))
    return cv.infer(m, {"y": 1.0}, method=method)


PRECISION = np.array([[3.0, 0.0], [0.0, 2.0]])  # of x and a given y: by hand, their two factors cancel


def test_gaussians_that_meet_twice_are_exact_by_default_and_told_under_ep():
    posterior = square("auto")
    close([posterior["x"].variance, posterior["a"].variance], np.diag(np.linalg.inv(PRECISION)), rtol=1e-9)
    close([posterior["x"].mean, posterior["a"].mean], np.linalg.solve(PRECISION, [1.0, 1.0]), rtol=1e-9)
    assert "answers: exact for x, a" in posterior.explain()
    posterior = square("ep")  # beliefs apart: the means are right, the variances are those of loopy propagation
    close([posterior["x"].mean, posterior["a"].mean], np.linalg.solve(PRECISION, [1.0, 1.0]), atol=1e-5)
    assert posterior["x"].variance > 1.5 / 3.0
    assert "answers: approximate for x, a: messages may come back to where they began (a, y)" in posterior.explain()
    assert "method='auto' gives them one belief with all covariances" in posterior.explain()
    assert posterior.trust().level != "good"


def test_predictions_with_a_common_parent_have_their_joint_distribution():
    """Two children of one variable are tied by it: what is made of both knows that."""
    m = cv.Model()
    k = m.plate("k", 2)
    x = m.random("x", cv.gaussian(0.0, variance=4.0))
    other = m.random("other", cv.gaussian(0.0, variance=1.0))
    a, b, c = (
        m.random(name, cv.gaussian(parent, variance=1.0)) for name, parent in zip("abc", (x, x, other), strict=True)
    )
    each = m.random("each", cv.gaussian(x, variance=1.0), plates=k)
    own = m.random("own", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.gaussian(x, variance=1.0))
    size = 1.0 * k.size
    told = {  # Var(x | y) is .8
        "difference": (a - b, 2.0),
        "parent": (x - a, 1.0),
        "total": (cv.sum(each, over=k), 0.8 * size**2 + size),
        "alone": (2.0 * a, 4.0 * 1.8),
        "apart": (a - c, 1.8 + 2.0),
        "sum of own": (cv.sum(own, over=k), size),
    }
    for name, (expression, _) in told.items():
        m.let(name, expression)
    m.let("curved", cv.exp(0.1 * (a - b)))
    posterior = cv.infer(m, {"y": 1.0})
    for name, (_, variance) in told.items():
        assert not posterior[name].note
        close(posterior[name].variance, variance, rtol=1e-6)
    close(posterior["curved"].mean, np.exp(0.01), rtol=1e-6)  # a log-normal number of variance .02
