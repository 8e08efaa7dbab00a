"""E log sum exp of Gaussians with covariances: against independent ones, Monte Carlo and its own slopes."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from cavity.factors.quadrature import log_sum_exp
from cavity.factors.quadrature.joint_log_sum_exp import expected_log_sum_exp, statistics
from cavity.factors.quadrature.vector_nodes import MOST, nodes_of


def scores(classes, variance, seed=0, rows=4):
    """Means, and covariances of full rank."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(rows, classes, classes))
    covariance = 0.7 * roots @ np.swapaxes(roots, 1, 2) / classes + 0.3 * np.eye(classes)
    return 1.5 * rng.normal(size=(rows, classes)), variance * covariance


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("variance", [0.0, 1e-4, 0.1, 1.0])
def test_independent_scores_are_those_of_one_integral(classes, variance):
    rng = np.random.default_rng(classes)
    mean, own = rng.normal(size=(6, classes)), variance * rng.uniform(0.3, 1.0, (6, classes))
    with jax.enable_x64(True):
        found = statistics(mean, own[..., None] * np.eye(classes))
        exact = log_sum_exp.statistics(mean, own)
    tolerance = 2e-5 if classes < 5 else 3e-3
    for one, other in zip((found[0], found[1]), exact, strict=False):
        np.testing.assert_allclose(one, other, atol=tolerance * max(variance, 0.02))
    if variance > 0.0 and classes > 1:  # with none the slope in the variance is not asked for
        spread = np.diagonal(found[2], axis1=-2, axis2=-1)
        np.testing.assert_allclose(spread, exact[2], atol=2e-5 if classes < 5 else 0.03)


@pytest.mark.parametrize(("classes", "tolerance"), [(3, 2e-3), (4, 2e-3), (6, 6e-3), (10, 6e-3)])
def test_monte_carlo(classes, tolerance):
    (mean, covariance), rng = scores(classes, 1.0), np.random.default_rng(1)
    z = rng.normal(size=(200_000, classes))
    z = np.concatenate([z, -z])
    with jax.enable_x64(True):
        value, share, spread = statistics(mean, covariance)
    for row, root in enumerate(np.linalg.cholesky(covariance)):
        s = mean[row] + z @ root.T
        p = np.exp(log_softmax(s, axis=-1))
        np.testing.assert_allclose(value[row], logsumexp(s, axis=-1).mean(), atol=tolerance)
        np.testing.assert_allclose(share[row], p.mean(0), atol=tolerance)
        exact = np.diag(p.mean(0)) - p.T @ p / len(p)
        np.testing.assert_allclose(spread[row], exact, atol=tolerance if classes < 5 else 0.02)


@pytest.mark.parametrize("classes", [1, 2, 3, 5])
def test_what_is_common_to_all_scores_only_shifts_it(classes):
    mean, covariance = scores(classes, 0.8)
    with jax.enable_x64(True):
        given = (mean, covariance), (mean + 3.0, covariance + 5.0)
        found, shifted = ([np.asarray(each) for each in statistics(*each)] for each in given)
    np.testing.assert_allclose(found[0] + 3.0, shifted[0], atol=1e-10)
    np.testing.assert_allclose(found[1], shifted[1], atol=1e-10)
    np.testing.assert_allclose(found[2], shifted[2], atol=1e-7)
    np.testing.assert_allclose(np.sum(found[2], axis=-1), 0.0, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
def test_derivatives_are_those_of_the_value(classes):
    """Else evidence would fall close to the fixed point of messages made of them."""
    mean, covariance = scores(classes, 1.0, rows=2)
    rng = np.random.default_rng(3)
    d_mean, root = rng.normal(size=mean.shape), rng.normal(size=covariance.shape)
    d_covariance, step = root + np.swapaxes(root, 1, 2), 1e-5
    with jax.enable_x64(True):
        _, slope = jax.jvp(expected_log_sum_exp, (mean, covariance), (d_mean, d_covariance))
        ends = [expected_log_sum_exp(mean + h * d_mean, covariance + h * d_covariance) for h in (step, -step)]
        difference = np.asarray(ends[0] - ends[1]) / (2.0 * step)
        blocks = [statistics(mean[row : row + 1], covariance[row : row + 1])[0] for row in (0, 1)]
        whole = statistics(mean, covariance)[0]
    np.testing.assert_allclose(slope, difference, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.concatenate(blocks), whole, rtol=1e-13)  # rows do not know of each other


def test_scores_without_differences_have_no_slope_that_is_no_number():
    with jax.enable_x64(True):
        for covariance in (np.zeros((1, 3, 3)), np.ones((1, 3, 3)), np.diag([0.0, 0.0, 1.0])[None]):
            mean = np.array([[0.3, -0.2, 0.1]])
            found = jax.grad(lambda m, c: expected_log_sum_exp(m, c).sum(), argnums=(0, 1))(mean, covariance)
            assert all(np.isfinite(each).all() for each in found)


@settings(max_examples=20, deadline=None)
@given(dimensions=st.integers(1, MOST))
def test_nodes_average_polynomials_without_error(dimensions):
    z, weights = nodes_of(dimensions)
    tolerance = 1e-9 if dimensions > 3 else 2e-5  # a grid ends at a radius
    assert weights.min() > 0.0  # averages of probabilities are probabilities
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights @ z, 0.0, atol=1e-12)
    np.testing.assert_allclose((weights[:, None] * z).T @ z, np.eye(dimensions), atol=1e-9)
    squares = np.ones((dimensions, dimensions)) + 2.0 * np.eye(dimensions)
    np.testing.assert_allclose((weights[:, None] * z**2).T @ z**2, squares, atol=50.0 * tolerance)
    np.testing.assert_allclose((weights[:, None] * z**3).T @ z, 3.0 * np.eye(dimensions), atol=50.0 * tolerance)


@pytest.mark.parametrize("classes", [3, 6, 10])
def test_shares_that_are_next_to_nothing_are_not_negative(classes):
    mean, covariance = scores(classes, 4.0, rows=20)
    mean[:, 0] -= 40.0
    with jax.enable_x64(True):
        share = np.asarray(statistics(mean, covariance)[1])
    assert np.all(share > 0.0)
    assert np.max(share[:, 0]) < 1e-6
