"""Draws have the law that the prior states, whichever way they are constructed."""

import jax
import numpy as np
import pytest
from histories import history_rates
from scipy import stats

from cavity.factors.errors import DataError, UnsupportedError
from cavity.models.buffet import (
    BetaBernoulli,
    IndianBuffet,
    sample_beta_process,
    sample_finite,
    sample_restaurant,
    sample_stick_breaking,
)

ONE, FEW, MANY = IndianBuffet(1.6), IndianBuffet(1.6, 0.4), IndianBuffet(1.6, 3.0)


def continued(prior, rows, key):
    """The restaurant closed after the first row and opened again."""
    first, second = jax.random.split(key)
    start = sample_restaurant(prior, 1, first)
    rest = sample_restaurant(prior, rows - 1, second, given=start)
    return np.concatenate([np.pad(start, ((0, 0), (0, rest.shape[1] - start.shape[1]))), rest])


def beta_process(prior, rows, key):
    return sample_beta_process(prior, rows, key).matrix


def sticks(threshold):
    def draw(prior, rows, key):
        return sample_stick_breaking(prior, rows, key, threshold=threshold).matrix

    draw.__name__ = f"sticks above {threshold}"
    return draw


def truncated(prior, rows, key):
    draw = sample_stick_breaking(prior, rows, key, features=60)
    assert draw.missed < 1e-5
    return draw.matrix


def keys(number, seed=0):
    return jax.random.split(jax.random.key(seed), number)


def numbers_of_histories(matrix):
    rows = len(matrix)
    codes = 2 ** np.arange(rows - 1, -1, -1) @ matrix
    return np.bincount(codes.astype(int), minlength=2**rows)[:0:-1]


CASES = [
    *((prior, construct) for prior in (ONE, FEW, MANY) for construct in (sample_restaurant, continued, beta_process)),
    *((ONE, construct) for construct in (sticks(0.01), sticks(0.4), truncated)),
]


@pytest.mark.parametrize(("prior", "construct"), CASES, ids=lambda case: getattr(case, "__name__", str(case)))
def test_numbers_of_histories_are_independent_poisson_variables(prior, construct):
    """That is all of the law of a matrix, up to the order of its columns."""
    times = 1500
    found = np.array([numbers_of_histories(construct(prior, 3, key)) for key in keys(times)])
    rates = history_rates(prior, 3)
    for number, rate in zip(found.T, rates, strict=True):
        most = int(stats.poisson.isf(10.0 / times, rate))
        observed = np.bincount(np.minimum(number, most), minlength=most + 1)
        wanted = stats.poisson.pmf(np.arange(most + 1), rate)
        wanted[-1] = stats.poisson.sf(most - 1, rate)
        assert stats.chisquare(observed, times * wanted).pvalue > 1e-4
    total = found.sum(axis=1)  # as variable as a sum of independent ones
    assert abs(total.mean() - prior.expected_features(3)) < 4.0 * np.sqrt(rates.sum() / times)
    assert abs(total.var() / rates.sum() - 1.0) < 4.0 * np.sqrt((2.0 + 1.0 / rates.sum()) / times)
    weights = np.random.default_rng(0).normal(size=len(rates))
    assert abs((found @ weights).var() / (rates @ weights**2) - 1.0) < 0.2


@pytest.mark.parametrize("prior", [ONE, FEW, MANY], ids=str)
def test_rows_have_poisson_numbers_of_features(prior):
    ones = np.array([sample_restaurant(prior, 30, key).sum(axis=1) for key in keys(400, 1)])
    for row in (0, 1, 29):
        observed = np.bincount(np.minimum(ones[:, row], 5), minlength=6)
        wanted = np.append(stats.poisson.pmf(np.arange(5), 1.6), stats.poisson.sf(4, 1.6))
        assert stats.chisquare(observed, 400 * wanted).pvalue > 1e-4
    assert abs(ones.sum(axis=1).mean() - prior.expected_ones(30)) < 4.0 * ones.sum(axis=1).std() / np.sqrt(400)


def test_all_constructions_have_as_many_features():
    wanted, times = ONE.expected_features(200), 400
    for construct in (sample_restaurant, beta_process, sticks(0.02)):
        found = np.array([construct(ONE, 200, key).any(axis=0).sum() for key in keys(times, 2)])
        assert abs(found.mean() - wanted) < 4.0 * np.sqrt(wanted / times)
        assert abs(found.var() / wanted - 1.0) < 4.0 * np.sqrt(2.5 / times)
    many = [sample_finite(BetaBernoulli(1.6, 400), 200, key).matrix.any(axis=0).sum() for key in keys(times, 2)]
    assert abs(np.mean(many) - BetaBernoulli(1.6, 400).expected_features(200)) < 4.0 * np.sqrt(wanted / times)


@pytest.mark.parametrize("prior", [ONE, FEW, MANY], ids=str)
def test_weights_of_the_beta_process(prior):
    """Those of features that m of n rows have are Beta(m, n - m + c)."""
    draws = [sample_beta_process(prior, 3, key) for key in keys(2500, 3)]
    ones = np.concatenate([draw.matrix.sum(axis=0) for draw in draws])
    weights = np.concatenate([draw.weights for draw in draws])
    for m in (1, 2, 3):
        law = stats.beta(m, 3 - m + prior.concentration)
        assert stats.kstest(weights[ones == m], law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("threshold", [0.05, 0.5])
def test_weights_of_sticks(threshold):
    draws = [sample_stick_breaking(ONE, 3, key, threshold=threshold) for key in keys(2500, 4)]
    assert all((np.diff(draw.weights) <= 0.0).all() and draw.missed == 0.0 for draw in draws)
    first = np.array([draw.weights[0] if len(draw.weights) else 0.0 for draw in draws])
    above = first > threshold  # below it, only weights of features that some row has are known
    assert abs(above.mean() - (1.0 - threshold**1.6)) < 4.0 * np.sqrt(0.25 / 2500)
    assert stats.kstest(first[above], lambda x: (x**1.6 - threshold**1.6) / (1.0 - threshold**1.6)).pvalue > 1e-4
    ones = np.concatenate([draw.matrix.sum(axis=0) for draw in draws])
    weights = np.concatenate([draw.weights for draw in draws])
    for m in (1, 2, 3):
        assert stats.kstest(weights[ones == m], stats.beta(m, 4 - m).cdf).pvalue > 1e-4


def test_what_a_truncation_leaves_out_is_stated():
    draws = [sample_stick_breaking(ONE, 50, key, features=3) for key in keys(2500, 5)]
    kept = np.array([draw.matrix.any(axis=0).sum() for draw in draws])
    missed = np.array([draw.missed for draw in draws])
    assert missed.min() > 0.0
    assert abs((kept + missed).mean() - ONE.expected_features(50)) < 4.0 * (kept + missed).std() / 50.0
    share = np.array([draw.weights for draw in draws]).mean(axis=0)
    assert np.allclose(share, (1.6 / 2.6) ** np.arange(1, 4), rtol=0.05)


def test_finite_draws():
    prior, found = BetaBernoulli(0.9, 2), {}
    for key in keys(4000, 6):
        matrix = sample_finite(prior, 2, key).matrix
        found[matrix.tobytes()] = found.get(matrix.tobytes(), 0) + 1
    every = [np.array([[a, b], [c, d]], dtype=bool) for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)]
    wanted = np.exp([prior.log_matrix_probability(matrix) for matrix in every])
    observed = [found.pop(matrix.tobytes(), 0) for matrix in every]
    assert not found
    assert stats.chisquare(observed, 4000 * wanted).pvalue > 1e-4
    weights = np.concatenate([sample_finite(prior, 1, key).weights for key in keys(1000, 7)])
    assert stats.kstest(weights, stats.beta(0.45, 1.0).cdf).pvalue > 1e-4


def test_same_key_same_draw_and_features_in_order_of_appearance():
    first, again, other = (sample_restaurant(FEW, 40, jax.random.key(seed)) for seed in (1, 1, 2))
    assert first.shape == again.shape
    assert (first == again).all()
    assert first.shape != other.shape or (first != other).any()
    assert (np.diff(first.argmax(axis=0)) >= 0).all()
    assert first.any(axis=0).all()


def test_extreme_parameters():
    assert sample_restaurant(IndianBuffet(1e-9), 5, jax.random.key(0)).shape == (5, 0)
    assert sample_beta_process(IndianBuffet(1e-9), 5, jax.random.key(0)).matrix.shape == (5, 0)
    assert sample_stick_breaking(IndianBuffet(1e-9), 5, jax.random.key(0)).matrix.shape == (5, 0)
    apart = sample_beta_process(IndianBuffet(3.0, 1e9), 20, jax.random.key(1)).matrix
    assert (apart.sum(axis=0) == 1).all()
    alike = sample_restaurant(IndianBuffet(3.0, 1e-9), 20, jax.random.key(1))
    assert alike.all()
    assert alike.shape[1] > 0
    assert sample_restaurant(ONE, 1, jax.random.key(3), given=np.zeros((4, 0))).shape[0] == 1


def test_bad_requests_are_refused():
    key = jax.random.key(0)
    with pytest.raises(UnsupportedError, match="sample_beta_process"):
        sample_stick_breaking(MANY, 3, key)
    for threshold in (0.0, 1.0, np.nan):
        with pytest.raises(DataError, match="threshold"):
            sample_stick_breaking(ONE, 3, key, threshold=threshold)
    with pytest.raises(DataError, match="number of features"):
        sample_stick_breaking(ONE, 3, key, features=0)
    for sample in (sample_restaurant, sample_beta_process, sample_stick_breaking):
        with pytest.raises(DataError, match="number of rows"):
            sample(ONE, 0, key)
    with pytest.raises(DataError, match="Missing entries"):
        sample_restaurant(ONE, 2, key, given=[[np.nan]])
    with pytest.raises(DataError, match="number of rows"):
        sample_finite(BetaBernoulli(1.0, 2), -1, key)
