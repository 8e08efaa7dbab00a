"""Factor analysis by maximum likelihood: its density, its gradient, its maximum, and scikit-learn's."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from cavity.factors.errors import DataError, ModelError
from cavity.models import factor_analysis
from cavity.models.sparse.factor_analysis import _expected, _gradient, _parts, _patterns


def drawn(rows, samples, factors, seed, missing=0.0):
    random = np.random.default_rng(seed)
    loading = random.normal(size=(rows, factors))
    noise = random.uniform(0.5, 1.5, rows)
    values = loading @ random.normal(size=(factors, samples)) + noise[:, None] * random.normal(size=(rows, samples))
    values = 3.0 + random.uniform(0.1, 10.0, rows)[:, None] * values
    values[random.random(values.shape) < missing] = np.nan
    return values


def exact(found, values):
    """Log densities of samples by the normal law of their observed entries."""
    covariance = found.loading @ found.loading.T + np.diag(found.noise_variance)
    densities = []
    for sample in values.T:
        seen = ~np.isnan(sample)
        law = multivariate_normal(found.mean[seen], covariance[np.ix_(seen, seen)]) if seen.any() else None
        densities.append(law.logpdf(sample[seen]) if law else 0.0)
    return np.array(densities)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_density_is_the_normal_laws_and_the_gradient_is_its_own(missing):
    values = drawn(5, 30, 2, 0, missing)
    if missing:
        values[:, 0] = np.nan  # a sample of which nothing is known
    found = factor_analysis(values, 2)
    assert found.converged
    assert np.allclose(found.log_density(values), exact(found, values), rtol=0.0, atol=1e-9)
    assert found.log_likelihood == pytest.approx(exact(found, values).sum(), rel=1e-9)
    patterns = _patterns((values - 3.0) / 5.0)

    def likelihood(point):
        loading, mean, log_noise = _parts(point, 5)
        return _expected(patterns, loading, mean, np.exp(log_noise)).log_density.sum()

    def gradient(point):
        loading, mean, log_noise = _parts(point, 5)
        return _gradient(
            patterns, _expected(patterns, loading, mean, np.exp(log_noise)), loading, mean, np.exp(log_noise)
        )

    point = np.random.default_rng(1).normal(size=20)
    assert check_grad(likelihood, gradient, point) < 1e-5 * np.linalg.norm(gradient(point))


@pytest.mark.parametrize(("rows", "samples", "factors"), [(6, 150, 1), (20, 100, 3), (30, 25, 4)])
def test_nothing_missing_the_likelihood_is_scikit_learns(rows, samples, factors):
    values = drawn(rows, samples, factors, seed=rows)
    found = factor_analysis(values, factors)
    peer = FactorAnalysis(factors, tol=1e-9, max_iter=5000, svd_method="lapack").fit(values.T)
    assert found.log_likelihood >= samples * peer.score(values.T) - 1e-3
    heywood = (found.noise_variance < 1e-3 * values.var(axis=1)).any()
    assert heywood or found.log_likelihood == pytest.approx(samples * peer.score(values.T), abs=1e-2)
    if not heywood:
        assert np.allclose(found.noise_variance, peer.noise_variance_, rtol=2e-2)
        assert np.allclose(found.loading @ found.loading.T, peer.components_.T @ peer.components_, rtol=0.1, atol=0.5)


def test_no_step_from_the_maximum_gains_and_factors_stand_in_order():
    values = drawn(8, 60, 2, 3, 0.15)
    found = factor_analysis(values, 2)
    random = np.random.default_rng(0)
    for _ in range(20):
        step = 1e-2 * random.normal(size=found.loading.shape)
        other = type(found)(found.loading * (1.0 + step), found.mean, found.noise_variance, 0.0, 0, True)
        assert other.log_density(values).sum() < found.log_likelihood
    gram = found.loading.T @ (found.loading / found.noise_variance[:, None])
    assert gram[0, 0] > gram[1, 1] > 0.0
    assert abs(gram[0, 1]) < 1e-8 * gram[0, 0]


def test_units_of_rows_change_nothing_but_units():
    values, units = drawn(6, 80, 2, 4, 0.1), 2.0 ** np.array([-10, 0, 13, 1, 3, -3])
    one, other = factor_analysis(values, 2), factor_analysis(values * units[:, None], 2)
    assert np.allclose(one.loading * units[:, None], other.loading, rtol=1e-8, atol=0.0)
    assert np.allclose(one.scores(values), other.scores(values * units[:, None]), atol=1e-8)


def test_scores_are_the_normal_laws():
    values = drawn(6, 40, 2, 5, 0.2)
    found = factor_analysis(values, 2)
    seen = ~np.isnan(values[:, 7])
    loading = found.loading[seen]
    covariance = loading @ loading.T + np.diag(found.noise_variance[seen])
    expected = loading.T @ np.linalg.solve(covariance, values[seen, 7] - found.mean[seen])
    assert np.allclose(found.scores(values)[:, 7], expected, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: factor_analysis(np.ones(3), 1), DataError, "table"),
        (lambda: factor_analysis([["a", "b"]], 1), DataError, "table"),
        (lambda: factor_analysis([[1.0, np.inf], [1.0, 2.0]], 1), DataError, "1 of 4 values are infinite"),
        (lambda: factor_analysis([[1.0, 2.0, 3.0], [1.0, 1.0, np.nan]], 1), DataError, "Row 1 has no two different"),
        (lambda: factor_analysis([[1e-30, 2e-30, 1e-30], [0.1, 0.1, 0.1]], 1), DataError, "Row 1 has no two different"),
        (lambda: factor_analysis(drawn(3, 9, 1, 0), 3), ModelError, "from 1 to 2"),
        (lambda: factor_analysis(drawn(3, 9, 1, 0), True), ModelError, "from 1 to 2"),
        (lambda: factor_analysis(drawn(3, 9, 1, 0), 1).scores(np.ones((2, 2))), DataError, "found 2 rows"),
        (lambda: factor_analysis(drawn(3, 9, 1, 0), 1, max_iterations=0), ModelError, "max_iterations=0"),
        (lambda: factor_analysis(drawn(3, 9, 1, 0), 1, tolerance="a"), ModelError, "tolerance="),
    ],
)
def test_what_does_not_fit_is_said(call, error, said):
    with pytest.raises(error, match=said):
        call()
