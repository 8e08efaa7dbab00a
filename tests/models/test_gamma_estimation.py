"""Shape and rate of a Gamma from draws, against the posterior on a dense grid of both."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import cavity as cv
from cavity.models import gamma_estimation

CASES = [(0.5, 50), (5.0, 50), (20.0, 50), (5.0, 5)]  # the true shape, the number of draws


def draws(shape, count):
    return np.random.default_rng(7).gamma(shape, 1.0, count)


def exact(x, nodes=500):
    """(mean, sd) of shape and of rate, and the log evidence, by the trapezoidal rule over shape and mean shape / rate.

    Both in logarithms: shape and mean are nearly independent, so that a rectangle fits the posterior.
    """
    n, mean = len(x), x.mean()
    guess = 0.5 / (np.log(mean) - np.log(x).mean())
    width = 10.0 / np.sqrt(n)
    u = np.log(guess) + 2.0 * np.linspace(-width, width, nodes)
    v = np.log(mean) + np.linspace(-1, 1, nodes) * max(width, 10.0 / np.sqrt(n * guess))
    shape, rate = np.exp(u)[:, None], np.exp(u[:, None] - v)
    likelihood = n * (shape * np.log(rate) - gammaln(shape)) + (shape - 1.0) * np.log(x).sum() - rate * x.sum()
    log_joint = likelihood - shape - rate + np.log(shape) + np.log(rate)  # Jacobian of the logarithms included
    evidence = logsumexp(log_joint)
    weights = np.exp(log_joint - evidence)
    assert max(weights[0].sum(), weights[-1].sum(), weights[:, 0].sum(), weights[:, -1].sum()) < 1e-9
    moments = []
    for quantity in (shape, rate):
        centre = (weights * quantity).sum()
        moments.append((centre, np.sqrt((weights * (quantity - centre) ** 2).sum())))
    return *moments, evidence + np.log((u[1] - u[0]) * (v[1] - v[0]))


@pytest.fixture(scope="module")
def model():
    return gamma_estimation()


@pytest.mark.parametrize(
    ("shape", "count"), [pytest.param(*case, marks=[pytest.mark.slow] * (case == (20.0, 50))) for case in CASES]
)
def test_shape_and_rate_together_are_exact(model, shape, count):
    x = draws(shape, count)
    posterior = cv.infer(model, {"x": x}, accuracy="best")
    of_shape, of_rate, evidence = exact(x)
    assert posterior.converged
    for name, (mean, sd) in (("shape", of_shape), ("rate", of_rate)):
        assert posterior[name].mean == pytest.approx(mean, rel=1e-6)
        assert posterior[name].sd == pytest.approx(sd, rel=1e-5)
    assert posterior.log_evidence == pytest.approx(evidence, abs=1e-6)


@pytest.mark.parametrize(("shape", "count"), [case for case in CASES if case[1] == 50])
def test_the_factorised_answer_has_the_means_and_is_a_bound(model, shape, count):
    """And its standard deviations are too small, by the correlation that it leaves out."""
    x = draws(shape, count)
    posterior = cv.infer(model, {"x": x}, accuracy="fast")
    of_shape, of_rate, evidence = exact(x)
    assert posterior.converged
    assert posterior.log_evidence < evidence
    for name, (mean, sd) in (("shape", of_shape), ("rate", of_rate)):
        assert posterior[name].mean == pytest.approx(mean, rel=0.02)
        assert 0.15 < posterior[name].sd / sd < 0.85


def test_the_priors_are_arguments():
    """A prior that all but fixes the shape leaves a conjugate posterior of the rate."""
    x = draws(5.0, 50)
    sharp = cv.infer(gamma_estimation(shape=(5e8, 1e8), rate=(2.0, 3.0)), {"x": x})
    assert sharp["rate"].mean == pytest.approx((2.0 + 5.0 * 50) / (3.0 + x.sum()), rel=1e-4)
    assert sharp["rate"].sd == pytest.approx(np.sqrt(2.0 + 5.0 * 50) / (3.0 + x.sum()), rel=1e-4)


def test_new_draws_are_predicted(model):
    x = draws(5.0, 50)
    posterior = cv.infer(model, {"x": x}, accuracy="best")
    new = posterior.predict({}, sizes={"n": 3})["x"]
    assert new.mean == pytest.approx(np.full(3, x.mean()), rel=0.05)
    assert new.sd == pytest.approx(np.full(3, x.std()), rel=0.2)
