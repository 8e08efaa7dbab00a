"""Probabilities of binary matrices against enumeration, independent Poisson variables, and each other."""

import itertools

import numpy as np
import pytest
from histories import history_rates
from scipy import stats
from scipy.special import gammaln

from cavity.factors.errors import DataError, ModelError
from cavity.models.buffet import BetaBernoulli, IndianBuffet, harmonic, left_ordered

PRIORS = [IndianBuffet(1.3), IndianBuffet(0.8, 0.3), IndianBuffet(2.0, 4.0)]


def every_matrix(rows, columns):
    for entries in itertools.product((0, 1), repeat=rows * columns):
        yield np.array(entries).reshape(rows, columns)


def from_histories(numbers, rows):
    """The left-ordered matrix with so many columns of each history 2^rows - 1, .., 1."""
    columns = list(itertools.product((1, 0), repeat=rows))[:-1]
    return np.repeat(np.array(columns), numbers, axis=0).T


@pytest.mark.parametrize("mass", [0.4, 3.0])
def test_finite_probabilities_of_all_matrices_add_up_to_one(mass):
    prior = BetaBernoulli(mass, 3)
    classes = {}
    for matrix in every_matrix(3, 3):
        found = classes.setdefault(left_ordered(matrix).matrix.tobytes(), [])
        found.append((prior.log_matrix_probability(matrix), prior.log_probability(matrix)))
    assert abs(sum(np.exp(own) for members in classes.values() for own, _ in members) - 1.0) < 1e-13
    for members in classes.values():
        own, of_class = np.array(members).T
        assert np.allclose(of_class, np.log(np.exp(own).sum()), rtol=0, atol=1e-12)


def test_expectations_of_the_finite_prior():
    prior = BetaBernoulli(1.7, 3)
    matrices = list(every_matrix(3, 3))
    weight = np.exp([prior.log_matrix_probability(matrix) for matrix in matrices])
    assert np.isclose(prior.expected_ones(3), weight @ [matrix.sum() for matrix in matrices], rtol=1e-13)
    used = [matrix.any(axis=0).sum() for matrix in matrices]
    assert np.isclose(prior.expected_features(3), weight @ used, rtol=1e-13)


def test_the_finite_prior_tends_to_the_buffet():
    buffet = IndianBuffet(1.3)
    for matrix in (np.zeros((4, 0)), np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]]), np.ones((2, 4))):
        off = [BetaBernoulli(1.3, k).log_probability(matrix) - buffet.log_probability(matrix) for k in (10**5, 10**6)]
        assert abs(off[1]) < 2e-5
        assert abs(off[0] / off[1] - 10.0) < 0.01  # an error of one over the number of features
    assert np.isclose(BetaBernoulli(1.3, 10**8).expected_features(1000), buffet.expected_features(1000), rtol=1e-6)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_probabilities_of_all_classes_of_two_rows_add_up_to_one(prior):
    numbers = itertools.product(range(20), repeat=3)
    total = sum(np.exp(prior.log_probability(from_histories(of_each, 2))) for of_each in numbers)
    assert abs(total - 1.0) < 1e-7  # what is left out has more than 19 columns of one history


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_histories_are_independent_poisson_variables(prior):
    random = np.random.default_rng(0)
    for rows in (1, 3, 4):
        rates = history_rates(prior, rows)
        assert np.isclose(rates.sum(), prior.expected_features(rows), rtol=1e-13)
        for _ in range(5):
            numbers = random.integers(0, 3, len(rates))
            matrix = from_histories(numbers, rows)
            wanted = stats.poisson.logpmf(numbers, rates).sum()
            assert np.isclose(prior.log_probability(matrix), wanted, rtol=0, atol=1e-10)
            shuffled = random.permutation(random.permutation(matrix), axis=1)  # rows and columns are exchangeable
            padded = np.concatenate([shuffled, np.zeros((rows, 2))], axis=1)
            assert np.isclose(prior.log_probability(padded), wanted, rtol=0, atol=1e-10)


def test_concentration_one_is_the_process_of_one_parameter():
    matrix = np.random.default_rng(1).random((6, 5)) < 0.4
    matrix[0] = True
    m, n, mass = matrix.sum(axis=0), 6, 2.5
    repeats = np.unique(matrix, axis=1, return_counts=True)[1]
    wanted = 5 * np.log(mass) - mass * sum(1.0 / j for j in range(1, 7)) - gammaln(repeats + 1.0).sum()
    wanted += (gammaln(n - m + 1.0) + gammaln(m) - gammaln(n + 1.0)).sum()
    assert np.isclose(IndianBuffet(mass, 1.0).log_probability(matrix), wanted, rtol=1e-13)
    assert np.isclose(IndianBuffet(mass).expected_features(10), mass * 2.9289682539682538, rtol=1e-14)


def distinct(matrix):
    return len(np.unique(matrix, axis=1).T) == matrix.shape[1]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_conditionals_are_ratios_of_probabilities(prior):
    random, tested = np.random.default_rng(2), 0
    while tested < 20:
        matrix = (random.random((6, 3)) < 0.5).astype(int)
        row, column = random.integers(6), random.integers(3)
        on, off = matrix.copy(), matrix.copy()
        on[row, column], off[row, column] = 1, 0
        if not (distinct(on) and distinct(off) and on.any(axis=0).all() and off.any(axis=0).all()):
            continue
        odds = np.exp(prior.log_probability(on) - prior.log_probability(off))
        found = prior.conditional(off[:, column].sum(), 6)
        assert np.isclose(odds / (1.0 + odds), found, rtol=1e-12)
        alone = np.zeros((6, 1), dtype=int)
        alone[row] = 1
        had = int((matrix[row] * (matrix.sum(axis=0) == 1)).sum())
        more = prior.log_probability(np.concatenate([matrix, alone], axis=1)) - prior.log_probability(matrix)
        assert np.isclose(np.exp(more), prior.new_feature_rate(6) / (had + 1), rtol=1e-12)
        tested += 1


def test_conditionals_of_the_finite_prior_are_ratios_of_probabilities():
    prior, random = BetaBernoulli(1.4, 4), np.random.default_rng(3)
    for _ in range(20):
        off = (random.random((5, 4)) < 0.5).astype(int)
        row, column = random.integers(5), random.integers(4)
        off[row, column] = 0
        on = off.copy()
        on[row, column] = 1
        odds = np.exp(prior.log_matrix_probability(on) - prior.log_matrix_probability(off))
        assert np.isclose(odds / (1.0 + odds), prior.conditional(off[:, column].sum(), 5), rtol=1e-12)


@pytest.mark.parametrize("prior", [IndianBuffet(2.0), IndianBuffet(2.0, 3.0)], ids=str)
def test_a_gibbs_sampler_of_the_conditionals_leaves_the_prior(prior):
    """Row by row: features that others have by their conditional, and a new Poisson number of those that none has."""
    random, rows = np.random.default_rng(0), 10
    matrix, features, ones = np.zeros((rows, 0), dtype=bool), [], []
    for sweep in range(3200):
        for row in range(rows):
            others = matrix.sum(axis=0) - matrix[row]
            matrix, others = matrix[:, others > 0], others[others > 0]
            matrix[row] = random.random(len(others)) < prior.conditional(others, rows)
            alone = np.zeros((rows, random.poisson(prior.new_feature_rate(rows))), dtype=bool)
            alone[row] = True
            matrix = np.concatenate([matrix, alone], axis=1)
        if sweep >= 200:
            features.append(matrix.shape[1])
            ones.append(matrix.sum())
    for found, wanted in ((features, prior.expected_features(rows)), (ones, prior.expected_ones(rows))):
        batches = np.reshape(found, (30, 100)).mean(axis=1)
        assert abs(batches.mean() - wanted) < 4.0 * batches.std(ddof=1) / np.sqrt(30)


def test_left_ordered_form():
    matrix = np.array([[0, 1, 0, 1, 0], [1, 0, 0, 1, 0], [0, 1, 0, 1, 1]])
    found = left_ordered(matrix)
    assert found.matrix.astype(int).tolist() == [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0]]
    assert (found.matrix == matrix[:, found.order]).all()
    assert (found.matrix[:, found.inverse] == matrix).all()
    random = np.random.default_rng(4)
    for rows in (7, 8, 9, 40):
        matrix = random.random((rows, 12)) < 0.5
        values = left_ordered(matrix).matrix.T.astype(object) @ [2**i for i in range(rows - 1, -1, -1)]
        assert list(values) == sorted(values, reverse=True)
        assert (left_ordered(matrix[:, ::-1]).matrix == left_ordered(matrix).matrix).all()


def test_many_rows_and_columns():
    random = np.random.default_rng(5)
    matrix = random.random((100_000, 200)) < random.beta(0.2, 1.0, 200)
    matrix[:, 100:] = matrix[:, :100]  # every history twice
    found = left_ordered(matrix)
    assert (found.matrix[:, found.inverse] == matrix).all()
    assert (found.matrix[:, 0::2] == found.matrix[:, 1::2]).all()
    prior, m = IndianBuffet(20.0, 1.5), matrix.sum(axis=0)
    m = m[m > 0]
    orders = prior.log_columns(m, 100_000) - prior.log_probability(matrix)
    once = matrix[:, :100].T[matrix[:, :100].any(axis=0)]
    assert len(np.unique(np.packbits(once, axis=1), axis=0)) == len(once)
    assert abs(orders - len(once) * np.log(2.0)) < 1e-8
    assert np.isfinite(BetaBernoulli(20.0, 1000).log_probability(matrix))
    assert np.isclose(harmonic(100_000), np.log(100_000) + np.euler_gamma + 0.5e-5, rtol=1e-12)
    assert np.isclose(harmonic(10, 1e12), 10.0, rtol=1e-11)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "two", None])
def test_parameters_out_of_range_are_refused(value):
    with pytest.raises(ModelError, match="mass is a finite number > 0"):
        IndianBuffet(value)
    with pytest.raises(ModelError, match="concentration is a finite number > 0"):
        IndianBuffet(1.0, value)
    with pytest.raises(ModelError, match="mass is a finite number > 0"):
        BetaBernoulli(value, 3)
    with pytest.raises(DataError, match="number of features is a whole number >= 1"):
        BetaBernoulli(1.0, value)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, np.nan]], "Missing entries"),
        ([[0, 2]], "found 2"),
        ([[0.5]], r"found 0\.5"),
        ([["yes"]], "not numbers"),
        ([1, 0], "two axes"),
        (np.zeros((0, 3)), "at least one row"),
    ],
)
def test_matrices_that_are_not_binary_are_refused(matrix, message):
    for ask in (IndianBuffet(1.0).log_probability, BetaBernoulli(1.0, 3).log_probability, left_ordered):
        with pytest.raises(DataError, match=message):
            ask(matrix)


def test_requests_that_make_no_sense_are_refused():
    finite, prior = BetaBernoulli(1.0, 2), IndianBuffet(1.0)
    with pytest.raises(DataError, match="has 2 columns; found 3"):
        finite.log_matrix_probability(np.zeros((2, 3)))
    with pytest.raises(DataError, match="found 3 columns that are not empty"):
        finite.log_probability(np.ones((2, 3)))
    assert np.isfinite(finite.log_probability(np.zeros((2, 3))))
    for each in (prior, finite):
        with pytest.raises(DataError, match="from 0 to 3 ones"):
            each.conditional([4], 4)
        with pytest.raises(DataError, match="whole number >= 1"):
            each.expected_features(0)
    with pytest.raises(DataError, match="from 1 to 4 ones"):
        prior.log_columns([0, 1], 4)
    with pytest.raises(DataError, match="whole number >= 1"):
        prior.new_feature_rate(2.5)
