"""Updates of mass and concentration: their posteriors on a grid, and priors that they leave as they are."""

import jax
import numpy as np
import pytest
from scipy import stats

from cavity.factors.errors import DataError, ModelError
from cavity.models.buffet import (
    BetaBernoulli,
    IndianBuffet,
    draw_concentration,
    draw_finite_mass,
    draw_mass,
    sample_finite,
    sample_restaurant,
)

COUNTS, ROWS = np.array([4, 2, 3, 3, 1, 1, 1]), 5
SHAPE, RATE = 2.0, 0.5


def keys(number, seed=0):
    return jax.random.split(jax.random.key(seed), number)


def grid_cdf(log_likelihood):
    """The distribution function of a positive number given its likelihood and a Gamma(SHAPE, RATE) prior."""
    log_value = np.linspace(-12.0, 6.0, 1801)
    value = np.exp(log_value)
    density = np.array([log_likelihood(each) for each in value]) + SHAPE * log_value - RATE * value
    density = np.exp(density - density.max())
    below = np.cumsum(density)
    return lambda x: np.interp(np.log(x), log_value, below / below[-1])


def chain(step, start, number):
    """Every fourth of so many transitions, nearly independent."""
    found, state = [], start
    for key in keys(number, 1):
        state = step(state, key)
        found.append(state)
    return found[3::4]


def test_mass_is_drawn_from_its_posterior():
    prior = IndianBuffet(7.0, 0.6)
    drawn = np.array([draw_mass(prior, 7, ROWS, key, SHAPE, RATE).mass for key in keys(2000)])

    def log_likelihood(mass):
        return IndianBuffet(mass, 0.6).log_columns(COUNTS, ROWS)

    assert stats.kstest(drawn, grid_cdf(log_likelihood)).pvalue > 1e-4
    law = stats.gamma(SHAPE + 7, scale=1.0 / (RATE + IndianBuffet(1.0, 0.6).expected_features(ROWS)))
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-4
    assert draw_mass(prior, 7, ROWS, jax.random.key(0)).concentration == 0.6


def test_concentration_is_moved_within_its_posterior():
    def step(prior, key):
        return draw_concentration(prior, COUNTS, ROWS, key, SHAPE, RATE)

    def log_likelihood(concentration):
        return IndianBuffet(2.0, concentration).log_columns(COUNTS, ROWS)

    found = chain(step, IndianBuffet(2.0, 1.0), 8000)
    assert all(each.mass == 2.0 for each in found)
    assert stats.kstest([each.concentration for each in found], grid_cdf(log_likelihood)).pvalue > 1e-4


@pytest.mark.parametrize("features", [7, 40])
def test_finite_mass_is_moved_within_its_posterior(features):
    def step(prior, key):
        return draw_finite_mass(prior, COUNTS, ROWS, key, SHAPE, RATE)

    def log_likelihood(mass):
        matrix = np.zeros((ROWS, features))
        for column, count in enumerate(COUNTS):
            matrix[:count, column] = 1
        return BetaBernoulli(mass, features).log_matrix_probability(matrix)

    found = chain(step, BetaBernoulli(1.0, features), 8000)
    assert stats.kstest([each.mass for each in found], grid_cdf(log_likelihood)).pvalue > 1e-4


def test_joint_law_of_parameters_and_matrix_stays():
    """Parameters from their priors and a matrix given them; then one update each. The law stays, also of products of
    parameters and counts, and the update moves."""
    random, before, after = np.random.default_rng(0), [], []
    for key in keys(1200, 2):
        first, second, third = jax.random.split(key, 3)
        prior = IndianBuffet(random.gamma(SHAPE) / RATE, random.gamma(SHAPE) / RATE)
        counts = sample_restaurant(prior, 6, first).sum(axis=0)
        new = draw_mass(prior, len(counts), 6, second, SHAPE, RATE)
        new = draw_concentration(new, counts, 6, third, SHAPE, RATE)
        for found, each in ((before, prior), (after, new)):
            found.append(
                (each.mass, each.concentration, len(counts) / each.mass, np.sum(counts == 1) / (1 + each.mass))
            )
    before, after = np.array(before), np.array(after)
    law = stats.gamma(SHAPE, scale=1.0 / RATE)
    for column in range(2):
        assert stats.kstest(after[:, column], law.cdf).pvalue > 1e-4
        assert (before[:, column] != after[:, column]).all()
    for column in (2, 3):
        assert stats.ks_2samp(before[:, column], after[:, column]).pvalue > 1e-4


def test_joint_law_of_the_finite_mass_and_matrix_stays():
    random, before, after = np.random.default_rng(1), [], []
    for key in keys(1200, 3):
        first, second = jax.random.split(key)
        prior = BetaBernoulli(random.gamma(SHAPE) / RATE, 5)
        counts = sample_finite(prior, 6, first).matrix.sum(axis=0)
        new = draw_finite_mass(prior, counts, 6, second, SHAPE, RATE)
        before.append((prior.mass, counts.sum() / (1 + prior.mass)))
        after.append((new.mass, counts.sum() / (1 + new.mass)))
    before, after = np.array(before), np.array(after)
    assert stats.kstest(after[:, 0], stats.gamma(SHAPE, scale=1.0 / RATE).cdf).pvalue > 1e-4
    assert stats.ks_2samp(before[:, 1], after[:, 1]).pvalue > 1e-4


def test_matrices_without_features_and_same_keys():
    key = jax.random.key(4)
    assert draw_mass(IndianBuffet(1.0), 0, 3, key) == draw_mass(IndianBuffet(5.0), 0, 3, key)
    for seed in range(20):
        assert draw_concentration(IndianBuffet(1.0), [], 3, jax.random.key(seed)).concentration > 0.0
        assert draw_finite_mass(BetaBernoulli(1.0, 2), [0, 0], 3, jax.random.key(seed)).mass > 0.0


def test_bad_requests_are_refused():
    key = jax.random.key(0)
    with pytest.raises(ModelError, match="rate is a finite number > 0"):
        draw_mass(IndianBuffet(1.0), 2, 3, key, rate=0.0)
    with pytest.raises(DataError, match="number of features is a whole number >= 0"):
        draw_mass(IndianBuffet(1.0), -1, 3, key)
    with pytest.raises(DataError, match="from 1 to 3 ones"):
        draw_concentration(IndianBuffet(1.0), [4.0], 3, key)
    with pytest.raises(DataError, match="from 0 to 3 ones; found a count of nan"):
        draw_finite_mass(BetaBernoulli(1.0, 2), [np.nan], 3, key)
    with pytest.raises(ModelError, match="shape is a finite number > 0"):
        draw_finite_mass(BetaBernoulli(1.0, 2), [1], 3, key, shape=-1.0)
