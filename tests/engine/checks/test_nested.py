"""Weighted draws against quadrature, and what the joint density says of states and of missing entries."""

import jax
import numpy as np
import pytest
from scipy import stats
from small_models import SCHOOLS, schools

import cavity as cv
from cavity.engine.checks.nested import nested_draws, outer_of
from cavity.engine.checks.reference import belief_draws, functions
from cavity.engine.density.log_density import density_of, log_density

close = np.testing.assert_allclose
Y, SD = np.array(SCHOOLS["y"]), np.array(SCHOOLS["sd"])


def by_quadrature():
    """Log evidence, and mean and sd of log precision: everything else is Gaussian given it."""
    grid = np.linspace(-12.0, 4.0, 4001)
    log = np.array(
        [
            stats.gamma.logpdf(np.exp(u), 1.0, scale=0.2)
            + u
            + stats.multivariate_normal.logpdf(Y, np.zeros(8), np.diag(SD**2 + np.exp(-u)) + 25.0)
            for u in grid
        ]
    )
    weights = np.exp(log - log.max())
    step, weights = grid[1] - grid[0], weights / weights.sum()
    mean = weights @ grid
    return log.max() + np.log(np.sum(np.exp(log - log.max())) * step), mean, np.sqrt(weights @ (grid - mean) ** 2)


def test_draws_nested_by_a_scale_have_the_moments_and_the_evidence_of_quadrature():
    model, data = schools(), SCHOOLS
    posterior = cv.infer(model, data, method="vmp")
    density = density_of(posterior)
    with jax.enable_x64(True):
        call = functions(density)
        start = belief_draws(density, call, posterior, 0, 400).z
        outer = outer_of(density, False)
        found = nested_draws(density, call, outer, start, 0, 2000)
    assert list(outer) == list(range(*density.slices["precision"].indices(density.dimension)))
    assert found.usable
    evidence, mean, sd = by_quadrature()
    u, weights = found.z[:, outer[0]], found.weighted.weights
    assert abs(found.log_total - evidence) < 4.0 * found.error
    assert found.error < 0.05
    assert abs(weights @ u - mean) < 4.0 * sd / np.sqrt(found.weighted.effective)
    close(np.sqrt(weights @ (u - weights @ u) ** 2), sd, rtol=0.1)


def test_probabilities_of_states_are_those_of_bayes():
    """Given the means, P(z = k) is proportional to weight times density."""
    m = cv.Model("mixture")
    k, n = m.plate("k", 3), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=9.0), plates=k)
    z = m.random("z", cv.categorical([0.5, 0.3, 0.2]), plates=n)
    m.random("y", cv.gaussian(mean[z], variance=2.0))
    y = np.array([-1.0, 0.3, 4.0])
    density = log_density(m, {"y": y})
    points = np.array([[-1.0, 0.5, 3.0], [2.0, 0.0, -2.0]])
    with jax.enable_x64(True):
        found = functions(density).states(points)["z"]
    for means, got in zip(points, found, strict=True):
        joint = np.array([0.5, 0.3, 0.2]) * stats.norm.pdf(y[:, None], means, np.sqrt(2.0))
        close(got, joint / joint.sum(1, keepdims=True), rtol=1e-10)


def straight(x_parts):
    """A line whose covariate is random; `x_parts` tells how its rows are declared."""
    m = cv.Model("line")
    slope = m.random("slope", cv.gaussian(0.0, variance=4.0))
    for name in x_parts:
        x = m.random(f"x{name}", cv.gaussian(1.0, variance=2.0), plates=m.plate(f"n{name}"))
        m.random(f"y{name}", cv.gaussian(slope * x, variance=0.5))
    return m


def test_missing_entries_that_others_read_are_coordinates():
    x, y = np.array([0.4, np.nan, 1.5, np.nan]), np.array([0.7, 1.2, 2.0, -0.3])
    whole = log_density(straight([""]), {"x": x, "y": y})
    gone = np.isnan(x)
    given = {"x1": x[~gone], "y1": y[~gone], "y2": y[gone]}
    parts = log_density(straight(["1", "2"]), given)
    assert whole.dimension == parts.dimension == 3
    point = np.array([0.8, 0.9, -0.4])  # the slope, then the entries: in both
    close(whole.unconstrained(point), parts.unconstrained(point), rtol=1e-12)
    close(whole.constrain(point)["x"], [0.4, 0.9, 1.5, -0.4])


def test_missing_states_are_summed_out_between_those_that_are_given():
    m = cv.Model("gaps")
    n = m.plate("n")
    flag = m.random("flag", cv.bernoulli(0.5), plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.switch(flag, cv.gaussian(a, variance=1.0), cv.gaussian(-a, variance=1.0)))
    flags = np.ma.masked_array([True, False], [False, True])
    found = log_density(m, {"flag": flags, "y": [0.1, 0.2]})({"a": 0.7})
    normal = lambda x, mean: np.exp(-0.5 * (x - mean) ** 2) / np.sqrt(2.0 * np.pi)  # noqa: E731
    second = 0.5 * normal(0.2, 0.7) + 0.5 * normal(0.2, -0.7)
    close(found, np.log(normal(0.7, 0.0) * 0.5 * normal(0.1, 0.7) * second), rtol=1e-12)


def test_missing_entries_of_other_kinds_are_refused():
    m = cv.Model("gaps")
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(1.0, 1.0), plates=n)
    m.random("y", cv.poisson(rate))
    rates = np.ma.masked_array([1.0, 2.0], [False, True])
    with pytest.raises(cv.UnsupportedError, match="'rate' has missing entries and others depend on it"):
        log_density(m, {"rate": rates, "y": [1, 2]})
