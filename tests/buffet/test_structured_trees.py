"""Priors with trees and with reasons: probabilities by enumeration and quadrature, draws, limits, bad input."""

import itertools

import jax
import numpy as np
import pytest
from geweke_of_features import geweke
from poisson_columns import keys, kinds_of_bits, p_values_of_draws, rates_of
from scipy import integrate, stats
from three_leaves import PAIR, STAR

from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.buffet import IndianBuffet
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.uncollapsed import uncollapsed
from cavity.models.buffet.structured import (
    BetaWeights,
    CausedBits,
    CoalescentWeights,
    Genealogy,
    PhylogeneticBuffet,
    RelatedFeatures,
    log_coalescent,
    sample_coalescent,
    shared_time,
)

TREES = [PhylogeneticBuffet(PAIR, 1.4), PhylogeneticBuffet(STAR, 0.8)]


@pytest.mark.parametrize("prior", TREES, ids=["pair", "star"])
def test_rates_of_columns_on_a_tree_add_up(prior):
    kinds = kinds_of_bits(3)
    rates = rates_of(prior, kinds)
    assert np.isclose(rates.sum(), prior.expected_features(), rtol=1e-10)
    assert np.isclose(rates @ [kind.sum() for kind in kinds], prior.expected_ones(), rtol=1e-10)
    assert np.allclose(rates @ np.array(kinds), prior.mass, rtol=1e-10)  # for each row


def test_branches_that_meet_at_the_root_are_a_buffet():
    for matrix in (np.zeros((3, 0)), np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]]), np.ones((3, 2))):
        wanted = IndianBuffet(0.8).log_probability(matrix)
        assert np.isclose(TREES[1].log_probability(matrix), wanted, rtol=0, atol=1e-10)


def test_the_rate_of_a_column_is_an_integral_over_weights():
    prior, length = TREES[0], PAIR.length

    def integrand(w):
        stay = (1.0 - w) ** length
        below = stay[3] * (1.0 - stay[0]) * stay[1]
        return stay[4] * below * stay[2] / w  # the first leaf alone has it

    rate = prior.mass * integrate.quad(integrand, 0.0, 1.0)[0]
    assert np.isclose(np.exp(prior.log_rates(np.array([[1], [0], [0]], bool))), rate, rtol=1e-8)


@pytest.mark.parametrize("prior", TREES, ids=["pair", "star"])
def test_draws_on_a_tree_have_the_law_of_the_probabilities(prior):
    kinds = kinds_of_bits(3)
    rates = rates_of(prior, kinds)
    drawn = [prior.sample(key) for key in keys(2000)]
    assert min(p_values_of_draws(drawn, kinds, rates)) > 1e-4


def test_next_of_kin_share_more():
    rates = dict(zip([tuple(kind) for kind in kinds_of_bits(3)], rates_of(TREES[0], kinds_of_bits(3)), strict=True))
    assert rates[1, 1, 0] > 2.0 * rates[1, 0, 1]
    assert np.isclose(rates[1, 0, 1], rates[0, 1, 1], rtol=1e-10)


CAUSED = BetaWeights(IndianBuffet(1.2, 0.7), (0.3, 0.6), strength=2.0, leak=0.1)
CAUSES = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]])


def test_probabilities_given_reasons_add_up_to_one_and_are_means_over_weights():
    matrices = [np.array(bits).reshape(3, 2) for bits in itertools.product((0, 1), repeat=6)]
    found = np.exp([CAUSED.log_given_causes(matrix, CAUSES) for matrix in matrices])
    assert np.isclose(found.sum(), 1.0, rtol=1e-12)
    random = np.random.default_rng(0)
    weights = random.beta(*CAUSED.shapes, (40_000, 3, 2))
    off = 0.9 * np.prod(1.0 - CAUSES[None, :, :, None] * weights[:, None], axis=2)
    for k in (0, 21, 38, 63):
        chance = np.prod(np.where(matrices[k], 1.0 - off, off), axis=(1, 2))
        assert abs(chance.mean() - found[k]) < 5.0 * chance.std() / 200.0


def test_draws_of_caused_features_have_the_expected_ones():
    for prior in (CAUSED, BetaWeights(IndianBuffet(2.0, 3.0), (0.2, 0.9, 0.5))):
        ones = np.array([prior.sample(4, key).matrix.sum() for key in keys(2000)])
        assert abs(ones.mean() - prior.expected_ones(4)) < 5.0 * ones.std() / np.sqrt(2000)
    draw = CAUSED.sample(4, keys(1)[0])
    assert draw.weights.shape == (draw.causes.shape[1], 2)
    assert np.isfinite(CAUSED.log_probability(*draw))


def test_the_density_of_caused_features_integrates_to_that_given_reasons():
    prior, causes, matrix = BetaWeights(IndianBuffet(1.0), (0.4,), 3.0), np.array([[1], [1]]), np.array([[1], [0]])
    total, _ = integrate.quad(lambda w: np.exp(prior.log_probability(matrix, causes, [[w]])), 0.0, 1.0)
    wanted = prior.causes.log_probability(causes) + prior.log_given_causes(matrix, causes)
    assert np.isclose(np.log(total), wanted, rtol=0, atol=1e-8)


BUFFET = Law(mass=(8.0, 8.0), concentration=(8.0, 4.0))


@pytest.mark.slow
def test_samplers_of_reasons_and_of_the_numbers_of_the_prior_keep_the_law():
    scores = geweke(uncollapsed, CausedBits((0.3, 0.6), 2.0, 0.1), BUFFET, chains=600, steps=30, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_samplers_of_reasons_of_another_strength_are_found():
    def wrong(key, rows, state, likelihood, law):
        return uncollapsed(key, rows, state, CausedBits((0.3, 0.6), 0.5, 0.1), law)

    scores = geweke(wrong, CausedBits((0.3, 0.6), 2.0, 0.1), BUFFET, chains=600, steps=30)
    assert max(abs(score) for score in scores.values()) > 6.0, scores


def test_the_coalescent_has_its_density():
    def density(second, first):
        return np.exp(log_coalescent(Genealogy(np.zeros((2, 2), int), np.array([first, first + second]))))

    total, _ = integrate.dblquad(density, 0.0, 40.0, 0.0, 40.0)
    assert np.isclose(3.0 * total, 1.0, rtol=1e-6)  # three choices of the first pair, one of the second
    drawn = [sample_coalescent(4, key) for key in keys(3000)]
    first = np.array([genealogy.ages[0] for genealogy in drawn])
    assert stats.kstest(first, stats.expon(scale=1.0 / 6.0).cdf).pvalue > 1e-4
    pairs = np.unique([genealogy.pairs[0] for genealogy in drawn], axis=0, return_counts=True)[1]
    assert len(pairs) == 6
    assert stats.chisquare(pairs).pvalue > 1e-4


def test_shared_time_is_one_mean_less_for_two_features():
    prior = CoalescentWeights(IndianBuffet(1.0), 0.5, 2.0)
    drawn = np.array([prior.covariance(sample_coalescent(5, key)) for key in keys(3000)])
    for place, wanted in zip(((0, 0), (1, 3)), prior.expected_covariance(5), strict=True):
        own = drawn[:, *place]
        assert abs(own.mean() - wanted) < 5.0 * own.std() / np.sqrt(len(own))
    assert np.array_equal(shared_time(Genealogy(np.array([[0, 1], [2, 3]]), np.array([1.0, 3.0]))),
                          [[3.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 3.0]])  # fmt: skip


def test_weights_diffuse_along_the_genealogy_and_have_their_density():
    prior = CoalescentWeights(IndianBuffet(3.0, 0.5), 0.5, 2.0)
    draw = prior.sample(5000, jax.random.key(3))
    features = draw.weights.shape[1]
    assert features > 1
    root = np.linalg.cholesky(prior.covariance(draw.genealogy))
    white = np.linalg.solve(root, draw.weights.T)
    assert np.abs(white @ white.T / 5000 - np.eye(features)).max() < 0.1
    small = RelatedFeatures(draw.matrix[:3], draw.weights[:3], draw.genealogy)
    normal = stats.multivariate_normal(cov=prior.covariance(draw.genealogy)).logpdf(small.weights).sum()
    wanted = prior.buffet.log_probability(small.matrix) + log_coalescent(draw.genealogy) + normal
    assert np.isclose(prior.log_probability(small), wanted, rtol=1e-10)


def test_what_is_wrong_is_refused():
    for make in (
        lambda: PhylogeneticBuffet(PAIR, 0.0), lambda: BetaWeights(IndianBuffet(1.0), (1.0,)),
        lambda: BetaWeights(IndianBuffet(1.0), (0.5,), leak=1.0), lambda: CausedBits((0.5,), leak=0.0),
        lambda: CausedBits(()), lambda: CoalescentWeights(IndianBuffet(1.0), 0.0),
    ):  # fmt: skip
        with pytest.raises(ModelError):
            make()
    for ask in (
        lambda: TREES[0].log_probability(np.ones((2, 1))),
        lambda: CAUSED.log_probability(np.ones((3, 2)), CAUSES, [[1]]),
        lambda: CAUSED.log_given_causes(np.ones((2, 2)), CAUSES),
        lambda: CAUSED.log_given_causes(np.ones((3, 1)), CAUSES),
        lambda: CausedBits((0.5,)).check(np.array([[2.0]]), np.array([[True]])),
        lambda: log_coalescent(Genealogy(np.zeros((2, 2), int), np.array([2.0, 1.0]))),
        lambda: CoalescentWeights(IndianBuffet(1.0)).log_probability(
            RelatedFeatures(np.ones((2, 2)), np.ones((2, 1)), Genealogy(np.zeros((1, 2), int), np.ones(1)))
        ),
    ):  # fmt: skip
        with pytest.raises(DataError):
            ask()
    with pytest.raises(UnsupportedError):
        CAUSED.log_given_causes(np.ones((17, 2)), np.ones((17, 1)))
