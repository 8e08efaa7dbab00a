"""posterior.importance(): draws of the beliefs, weighted by the joint density."""

import numpy as np
import pytest
from scipy import integrate, stats

import cavity as cv


def test_a_posterior_that_is_exact_has_equal_weights():
    m = cv.Model("mean")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    m.random("x", cv.gaussian(mean, precision=2.0), plates=n)
    posterior = cv.infer(m, {"x": np.array([2.0, 3.5, 2.7])})
    found = posterior.importance(draws=500)
    np.testing.assert_allclose(found.log_weights, posterior.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(found.effective, 500.0)
    assert found.usable


def test_the_mean_weight_is_the_evidence():
    """Of location and scale, whose evidence follows from an integral over the precision.

    A Gaussian has lighter tails than the Student distribution of a location: those of VMP, which are too narrow, give
    weights that no average should be made of, and it says so.
    """
    m = cv.Model("location and scale")
    row = m.plate("row")
    mean, precision = m.random("mean", cv.gaussian(0.0, variance=9.0)), m.random("precision", cv.gamma(2.0, 2.0))
    m.random("y", cv.gaussian(mean, precision=precision), plates=row)
    y = np.array([0.3, 1.4, 2.2, -0.4, 1.0])

    def at(tau):
        covariance = np.eye(5) / tau + 9.0
        return stats.multivariate_normal(np.zeros(5), covariance).pdf(y) * stats.gamma(2.0, scale=0.5).pdf(tau)

    def weighted_precision(tau):
        return tau * at(tau)

    total, first = (integrate.quad(f, 0.0, 30.0, epsabs=0.0)[0] for f in (at, weighted_precision))
    narrow, found = (cv.infer(m, {"y": y}, method=method).importance(draws=20000, seed=1) for method in ("vmp", "ep"))
    assert "cannot be trusted" in str(narrow)
    assert found.usable
    assert abs(found.log_evidence - np.log(total)) < 4.0 * found.error
    exact = first / total
    error = np.sqrt(float(found["precision"].variance) / found.effective)
    assert abs(float(found["precision"].mean) - exact) < 4.0 * error
    assert "worth" in str(found)


def test_what_is_refused():
    m = cv.Model("mean")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    m.random("x", cv.gaussian(mean, precision=2.0))
    posterior = cv.infer(m, {"x": 2.0})
    with pytest.raises(cv.DataError, match="too few"):
        posterior.importance(draws=10)
    with pytest.raises(cv.DataError, match="There are no draws of 'x'"):
        posterior.importance(draws=100)["x"]
