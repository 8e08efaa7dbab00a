"""Ridge, LASSO and least angle regression: conditions of the optimum, priors, and scikit-learn's paths."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import laplace, norm
from sklearn.linear_model import lars_path

from cavity.factors.errors import CallError, DataError, ModelError
from cavity.models import lars, lasso, ridge
from cavity.models.sparse.penalised import _corners


def drawn(samples, features, seed, correlated=0.0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(samples, features)) + correlated * random.normal(size=(samples, 1))
    weights = random.normal(size=features) * (random.random(features) < 0.5)
    return x, x @ weights + random.normal(size=samples)


def is_optimal(x, y, weights, penalty):
    """The subgradient holds zero: correlations are the penalty with the weight's sign, or at most it at zero."""
    correlation = x.T @ (y - x @ weights)
    size = 1e-8 * np.abs(x.T @ y).max()
    on = weights != 0.0
    return (
        np.allclose(correlation[on], penalty * np.sign(weights[on]), rtol=0.0, atol=size)
        and (np.abs(correlation[~on]) <= penalty + size).all()
    )


@pytest.mark.parametrize(("samples", "features"), [(30, 6), (20, 20), (10, 25)])
@pytest.mark.parametrize("correlated", [0.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_every_point_of_the_path_is_an_optimum(samples, features, correlated, seed):
    x, y = drawn(samples, features, seed, correlated)
    path = lars(x, y)
    assert (np.diff(path.penalty) <= 0.0).all()
    assert path.penalty[-1] <= 1e-6 * path.penalty[0]
    for share in (1.1, 0.9, 0.5, 0.3, 0.1, 0.03, 0.01, 1e-4):
        penalty = share * path.penalty[0]
        assert is_optimal(x, y, path.at(penalty), penalty)
    assert np.array_equal(path.at(2.0 * path.penalty[0]), np.zeros(features))


@pytest.mark.parametrize("method", ["lasso", "lar"])
@pytest.mark.parametrize("seed", range(3))
def test_the_corners_are_scikit_learns(method, seed):
    x, y = drawn(40, 8, seed, 2.0)
    found = lars(x, y, drop=method == "lasso")
    penalty, _, weights = lars_path(x, y, method=method)
    assert np.allclose(found.penalty, 40 * penalty, rtol=1e-7, atol=1e-7 * found.penalty[0])
    assert np.allclose(found.weights, weights.T, atol=1e-6)


def test_at_no_penalty_it_is_least_squares():
    x, y = drawn(40, 8, 0)
    assert np.allclose(lars(x, y).weights[-1], np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-8)


@pytest.mark.parametrize(("samples", "features"), [(30, 4), (5, 9)])
def test_both_are_the_most_probable_weights_under_their_priors(samples, features):
    x, y = drawn(samples, features, 3)

    def best(log_prior, start):
        def loss(weights):
            return -norm.logpdf(y, x @ weights, 0.5).sum() - log_prior(weights).sum()

        return min(loss(start + 1e-3 * step) for step in np.vstack([np.eye(features), -np.eye(features)])), loss(start)

    gaussian = ridge(x, y, prior_precision=3.0, noise_precision=4.0)
    beside, here = best(lambda w: norm.logpdf(w, 0.0, 3.0**-0.5), gaussian)
    assert here < beside
    heavy = lasso(x, y, prior_scale=0.05, noise_precision=4.0)
    beside, here = best(lambda w: laplace.logpdf(w, 0.0, 0.05), heavy)
    assert here < beside
    assert (heavy == 0.0).any()
    assert (heavy != 0.0).any()
    searched = minimize(lambda w: 2.0 * np.sum((y - x @ w) ** 2) + 1.5 * w @ w, np.zeros(features), tol=1e-10).x
    assert np.allclose(gaussian, searched, atol=1e-4)


@pytest.mark.parametrize("lowest", [0, -1])
def test_features_that_tie_are_optimal_too(lowest):
    """Of small whole numbers many have the same correlation: which joins is not what the largest one says."""
    tied = 0
    for seed in range(150):
        random = np.random.default_rng(seed)
        samples, features = random.integers(2, 12), random.integers(1, 14)
        x = random.integers(lowest, 2, (samples, features)).astype(float)
        y = random.integers(-3, 4, samples).astype(float)
        path = lars(x, y)
        for penalty in path.penalty[0] * np.array([0.9, 0.5, 0.2, 0.05, 0.01]):
            assert is_optimal(x, y, path.at(penalty), penalty), seed
        tied += not is_optimal(x, y, _corners(x, y, 0.0, True).at(0.2 * path.penalty[0]), 0.2 * path.penalty[0])
        assert is_optimal(x, y, lasso(x, y, prior_scale=0.5), 2.0)
    assert tied  # without moving outcomes some are not


def test_equal_features_and_empty_ones():
    x, y = drawn(20, 3, 5)
    x = np.column_stack([x, x[:, 0], np.zeros(20)])
    path = lars(x, y)
    for penalty in (0.5 * path.penalty[0], 1e-3):
        assert is_optimal(x, y, path.at(penalty), penalty)
    assert np.array_equal(lars(x, np.zeros(20)).weights, np.zeros((1, 5)))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: ridge(np.ones((3, 2)), np.ones(2)), DataError, r"shapes \(3, 2\) and \(2,\)"),
        (lambda: lars([[np.nan]], [1.0]), DataError, "finite"),
        (lambda: lars([["a"]], [1.0]), DataError, "arrays of numbers"),
        (lambda: lasso([[1.0]], [1.0], prior_scale=0.0), ModelError, "prior_scale="),
        (lambda: ridge([[1.0]], [1.0], prior_precision=-1.0), ModelError, "prior_precision="),
        (lambda: lars([[1.0]], [1.0], least=-1.0), ModelError, "least="),
        (lambda: lars([[1.0]], [1.0]).at(-1.0), ModelError, "at least 0"),
        (lambda: lars([[1.0]], [1.0]).at("a"), ModelError, "at least 0, or an array of such; found 'a'"),
        (lambda: lars([[1.0]], [1.0]).at(share=1.0), CallError, r"path.at\(share=1.0\)"),
        (lambda: lars([[1.0]], [1.0], drop="yes"), ModelError, "drop= is True"),
        (lambda: lars([[1.0]], [1.0], method="lar"), CallError, "no method="),
        (lambda: lasso([[1.0]], [1.0], alpha=1.0), CallError, "no alpha="),
    ],
)
def test_what_does_not_fit_is_said(call, error, said):
    with pytest.raises(error, match=said):
        call()
