"""The grid that holds a density: its integral and moments against closed forms, from starts that are far off."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cavity.engine.evidence.design.grid import BEST, COARSE, GOOD, Grid, explore, together


def gaussian(d, seed):
    """A log density with its mean and covariance."""
    random = np.random.default_rng(seed)
    root = random.normal(size=(d, d)) + np.eye(d)
    mean, covariance = 5.0 * random.normal(size=d), root @ root.T + 0.1 * np.eye(d)
    return scipy.stats.multivariate_normal(mean, covariance).logpdf, mean, covariance


def rows(log_density):
    return lambda points: np.asarray(log_density(points)).reshape(len(points))


@settings(max_examples=20, deadline=None)
@given(d=st.integers(1, 3), seed=st.integers(0, 10_000), far=st.floats(-30.0, 30.0))
def test_a_gaussian_is_found_from_far_away(d, seed, far):
    log_density, mean, covariance = gaussian(d, seed)
    grid = explore(rows(log_density), mean + far, np.ones(d), GOOD)
    assert grid is not None
    found, variance = grid.moments()
    assert abs(grid.log_total()) < 2e-3
    assert np.all(np.abs(found - mean) < 2e-3 * np.sqrt(np.diag(covariance)))
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=0.01)


def log_gamma(points):
    """The logarithm of a Gamma(0.7) variable: a heavy tail on the left."""
    return 0.7 * points[:, 0] - np.exp(points[:, 0]) - scipy.special.gammaln(0.7)


def banana(points):
    x, y = points.T
    return -0.5 * x**2 - 2.0 * (y - x**2) ** 2 - np.log(2.0 * np.pi / 2.0)


@pytest.mark.parametrize(
    ("log_density", "d", "mean", "variance"),
    [
        (log_gamma, 1, [scipy.special.digamma(0.7)], [scipy.special.polygamma(1, 0.7)]),
        (banana, 2, [0.0, 1.0], [1.0, 2.25]),
    ],
)
@pytest.mark.parametrize(("accuracy", "digits"), [(GOOD, 1e-2), (BEST, 1e-5)])
def test_skewed_and_bent_densities(log_density, d, mean, variance, accuracy, digits):
    grid = explore(log_density, np.full(d, 3.0), np.ones(d), accuracy)
    assert grid is not None
    found, spread = grid.moments()
    assert abs(grid.log_total()) < digits
    np.testing.assert_allclose(found, mean, atol=digits)
    np.testing.assert_allclose(spread, variance, rtol=2.0 * digits)
    assert grid.error <= accuracy.tolerance


def test_what_has_no_end_is_refused():
    assert explore(lambda points: np.zeros(len(points)), np.zeros(2), np.ones(2), GOOD) is None


def test_grids_side_by_side_add_up():
    one = Grid(np.zeros((1, 1)), np.zeros(1), np.log(0.25), np.ones(1))
    two = Grid(np.ones((2, 1)), np.log([0.5, 0.25]), 0.0, np.ones(1))
    np.testing.assert_allclose(np.exp(together([one, two]).log_total()), 1.0)


@pytest.mark.parametrize("accuracy", [BEST, GOOD, COARSE])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    "density",
    [
        lambda x: np.full(len(x), -np.inf),
        lambda x: np.full(len(x), np.nan),
        lambda x: np.where((np.abs(x) < 1e-12).all(axis=1), 0.0, -np.inf),
        lambda x: x.sum(axis=1),
    ],
    ids=["nowhere", "no number", "at one point", "without a peak"],
)
def test_what_no_grid_holds_is_refused_without_a_warning(density, d, accuracy):
    """Warnings are errors here."""
    found = explore(density, np.zeros((1, d)), np.ones((1, d)), accuracy)
    assert found is None or not np.isfinite(found.error)
