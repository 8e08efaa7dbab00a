"""Errors and alignment of loadings: nothing depends on the order, the sign or, where asked, the scale of factors."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cavity as cv
from cavity.engine.answers.loadings import (
    Match,
    aligned,
    block_order,
    canonical,
    explained,
    fraction_of_zeros,
    match_factors,
    reconstruction_error,
    summarise_loadings,
    support_scores,
    unit_factors,
)
from cavity.factors.errors import DataError


@st.composite
def problems(draw, least=1):
    """A sparse loading with factors, a shuffle of them, and signs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, factors = draw(st.integers(1, 8)), draw(st.integers(least, 5))
    loading = rng.normal(size=(rows, factors)) * (rng.random((rows, factors)) < 0.6)
    return loading, rng.normal(size=(factors, 7)), rng.permutation(factors), rng.choice([-1.0, 1.0], factors), rng


def by_hand(truth, estimate, coefficients):
    """The definition, a loop for each of its signs."""
    total = 0.0
    for column in truth.T:
        total += min(np.sum((column - c * other) ** 2) for other in estimate.T for c in coefficients(column, other))
    return total / truth.size


@given(problems(), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_the_error_is_its_definition(problem, factors):
    truth, _, _, _, rng = problem
    estimate = rng.normal(size=(len(truth), factors))
    expected = by_hand(truth, estimate, lambda column, other: (1.0, -1.0))
    assert reconstruction_error(truth, estimate) == pytest.approx(expected, abs=1e-12)
    best = by_hand(truth, estimate, lambda column, other: (column @ other / (other @ other),))
    assert reconstruction_error(truth, estimate, scale="best") == pytest.approx(best, abs=1e-12)
    assert best <= expected + 1e-12


@given(problems(), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_the_error_of_pairs_is_the_least_over_all_assignments(problem, factors):
    truth, _, _, _, rng = problem
    estimate = rng.normal(size=(len(truth), factors))
    cost = np.minimum(*(np.sum((truth[:, :, None] - c * estimate[:, None]) ** 2, axis=0) for c in (1.0, -1.0)))
    missing = np.sum(truth**2, axis=0)
    k = truth.shape[1]
    if factors >= k:
        sums = [cost[range(k), list(one)].sum() for one in itertools.permutations(range(factors), k)]
    else:
        sums = [
            cost[list(one), range(factors)].sum() + np.delete(missing, one).sum()
            for one in itertools.permutations(range(k), factors)
        ]
    assert reconstruction_error(truth, estimate, one_to_one=True) == pytest.approx(min(sums) / truth.size, abs=1e-12)


@given(problems())
@settings(max_examples=60, deadline=None)
def test_order_signs_and_scale_do_not_matter(problem):
    loading, factor, order, sign, rng = problem
    moved = loading[:, order] * sign
    assert reconstruction_error(loading, moved) == pytest.approx(0.0, abs=1e-12)
    assert reconstruction_error(loading, moved, one_to_one=True) == pytest.approx(0.0, abs=1e-12)
    scale = np.exp(rng.normal(size=len(order)))
    assert reconstruction_error(loading, moved * scale, scale="best") == pytest.approx(0.0, abs=1e-12)
    one, other = unit_factors(loading, factor), unit_factors(moved * scale, factor[order] * (sign / scale)[:, None])
    assert reconstruction_error(one.loading, other.loading) == pytest.approx(0.0, abs=1e-12)
    assert np.allclose(np.mean(one.factor**2, axis=1), 1.0)
    assert np.allclose(one.loading @ one.factor, loading @ factor)


def test_extra_factors_cost_nothing_and_missing_ones_their_size():
    truth = np.eye(4)[:, :2] * 3.0
    assert reconstruction_error(truth, np.c_[truth, np.ones((4, 5))]) == 0.0
    assert reconstruction_error(truth, np.empty((4, 0))) == pytest.approx(18.0 / 8.0)
    assert reconstruction_error(truth, truth[:, :1], one_to_one=True) == pytest.approx(9.0 / 8.0)
    assert reconstruction_error(truth, truth[:, :1], scale="best") == pytest.approx(9.0 / 8.0)
    assert reconstruction_error(truth, truth[:, :1]) == pytest.approx(18.0 / 8.0)  # the nearest is orthogonal


@given(problems(least=0))
@settings(max_examples=60, deadline=None)
def test_the_canonical_order_is_one_for_all_equivalent_factorisations(problem):
    loading, factor, order, sign, _ = problem
    one, other = canonical(loading, factor), canonical(loading[:, order] * sign, factor[order] * sign[:, None])
    found = np.any(one.loading != 0.0, axis=0)  # columns of zeros explain nothing: their order is free
    assert np.allclose(one.loading, other.loading)
    assert np.allclose(one.factor[found], other.factor[found])
    assert np.allclose(one.loading @ one.factor, loading @ factor)
    shares = explained(*one)
    assert np.all(np.diff(shares) <= 0.0)
    assert np.allclose(np.sort(shares), np.sort(explained(loading, factor)))
    assert all(column[np.abs(column).argmax()] >= 0.0 for column in one.loading.T)


def test_what_factors_explain_is_the_mean_square_of_their_part():
    rng = np.random.default_rng(0)
    loading, factor = rng.normal(size=(5, 3)), rng.normal(size=(3, 40))
    parts = [np.mean(np.sum(np.outer(loading[:, k], factor[k]) ** 2, axis=0)) for k in range(3)]
    assert np.allclose(explained(loading, factor), parts)


@given(problems(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_a_shuffled_loading_with_noise_columns_is_matched_with_itself(problem, extra):
    loading, factor, order, sign, _ = problem
    others = np.r_[np.ones((len(loading), extra)), np.zeros((len(order), extra))]
    loading = np.r_[loading, np.eye(len(order))]  # so that no column is a multiple of another
    shuffled = np.c_[loading[:, order] * sign, others]
    match = match_factors(loading, shuffled)
    assert np.array_equal(match.index, np.argsort(order))
    assert np.array_equal(match.sign, sign[np.argsort(order)])
    back = aligned(match, shuffled, np.r_[factor[order] * sign[:, None], np.ones((extra, 7))])
    assert np.allclose(back.loading, loading)
    assert np.allclose(back.factor, factor)
    assert np.allclose(match.correlation, 1.0)


def test_a_factor_without_a_partner_is_missing():
    reference = np.eye(4)[:, :3]
    match = match_factors(reference, np.c_[np.zeros(4), -reference[:, 2], [0.1, 0.0, 0.0, 1.0]], least=0.3)
    assert match.index.tolist() == [-1, -1, 1]
    assert match.sign.tolist() == [0.0, 0.0, -1.0]
    assert match.correlation.tolist() == [0.0, 0.0, 1.0]
    back = aligned(match, np.c_[np.ones(4), 2.0 * np.ones(4)], np.ones((2, 3)))
    assert back.loading.T.tolist() == [[0.0] * 4, [0.0] * 4, [-2.0] * 4]
    assert back.factor.tolist() == [[0.0] * 3, [0.0] * 3, [-1.0] * 3]


def draws_of(truth, rng, n=40):
    """Noisy copies of a sparse truth, shuffled, with flipped signs, now and then without a factor or with one more."""
    draws, kept = [], []
    for i in range(n):
        here = np.arange(truth.shape[1])
        if i % 4 == 1:
            here = np.delete(here, 1)
        loading = truth[:, here] + 0.05 * rng.normal(size=(len(truth), len(here))) * (truth[:, here] != 0.0)
        if i % 5 == 2:
            loading = np.c_[loading, rng.normal(size=len(truth)) * (np.arange(len(truth)) >= 27)]
        order = rng.permutation(loading.shape[1])
        draws.append(loading[:, order] * rng.choice([-1.0, 1.0], len(order)))
        kept.append(here)
    return draws, kept


def blocks():
    truth = np.zeros((30, 3))
    truth[:12, 0], truth[10:20, 1], truth[18:26, 2] = 1.0, -0.8, 0.6
    return truth


def test_draws_of_different_numbers_of_factors_are_summarised():
    truth, rng = blocks(), np.random.default_rng(1)
    draws, _ = draws_of(truth, rng)
    found = summarise_loadings(draws)
    assert found.mean.shape == truth.shape
    presence = np.array([1.0, 0.75, 1.0])  # a factor that a draw lacks counts as inactive
    sign = np.array([1.0, -1.0, 1.0])
    assert np.allclose(found.presence, presence)
    assert np.allclose(found.activity, (truth != 0.0) * presence)
    assert np.allclose(found.mean, truth * sign * presence, atol=0.05)
    assert found.unmatched == pytest.approx(8 / 40)
    spread = np.sqrt(presence * (1.0 - presence)) * np.abs(truth)
    assert np.allclose(found.deviation[:, 1], spread[:, 1], atol=0.05)
    assert np.all(np.abs(found.deviation[truth[:, 0] != 0, 0] - 0.05) < 0.03)


def test_a_reference_keeps_its_order_and_its_signs():
    truth, rng = blocks()[:, ::-1], np.random.default_rng(2)
    draws, _ = draws_of(truth, rng)
    found = summarise_loadings(draws, truth)
    assert np.all(np.sum(found.mean * truth, axis=0) > 0.0)
    assert np.allclose(found.mean, truth * found.presence, atol=0.05)
    assert all(np.all(match.index[found.presence == 1.0] >= 0) for match in found.matches)


def test_a_summary_of_nothing_but_empty_draws_is_empty():
    found = summarise_loadings([np.empty((4, 0)), np.ones((4, 1)), np.empty((4, 0))])
    assert found.mean.shape == (4, 0)
    assert found.unmatched == pytest.approx(1 / 3)


def test_scores_of_the_support():
    truth = np.array([[1, 0], [1, 0], [1, 1], [0, 1]])
    assert support_scores(truth, truth[:, ::-1]) == (1.0, 1.0, 1.0)
    extra = np.c_[truth[:, ::-1], [1, 0, 0, 0]]
    assert support_scores(truth, extra) == pytest.approx((5 / 6, 1.0, 10 / 11))
    assert support_scores(truth, truth[:, :1]) == pytest.approx((1.0, 3 / 5, 3 / 4))
    assert support_scores(truth, 0.6 * truth, threshold=0.7)[1:] == (0.0, 0.0)
    assert np.isnan(support_scores(truth, 0.6 * truth, threshold=0.7).precision)
    assert support_scores(-2.0 * truth, 0.6 * truth) == (1.0, 1.0, 1.0)


def test_rows_of_a_factor_stand_together():
    loading = np.array([[0.0, -3.0], [0.0, 0.0], [2.0, 0.0], [-4.0, 1.0], [0.0, 0.5], [3.0, 1.0]])
    assert block_order(loading).tolist() == [5, 2, 3, 4, 0, 1]
    activity = np.where(np.arange(6)[:, None] == 5, [0.1, 1.0], 1.0)  # the last row is of the second factor now
    assert block_order(loading, activity).tolist() == [2, 3, 5, 4, 0, 1]
    assert block_order(np.empty((3, 0))).tolist() == [0, 1, 2]


def test_the_fraction_of_zeros_is_over_all_loadings():
    assert fraction_of_zeros([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0]]) == 0.5
    assert np.isnan(fraction_of_zeros(np.empty((3, 0))))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: reconstruction_error(np.ones((3, 2)), np.ones((2, 3))), "Transpose"),
        (lambda: reconstruction_error(np.ones((3, 2)), np.ones((3, 2)), scale="free"), "scale"),
        (lambda: reconstruction_error(np.ones((3, 0)), np.ones((3, 2))), "none"),
        (lambda: reconstruction_error([[np.nan]], [[1.0]]), "not finite"),
        (lambda: canonical(np.ones(3)), "matrix"),
        (lambda: canonical(np.ones((3, 2)), np.ones((3, 5))), "each of the 2 columns"),
        (lambda: match_factors(np.ones((3, 2)), np.ones((3, 2)), least=1.0), r"\[0, 1\)"),
        (lambda: block_order(np.ones((3, 2)), np.ones((3, 1))), "shape of the loading"),
        (lambda: summarise_loadings([]), "warm-up"),
        (lambda: summarise_loadings([np.ones((3, 1)), np.ones((4, 1))]), "each row of the data"),
        (lambda: support_scores(np.ones((3, 2)), 2.0 * np.ones((3, 2))), "loading != 0"),
        (lambda: aligned(Match(np.array([2]), np.ones(1), np.ones(1)), np.ones((3, 2))), "which has 2"),
    ],
)
def test_what_does_not_fit_is_said(call, said):
    with pytest.raises(DataError, match=said):
        call()


def test_known_factors_are_matched_by_their_place():
    """Loadings of the first factor turn away from those of the reference, which another factor comes nearer to."""
    reference = np.array([[1.0, 0.0], [0.2, 0.0], [0.0, 1.0]])
    loading = np.array([[-0.2, 1.0], [-1.0, 0.1], [0.0, 0.5]])
    assert match_factors(reference, loading).index[0] == 1
    match = match_factors(reference, loading, least=0.4, known=1)
    assert match.index.tolist() == [0, 1]
    assert match.sign.tolist() == [-1.0, 1.0]
    large, small = np.array([[3.0], [0.0], [3.0]]), np.array([[0.0], [-0.1], [0.1]])
    draws = [np.hstack([small, large]), np.hstack([-small, -large])]
    assert np.abs(summarise_loadings(draws, known=1).mean) == pytest.approx(np.abs(draws[0]))
    assert np.abs(summarise_loadings(draws).mean) == pytest.approx(np.abs(draws[0][:, ::-1]))


def test_draws_of_a_declared_factor_model_come_into_one_order():
    """Half of the draws of `cv.sample` with other orders and signs say the same when they are aligned."""
    random = np.random.default_rng(5)
    loading = random.normal(size=(12, 2)) * np.array([2.0, 1.0])
    y = loading @ random.normal(size=(2, 60)) + 0.3 * random.normal(size=(12, 60))
    m = cv.Model("factors")
    row, sample, factor = m.plate("row"), m.plate("sample"), m.plate("factor", 2)
    precision = m.random("precision", cv.gamma(1.0, 1.0), plates=factor)
    weight = m.random("loading", cv.gaussian(0.0, precision=precision), plates=(row, factor))
    score = m.random("score", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=sample)
    noise = m.random("noise", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(cv.dot(cv.stack(weight, over=factor), score), precision=noise), plates=(row, sample))
    draws = cv.sample(m, {"y": y}, draws=150, chains=2, progress=False)["loading"].reshape(-1, 12, 2)
    turned = [draw[:, ::-1] * [1.0, -1.0] for draw in draws[::2]] + list(draws[1::2])
    found, same = summarise_loadings(turned), summarise_loadings(list(draws))
    np.testing.assert_allclose(found.deviation, same.deviation, atol=1e-9)
    np.testing.assert_allclose(found.mean, same.mean, atol=1e-9)
    assert (found.presence == 1.0).all()
    assert np.abs(np.mean(turned, axis=0)).sum() < 0.8 * np.abs(found.mean).sum()  # without alignment they average out
