"""Samples given draws of a sparse factor model, against dense Gaussians; sums over draws, against the draws."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from cavity.factors.errors import DataError, UnsupportedError
from cavity.models.sparse.data import Data
from cavity.models.sparse.predict import Draw, draw_factors, factors_given, log_density, reconstruct, sample_predictive
from cavity.models.sparse.summary import gather, summarise

ROWS, COUNT, SAMPLES = 6, 3, 5
KEY = jax.random.key(2)


def drawn(seed, count=COUNT):
    random = np.random.default_rng(seed)
    loading = random.normal(size=(ROWS, count)) * (random.random((ROWS, count)) < 0.6)
    return Draw(loading, random.gamma(3.0, size=ROWS))


def samples_with_gaps():
    random = np.random.default_rng(7)
    values = random.normal(size=(ROWS, SAMPLES))
    values[random.random(values.shape) < 0.3] = np.nan
    values[:, 0], values[:, 4] = np.nan, values[:, 1]
    return values


def covariance_of(draw):
    return draw.loading @ draw.loading.T + np.diag(1.0 / draw.noise)


def test_factors_are_those_of_dense_conditioning():
    draw, values = drawn(0), samples_with_gaps()
    found = factors_given(draw, np.ma.masked_invalid(values))
    assert len(found.covariance) == 4  # samples 1 and 4 miss the same
    for sample, pattern in enumerate(found.pattern):
        seen = ~np.isnan(values[:, sample])
        gain = draw.loading[seen].T @ np.linalg.inv(covariance_of(draw)[np.ix_(seen, seen)])
        np.testing.assert_allclose(found.mean[:, sample], gain @ values[seen, sample], atol=1e-12)
        np.testing.assert_allclose(found.covariance[pattern], np.eye(COUNT) - gain @ draw.loading[seen], atol=1e-12)
    np.testing.assert_allclose(found.covariance[found.pattern[0]], np.eye(COUNT), atol=1e-15)
    np.testing.assert_allclose(reconstruct(draw, values), draw.loading @ found.mean, atol=1e-14)


def test_scores_of_a_dirichlet_process_are_taken_again_and_have_no_closed_density():
    draw = drawn(3, 2)._replace(factor=np.array([[5.0, 5.0, -5.0], [7.0, 7.0, 7.0]]), score_mass=1.5)
    quiet = draw._replace(loading=np.eye(ROWS, 2), noise=np.full(ROWS, 1e12))
    found = sample_predictive(quiet, 30_000, KEY)
    one, other = found[0].round(3), found[1].round(3)  # the scores themselves
    for scores, value, share in ((one, 5.0, 2.0), (one, -5.0, 1.0), (other, 7.0, 3.0)):
        expected = share / 4.5
        error = np.sqrt(expected * (1.0 - expected) / len(scores))
        assert abs((scores == value).mean() - expected) < 5.0 * error
    for call in (log_density, reconstruct, factors_given):
        with pytest.raises(UnsupportedError, match="scores='gaussian'"):
            call(draw, np.zeros((ROWS, 1)))


def test_densities_are_those_of_dense_gaussians_and_their_mixture():
    draws, values = [drawn(0), drawn(1, 2), drawn(2, 0)], samples_with_gaps()
    each = np.zeros((3, SAMPLES))
    for place, draw in enumerate(draws):
        for sample in range(1, SAMPLES):
            seen = ~np.isnan(values[:, sample])
            normal = multivariate_normal(np.zeros(seen.sum()), covariance_of(draw)[np.ix_(seen, seen)])
            each[place, sample] = normal.logpdf(values[seen, sample])
        np.testing.assert_allclose(log_density(draw, values), each[place], atol=1e-12)
    np.testing.assert_allclose(log_density(iter(draws), values), logsumexp(each, axis=0) - np.log(3.0), atol=1e-12)
    mean = np.mean([reconstruct(draw, values) for draw in draws], axis=0)
    np.testing.assert_allclose(reconstruct(draws, values), mean, atol=1e-14)


def test_drawn_factors_have_the_moments_of_their_gaussian():
    draw, value = drawn(0), np.repeat(samples_with_gaps()[:, 1:2], 20000, axis=1)
    exact, found = factors_given(draw, value[:, :1]), draw_factors(draw, value, KEY)
    error = np.sqrt(np.diag(exact.covariance[0]) / 20000)
    assert (np.abs(found.mean(axis=1) - exact.mean[:, 0]) < 4.0 * error).all()
    np.testing.assert_allclose(np.cov(found), exact.covariance[0], atol=0.04)
    np.testing.assert_array_equal(found, draw_factors(draw, value, KEY))


def test_predicted_samples_have_the_moments_of_the_mixture():
    draws = [drawn(0), drawn(1, 2)]
    found = sample_predictive(draws, 40000, KEY)
    expected = 0.5 * (covariance_of(draws[0]) + covariance_of(draws[1]))
    spread = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) / 40000)
    assert (np.abs(np.cov(found) - expected) < 8.0 * spread).all()  # fourth moments of mixtures exceed a Gaussian's
    assert (np.abs(found.mean(axis=1)) < 4.0 * np.sqrt(np.diag(expected) / 40000)).all()
    np.testing.assert_array_equal(found, sample_predictive(draws, 40000, KEY))


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros(ROWS), "one sample as"),
        (np.zeros((ROWS + 1, 2)), "6 rows of the loadings"),
        (np.full((ROWS, 1), np.inf), "infinite"),
        ([["a"] * 2] * ROWS, "could not be read"),
    ],
)
def test_bad_samples_are_named(samples, words):
    for function in (factors_given, log_density, reconstruct):
        with pytest.raises(DataError, match=words):
            function(drawn(0), samples)


def test_no_draws_are_named():
    with pytest.raises(DataError, match="found none"):
        log_density([], np.zeros((ROWS, 1)))
    with pytest.raises(DataError, match="found none"):
        reconstruct([], np.zeros((ROWS, 1)))
    with pytest.raises(DataError, match="found none"):
        sample_predictive([], 3, KEY)
    with pytest.raises(DataError, match="samples="):
        sample_predictive(drawn(0), 0, KEY)


def test_totals_of_chains_are_means_over_all_their_draws():
    random = np.random.default_rng(3)
    values, held_out = random.normal(size=(ROWS, SAMPLES)), np.zeros((ROWS, SAMPLES), bool)
    held_out[2, [0, 3]] = held_out[5, 1] = True
    data, draws, totals = Data(values, held_out), [], [None, None]
    for place, count in enumerate((2, 3, 4, 2, 3)):  # three draws of one chain, two of the other
        draw, factor = drawn(place, count), random.normal(size=(count, SAMPLES))
        fit = draw.loading @ factor
        draws.append((draw, fit))
        record = {"fit": fit, "noise": draw.noise, "loading": draw.loading.T, "factor": factor, "mass": np.array(1.0)}
        chain = 0 if place < 3 else 1
        totals[chain], kept = gather(data, totals[chain], record, known=1, keep="summaries" if place else "all")
        assert set(kept) == ({"mass"} if place else {"noise", "loading", "factor", "mass"})
    found = summarise(data, totals, np.array([2, 3, 4, 2, 3]))
    np.testing.assert_allclose(found.number_of_factors, [0.0, 0.0, 0.4, 0.4, 0.2])
    np.testing.assert_allclose(found.reconstruction, np.mean([fit for _, fit in draws], axis=0))
    np.testing.assert_allclose(found.noise, np.mean([draw.noise for draw, _ in draws], axis=0))
    active = [(draw.loading != 0.0).sum(axis=1) for draw, _ in draws]
    np.testing.assert_allclose(found.factors_per_row, np.mean(active, axis=0))
    known = np.mean([draw.loading[:, :1] != 0.0 for draw, _ in draws], axis=0)
    np.testing.assert_allclose(found.known_activity, known)
    each = np.array([norm.logpdf(values, fit, (1.0 / np.sqrt(draw.noise))[:, None])[held_out] for draw, fit in draws])
    np.testing.assert_array_equal(found.held_out.row, [2, 2, 5])
    np.testing.assert_array_equal(found.held_out.sample, [0, 3, 1])
    np.testing.assert_allclose(found.held_out.log_density, logsumexp(each, axis=0) - np.log(5.0))
    np.testing.assert_allclose(found.held_out.mean_log_density, each.mean(axis=0))
    np.testing.assert_allclose(found.held_out.mean, found.reconstruction[held_out])
    assert found.held_out.score == pytest.approx(np.mean(found.held_out.log_density))
