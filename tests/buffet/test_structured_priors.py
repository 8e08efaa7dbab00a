"""Priors beyond the Indian buffet of two parameters: probabilities by enumeration, draws, limits, bad input."""

import itertools

import numpy as np
import pytest
from poisson_columns import keys, kinds_of_bits, p_values_of_draws, rates_of
from scipy import integrate, stats
from scipy.special import beta as beta_function

from cavity.factors.errors import DataError, ModelError
from cavity.models.buffet import IndianBuffet
from cavity.models.buffet.structured import (
    BetaProcess,
    FiniteGammaPoisson,
    FiniteMarkovBuffet,
    GammaPoisson,
    MarkovBuffet,
    StableBeta,
)

STABLE = [StableBeta(1.3, 0.7, 0.4), StableBeta(0.8, -0.2, 0.5), StableBeta(2.0, 3.0, 0.9), StableBeta(1.1, 0.5)]
MARKOV = [MarkovBuffet(1.4), MarkovBuffet(0.9, 3.0, 0.7)]
MATRICES = [np.zeros((4, 0)), np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]]), np.ones((2, 4)), np.array([[0, 1, 1, 0]]).T]


def every_matrix(rows, columns, most=1):
    for entries in itertools.product(range(most + 1), repeat=rows * columns):
        yield np.array(entries).reshape(rows, columns)


@pytest.mark.parametrize("prior", [*STABLE, *MARKOV], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_rates_of_all_columns_add_up_to_the_expected_number(prior, rows):
    kinds = kinds_of_bits(rows)
    rates = rates_of(prior, kinds)
    assert np.isclose(rates.sum(), prior.expected_features(rows), rtol=1e-12)
    assert np.isclose(rates @ [kind.sum() for kind in kinds], prior.expected_ones(rows), rtol=1e-12)
    assert np.isclose(-prior.log_probability(np.zeros((rows, 0))), rates.sum(), rtol=1e-12)


@pytest.mark.parametrize("prior", [*STABLE, *MARKOV], ids=str)
def test_draws_have_the_law_of_the_probabilities(prior):
    kinds = kinds_of_bits(3)
    rates = rates_of(prior, kinds)
    drawn = [prior.sample(3, key) for key in keys(1500)]
    assert min(p_values_of_draws(drawn, kinds, rates)) > 1e-4
    assert min(p_values_of_draws(drawn, kinds, 1.2 * rates)) < 1e-4  # a control that must fail


@pytest.mark.parametrize("prior", STABLE, ids=str)
def test_weights_of_the_stable_beta_process_give_the_same_law(prior):
    kinds = kinds_of_bits(3)
    drawn = [prior.sample_weights(3, key).matrix for key in keys(1500, seed=1)]
    assert min(p_values_of_draws(drawn, kinds, rates_of(prior, kinds))) > 1e-4


@pytest.mark.parametrize("prior", STABLE, ids=str)
def test_rows_of_three_parameters_are_exchangeable_and_their_conditionals_are_ratios(prior):
    random = np.random.default_rng(0)
    matrix = random.random((5, 6)) < 0.4
    for _ in range(4):
        shuffled = random.permutation(random.permutation(matrix), axis=1)
        assert np.isclose(prior.log_probability(shuffled), prior.log_probability(matrix), rtol=0, atol=1e-12)
    rates = prior.log_rates(np.arange(1, 6), 5)
    odds = np.exp(rates[1:] - rates[:-1])
    conditional = prior.conditional(np.arange(1, 5), 5)
    assert np.allclose(conditional / (1.0 - conditional), odds, rtol=1e-12)
    assert np.isclose(prior.new_feature_rate(5), np.exp(rates[0]), rtol=1e-12)
    assert prior.conditional([0], 5) == 0.0


def test_rates_of_three_parameters_are_integrals_over_the_weights():
    prior = StableBeta(1.3, 0.7, 0.4)
    c, d = prior.concentration, prior.discount
    first = prior.mass / beta_function(1.0 - d, c + d)  # so that the expected weight of all features is the mass

    def intensity(x):
        return first * x ** (-1.0 - d) * (1.0 - x) ** (c + d - 1.0)

    for m in (1, 3):
        rate, _ = integrate.quad(lambda x, m=m: intensity(x) * x**m * (1.0 - x) ** (4 - m), 0.0, 1.0)
        assert np.isclose(np.exp(prior.log_rates([m], 4)), rate, rtol=1e-7)


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: str(matrix.shape))
def test_without_a_discount_three_parameters_are_two(matrix):
    two, three = IndianBuffet(1.7, 0.6), StableBeta(1.7, 0.6)
    assert np.isclose(three.log_probability(matrix), two.log_probability(matrix), rtol=0, atol=1e-12)
    assert np.isclose(three.expected_features(7), two.expected_features(7), rtol=1e-13)


def test_features_grow_as_the_power_that_the_discount_says():
    prior = StableBeta(2.0, 1.0, 0.6)
    rows = np.array([10**4, 10**5])
    few, many = (prior.expected_features(int(n)) for n in rows)
    assert abs(np.log(many / few) / np.log(10.0) - 0.6) < 0.01


def test_probabilities_of_atoms_add_up_to_one_and_draws_follow_them():
    prior = BetaProcess((0.3, 0.8), concentration=1.7)
    matrices = list(every_matrix(3, 2))
    probability = np.exp([prior.log_probability(matrix) for matrix in matrices])
    assert np.isclose(probability.sum(), 1.0, rtol=1e-13)
    assert np.isclose(probability @ [matrix.sum() for matrix in matrices], prior.expected_ones(3), rtol=1e-13)
    used = probability @ [matrix.any(axis=0).sum() for matrix in matrices]
    assert np.isclose(used, prior.expected_features(3), rtol=1e-13)
    index = {matrix.astype(bool).tobytes(): k for k, matrix in enumerate(matrices)}
    found = np.bincount([index[prior.sample(3, key).matrix.tobytes()] for key in keys(4000)], minlength=len(matrices))
    assert stats.chisquare(found, 4000 * probability).pvalue > 1e-4


def test_the_next_row_after_atoms_and_others_is_a_ratio_of_probabilities():
    prior = BetaProcess((0.3, 0.8), concentration=1.7, mass=0.9)
    matrix = np.array([[1, 0, 1, 0], [0, 0, 1, 1]])
    chance, rate = prior.predictive(matrix)
    assert np.isclose(rate, 1.7 * 0.9 / 3.7, rtol=1e-12)
    assert np.allclose(chance, [1.51 / 3.7, 1.36 / 3.7, 2.0 / 3.7, 1.0 / 3.7], rtol=1e-12)
    row = np.array([1, 0, 1, 0])
    gained = prior.log_probability(np.vstack([matrix, row])) - prior.log_probability(matrix)
    assert np.isclose(gained, np.log(np.where(row, chance, 1.0 - chance)).sum() - rate, rtol=0, atol=1e-12)


def test_many_atoms_of_equal_mass_are_a_buffet():
    matrix = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]])
    buffet, number = IndianBuffet(1.3, 2.5), 10**5
    prior = BetaProcess((1.3 / number,) * number, concentration=2.5)
    padded = np.pad(matrix, [(0, 0), (0, number - matrix.shape[1])])
    orders = np.log(number - np.arange(matrix.shape[1])).sum()  # no two of these columns are alike
    assert abs(prior.log_probability(padded) + orders - buffet.log_probability(matrix)) < 2e-4


def test_the_continuous_part_is_drawn_behind_the_atoms():
    prior = BetaProcess((0.5,), concentration=0.8, mass=1.2)
    kinds = kinds_of_bits(3)
    drawn = [prior.sample(3, key) for key in keys(1500)]
    assert all(len(draw.weights) == draw.matrix.shape[1] for draw in drawn)
    rest = [draw.matrix[:, 1:] for draw in drawn]
    assert min(p_values_of_draws(rest, kinds, rates_of(IndianBuffet(1.2, 0.8), kinds))) > 1e-4


GAMMA = [GammaPoisson(1.3), GammaPoisson(0.8, 2.5)]


@pytest.mark.parametrize("prior", GAMMA, ids=str)
def test_rates_of_columns_of_counts_add_up(prior):
    kinds = [np.array(kind, float) for kind in itertools.product(range(60), repeat=2) if any(kind)]
    rates = rates_of(prior, kinds)
    assert np.isclose(rates.sum(), prior.expected_features(2), rtol=1e-8)
    assert np.isclose(rates @ [kind.sum() for kind in kinds], prior.expected_total(2), rtol=1e-6)


@pytest.mark.parametrize("prior", GAMMA, ids=str)
def test_draws_of_counts_have_the_law_of_the_probabilities(prior):
    kinds = [np.array(kind, float) for kind in itertools.product(range(5), repeat=3) if any(kind)]
    drawn = [matrix[:, matrix.max(axis=0, initial=0) < 5] for matrix in (prior.sample(3, key) for key in keys(1500))]
    assert min(p_values_of_draws(drawn, kinds, rates_of(prior, kinds))) > 1e-4


def test_conditionals_of_counts_are_ratios_and_add_up_to_one():
    prior = GammaPoisson(1.3, 0.7)
    others, counts = np.array([2, 0, 1]), np.arange(200)
    chance = np.exp(prior.log_conditional(counts, others.sum(), 4))
    assert np.isclose(chance.sum(), 1.0, rtol=1e-12)
    rates = [prior.log_probability(np.append(others, count)[:, None]) for count in counts[:5]]
    assert np.allclose(np.diff(rates), np.diff(np.log(chance[:5])), rtol=0, atol=1e-12)
    alone = sum(np.exp(prior.log_probability(np.array([[0, 0, 0, count]]).T)) for count in range(1, 80))
    assert np.isclose(alone / np.exp(prior.log_probability(np.zeros((4, 0)))), prior.new_feature_rate(4), rtol=1e-10)


def test_the_finite_parent_of_counts_tends_to_the_process_and_adds_up_to_one():
    matrix, process = np.array([[2, 1, 0], [0, 3, 1], [1, 0, 0]]), GammaPoisson(1.3, 0.7)
    many = 10**5
    padded = np.pad(matrix, [(0, 0), (0, many - 3)])
    orders = np.log(many - np.arange(3)).sum()
    assert abs(FiniteGammaPoisson(1.3, many, 0.7).log_matrix_probability(padded) + orders
               - process.log_probability(matrix)) < 1e-4  # fmt: skip
    small = FiniteGammaPoisson(0.9, 2, 3.0)
    matrices = list(every_matrix(2, 2, most=9))
    probability = np.exp([small.log_matrix_probability(each) for each in matrices])
    assert abs(probability.sum() - 1.0) < 1e-4
    sums = np.array([small.sample(2, key).sum() for key in keys(4000)])
    wanted = stats.nbinom.pmf(np.arange(6), 0.9, 3.0 / 5.0)
    wanted = np.append(wanted, 1.0 - wanted.sum())
    assert stats.chisquare(np.bincount(np.minimum(sums, 6), minlength=7), 4000 * wanted).pvalue > 1e-4


@pytest.mark.parametrize("stay", [(1.0, 1.0), (3.0, 0.7)])
def test_finite_chains_add_up_to_one_are_drawn_so_and_tend_to_the_process(stay):
    prior = FiniteMarkovBuffet(1.4, 2, *stay)
    matrices = list(every_matrix(3, 2))
    probability = np.exp([prior.log_matrix_probability(matrix) for matrix in matrices])
    assert np.isclose(probability.sum(), 1.0, rtol=1e-13)
    index = {matrix.astype(bool).tobytes(): k for k, matrix in enumerate(matrices)}
    found = np.bincount([index[prior.sample(3, key).tobytes()] for key in keys(4000)], minlength=len(matrices))
    assert stats.chisquare(found, 4000 * probability).pvalue > 1e-4
    process = MarkovBuffet(1.4, *stay)
    for matrix in MATRICES:
        off = FiniteMarkovBuffet(1.4, 10**5, *stay).log_probability(matrix) - process.log_probability(matrix)
        assert abs(off) < 2e-4


def test_rows_of_chains_are_not_exchangeable():
    prior, matrix = MarkovBuffet(1.4, 3.0, 0.7), np.array([[1], [1], [0]])
    assert abs(prior.log_probability(matrix) - prior.log_probability(matrix[[0, 2, 1]])) > 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: StableBeta(1.0, 1.0, 1.0), lambda: StableBeta(1.0, -0.3, 0.3), lambda: StableBeta(0.0),
        lambda: BetaProcess((0.0,)), lambda: BetaProcess((0.5,), mass=-1.0), lambda: BetaProcess((0.5,), 0.0),
        lambda: GammaPoisson(-1.0), lambda: FiniteGammaPoisson(1.0, 2, 0.0), lambda: MarkovBuffet(1.0, 0.0),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(ModelError):
        make()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: StableBeta(1.0).log_probability([[0.5]]), lambda: StableBeta(1.0).conditional([3], 3),
        lambda: BetaProcess((0.5, 0.5)).log_probability([[1]]), lambda: BetaProcess((0.5,)).log_probability([[1, 1]]),
        lambda: GammaPoisson(1.0).log_probability([[-1]]), lambda: GammaPoisson(1.0).log_probability([1, 2]),
        lambda: GammaPoisson(1.0).log_conditional(1, 0, 3), lambda: GammaPoisson(1.0).sample(0, keys(1)[0]),
        lambda: FiniteGammaPoisson(1.0, 2).log_matrix_probability([[1]]), lambda: FiniteMarkovBuffet(1.0, 0),
        lambda: FiniteMarkovBuffet(1.0, 1).log_probability([[1, 1]]), lambda: MarkovBuffet(1.0).log_probability([[2]]),
    ],
)  # fmt: skip
def test_wrong_data_are_refused(ask):
    with pytest.raises(DataError):
        ask()
