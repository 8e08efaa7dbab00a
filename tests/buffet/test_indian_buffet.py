"""The Indian buffet in the language: exact where conjugate, and sticks against integration on a grid."""

import numpy as np
import pytest
from scipy.special import gammaln

import cavity as cv
from cavity.models.buffet import BetaBernoulli
from cavity.models.indian_buffet import indian_buffet

ACTIVE = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 0, 0]], dtype=bool)


def test_activities_given_the_matrix_are_exact():
    posterior = cv.infer(indian_buffet(3, mass=2.0), {"active": ACTIVE})
    found, m = posterior["activity"].parameters, ACTIVE.sum(axis=0)
    assert np.allclose(found["a"], 2.0 / 3.0 + m, rtol=1e-12)
    assert np.allclose(found["b"], 1.0 + 6.0 - m, rtol=1e-12)
    assert np.isclose(posterior.log_evidence, BetaBernoulli(2.0, 3).log_matrix_probability(ACTIVE), rtol=0, atol=1e-11)


@pytest.mark.slow
def test_a_learned_mass():
    """Mean field between mass and activities: near the mean on a grid, and a lower bound of the evidence."""
    posterior = cv.infer(indian_buffet(3, mass="learned"), {"active": ACTIVE})
    mass = np.geomspace(1e-4, 60.0, 4000)
    log_joint = np.array([BetaBernoulli(each, 3).log_matrix_probability(ACTIVE) - each for each in mass])
    weight = np.exp(log_joint) * np.gradient(mass)
    exact = np.log(weight.sum())
    assert exact - 0.1 < posterior.log_evidence < exact
    assert abs(posterior["mass"].mean - weight @ mass / weight.sum()) < 0.1


def test_sticks_given_the_matrix():
    """By the closer bound: means within a fifth of a standard deviation, and the evidence from below."""
    points = (np.arange(120) + 0.5) / 120.0
    stick = np.stack(np.meshgrid(points, points, points, indexing="ij"))
    activity, m = np.cumprod(stick, axis=0), ACTIVE.sum(axis=0)[:, None, None, None]
    weight = (np.log(2.0 * stick) + m * np.log(activity) + (6 - m) * np.log1p(-activity)).sum(axis=0)
    weight = np.exp(weight)
    exact, exact_activity = ((weight * each).sum(axis=(1, 2, 3)) / weight.sum() for each in (stick, activity))
    posterior = cv.infer(indian_buffet(3, "stick-breaking", 2.0), {"active": ACTIVE}, method=cv.ncvmp(bound="taylor"))
    assert posterior.converged
    assert (np.abs(posterior["stick"].mean - exact) < 0.2 * posterior["stick"].sd).all()
    assert np.log(weight.mean()) - 0.2 < posterior.log_evidence < np.log(weight.mean())
    assert np.abs(posterior["activity"].mean - exact_activity).max() < 0.03


def test_what_the_definition_declares():
    model = indian_buffet(4, "stick-breaking", mass="learned")
    assert set(model.randoms) == {"mass", "stick", "active"}
    assert set(indian_buffet(4).randoms) == {"activity", "active"}


def test_bad_requests_are_refused():
    with pytest.raises(cv.ModelError, match='construction= is "beta-bernoulli" or "stick-breaking"'):
        indian_buffet(3, "restaurant")
    for mass in (0.0, -1.0, np.nan, "large"):
        with pytest.raises(cv.ModelError, match="mass= is a positive number"):
            indian_buffet(3, mass=mass)


def test_the_finite_evidence_in_gamma_functions():
    """What the first test compares with, by hand."""
    m, a = ACTIVE.sum(axis=0), 2.0 / 3.0
    wanted = (np.log(a) + gammaln(m + a) + gammaln(7.0 - m) - gammaln(7.0 + a)).sum()
    assert np.isclose(BetaBernoulli(2.0, 3).log_matrix_probability(ACTIVE), wanted, rtol=1e-13)
