"""Gaussian processes in joint densities and samples: against dense algebra and grids."""

import jax
import numpy as np
import pytest
from drawn import errors_off
from scipy import stats

import cavity as cv

X = np.array([0.0, 0.4, 1.1, 2.5])


def covariance(scale=1.0, size=1.0):
    return size * np.exp(-0.5 * ((X[:, None] - X) / scale) ** 2)


def function(m, inducing=None, scale=1.0, **plates):
    x = m.input("x", cv.real, plates=m.plate("n"))
    kernel = cv.kernels.squared_exponential(scale, 1.0)
    return m.random("f", cv.gaussian_process(x, kernel, mean=0.3, inducing=inducing), **plates)


def test_joint_log_density():
    m = cv.Model()
    f = function(m, plates=m.plate("c", 2))
    m.random("y", cv.gaussian(f, sd=0.5))
    values, y = np.random.default_rng(0).normal(size=(2, 2, 4))
    assert m.randoms["f"].plates[0].name == "c"
    wanted = sum(stats.multivariate_normal.logpdf(row, np.full(4, 0.3), covariance()) for row in values)
    wanted += stats.norm.logpdf(y, values, 0.5).sum()
    assert cv.log_density(m, {"x": X, "y": y})({"f": values}) == pytest.approx(wanted, abs=1e-6)


def test_joint_log_density_with_inducing_inputs():
    """f = K(x, z) K(z, z)^-1 u plus what is left of each variance."""
    m = cv.Model()
    m.random("y", cv.gaussian(function(m, inducing=np.array([0.2, 2.0])), sd=0.5))
    z = np.array([0.2, 2.0])
    cross = np.exp(-0.5 * (X[:, None] - z) ** 2)
    inner = cross @ np.linalg.solve(np.exp(-0.5 * (z[:, None] - z) ** 2), cross.T)
    prior = inner + np.diag(1.0 - np.diagonal(inner))
    values, y = np.random.default_rng(1).normal(size=(2, 4))
    wanted = stats.multivariate_normal.logpdf(values, np.full(4, 0.3), prior) + stats.norm.logpdf(y, values, 0.5).sum()
    assert cv.log_density(m, {"x": X, "y": y})({"f": values}) == pytest.approx(wanted, abs=1e-6)


def test_an_observed_process_has_its_evidence_and_no_term_for_each_element():
    m = cv.Model()
    function(m)
    a = m.random("a", cv.gaussian(0.0, sd=1.0))
    m.random("z", cv.gaussian(a, sd=1.0))
    values = np.array([0.1, 0.4, 0.2, -0.3])
    density = cv.log_density(m, {"x": X, "f": values, "z": 0.0})
    wanted = stats.multivariate_normal.logpdf(values, np.full(4, 0.3), covariance()) + 2.0 * stats.norm.logpdf(0.0)
    assert density({"a": 0.0}) == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(cv.UnsupportedError, match="no terms of their own"):
        density.terms_of("f", {"a": np.zeros(1)})


def test_under_gaussian_noise_it_is_drawn_exactly():
    m = cv.Model()
    m.random("y", cv.gaussian(function(m), sd=0.5))
    y = np.array([0.5, -0.2, 1.0, 0.0])
    samples = cv.sample(m, {"x": X, "y": y}, draws=1500, chains=2, progress=False)
    gain = covariance() @ np.linalg.inv(covariance() + 0.25 * np.eye(4))
    mean, variance = 0.3 + gain @ (y - 0.3), np.diagonal(covariance() - gain @ covariance())
    assert max(errors_off(samples["f"][..., i], mean[i], np.sqrt(variance[i])) for i in range(4)) < 4.5
    assert "jointly, from the Gaussian" in samples.explain()


def counted():
    """Counts at two points, and the mean and sd of the function at the first by a sum over a grid."""
    m = cv.Model()
    m.random("y", cv.poisson(cv.exp(function(m))))
    grid = np.linspace(-5.0, 5.0, 301)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    log_joint = stats.multivariate_normal.logpdf(np.stack([a, b], -1), np.full(2, 0.3), covariance()[:2, :2])
    log_joint += stats.poisson.logpmf(3, np.exp(a)) + stats.poisson.logpmf(0, np.exp(b))
    weights = np.exp(log_joint - log_joint.max())
    law = weights.sum(1) / weights.sum()
    mean = law @ grid
    return m, {"x": X[:2], "y": np.array([3, 0])}, mean, np.sqrt(law @ (grid - mean) ** 2)


def test_under_counts_it_is_drawn_along_ellipses():
    m, data, mean, sd = counted()
    samples = cv.sample(m, data, draws=1500, chains=2, progress=False)
    assert errors_off(samples["f"][..., 0], mean, sd) < 4.5
    assert "elliptical slice sampling" in samples.explain()


def test_a_level_off_the_ellipse_is_found(monkeypatch):
    """The law is one that a move can fail: ellipses through too small a function."""
    from cavity.engine.sampling.conditionals import elliptical

    along = elliptical._along
    monkeypatch.setattr(elliptical, "_along", lambda key, x, other, *rest: along(key, x, 0.4 * other, *rest))
    m, data, mean, sd = counted()
    samples = cv.sample(m, data, draws=1500, chains=2, progress=False)
    assert errors_off(samples["f"][..., 0], mean, sd) > 4.5


@pytest.mark.slow
def test_parameters_of_the_kernel_with_the_function_integrated_out():
    m = cv.Model()
    scale = m.random("scale", cv.log_normal(0.0, sd=0.7))
    m.random("y", cv.gaussian(function(m, scale=scale), sd=0.3))
    y = np.array([0.9, 1.2, 0.1, -0.8])
    samples = cv.sample(m, {"x": X, "y": y}, draws=3000, chains=2, collapse=["f"], progress=False)
    grid = np.exp(np.linspace(-4.0, 4.0, 2001))
    log_joint = [
        stats.multivariate_normal.logpdf(y, np.full(4, 0.3), covariance(s) + 0.09 * np.eye(4)) for s in grid
    ] + stats.norm.logpdf(np.log(grid), 0.0, 0.7)
    law = np.exp(log_joint - log_joint.max())
    law /= law.sum()
    mean = law @ np.log(grid)
    assert errors_off(np.log(samples["scale"]), mean, np.sqrt(law @ (np.log(grid) - mean) ** 2)) < 4.5


def test_draws_of_the_prior():
    m = cv.Model()
    f = function(m, inducing=2)
    m.random("other", cv.gaussian(f[0], sd=1.0))
    a = m.random("a", cv.gaussian(0.0, sd=1.0))
    m.random("z", cv.gaussian(a, sd=1.0))
    with jax.enable_x64(True):
        samples = cv.sample(m, {"x": X, "z": 0.0}, draws=3000, chains=1, progress=False)
    assert np.allclose(samples["f"][0].mean(0), 0.3, atol=4.5 / np.sqrt(3000))
    assert np.allclose(samples["f"][0].var(0), 1.0, atol=4.5 * np.sqrt(2.0 / 3000))
