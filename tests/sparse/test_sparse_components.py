"""Sparse principal components: optimality, ordinary components at no penalty, and what penalties ask for."""

import numpy as np
import pytest

from cavity.factors.errors import DataError, ModelError
from cavity.models import sparse_components
from cavity.models.sparse.sparse_components import _alternated, _Problem


def drawn(rows=30, samples=50, factors=3, seed=0):
    random = np.random.default_rng(seed)
    loading = random.normal(size=(rows, factors)) * (random.random((rows, factors)) < 0.25)
    loading *= np.arange(factors, 0, -1)
    return loading, 2.0 + loading @ random.normal(size=(factors, samples)) + 0.3 * random.normal(size=(rows, samples))


@pytest.mark.parametrize(("ridge", "shape"), [(np.inf, (12, 40)), (np.inf, (40, 12)), (2.0, (12, 40))])
def test_without_penalty_they_are_the_ordinary_ones(ridge, shape):
    values = drawn(*shape)[1]
    found = sparse_components(values, 3, penalty=0.0, ridge=ridge)
    left = np.linalg.svd(values - values.mean(axis=1, keepdims=True))[0][:, :3]
    assert np.allclose(found.loading @ found.loading.T, left @ left.T, atol=1e-5)
    assert np.allclose(found.explained, found.ordinary, atol=1e-6)
    again = found.mean[:, None] + found.loading @ found.scores
    assert np.allclose(again - values, (left @ left.T - np.eye(shape[0])) @ (values - found.mean[:, None]), atol=1e-4)


@pytest.mark.parametrize("ridge", [np.inf, 2.0])
def test_the_objective_never_rises_and_no_step_lowers_it(ridge):
    values = drawn(15, 40)[1]
    penalty = np.array([40.0, 20.0, 5.0])
    found = sparse_components(values, 3, penalty=penalty, ridge=ridge)
    assert (np.diff(found.objective) <= 1e-10 * np.abs(found.objective[-1])).all()
    assert np.array_equal(found.penalty, penalty)
    centred = values - found.mean[:, None]
    gram = centred @ centred.T
    inside = np.eye(15) if np.isinf(ridge) else gram + ridge * np.eye(15)

    def objective(weights):
        """With the best rotation."""
        turned = np.linalg.svd(gram @ weights, full_matrices=False)[1].sum()
        return np.sum(weights * (inside @ weights)) - 2.0 * turned + np.abs(weights).sum(axis=0) @ penalty

    problem = _Problem(centred, ridge, None if np.isinf(ridge) else gram)
    turn = np.linalg.svd(centred)[0][:, :3]
    weights, path = _alternated(problem, turn, turn, penalty, 2000, 1e-14)
    least, size, random = objective(weights), np.abs(weights).max(), np.random.default_rng(0)
    assert least == pytest.approx(path[-1], rel=1e-7)
    for _ in range(300):
        one = np.where(random.random(weights.shape) < 0.1, random.normal(size=weights.shape), 0.0)
        assert objective(weights + 10.0 ** random.uniform(-4, -1) * size * one) >= least - 1e-8 * abs(least)


def test_each_component_has_its_own_penalty_and_its_share():
    loading, values = drawn(40, 80, 3, 1)
    found = sparse_components(values, 3, share=0.9)
    assert len(set(found.penalty)) == 3
    assert (found.penalty > 0.0).all()
    ratio = found.explained / found.ordinary
    assert (ratio > 0.85).all()
    assert (ratio < 1.05).all()
    closer = sparse_components(values, 3, share=0.98)
    assert (closer.loading == 0.0).sum() < (found.loading == 0.0).sum()
    assert (found.loading[(loading == 0.0).all(axis=1)] == 0.0).mean() > 0.5
    assert np.allclose(np.linalg.norm(found.loading, axis=0), 1.0)


def test_a_large_penalty_of_one_component_leaves_nothing_of_it_alone():
    values = drawn()[1]
    found = sparse_components(values, 3, penalty=[1.0, 1e9, 1.0])
    assert not found.loading[:, 1].any()
    assert found.loading[:, [0, 2]].any(axis=0).all()
    assert found.explained[1] == 0.0
    nothing = sparse_components(values, 2, penalty=1e9)
    assert not nothing.loading.any()
    assert not nothing.explained.any()


def test_units_of_all_values_change_penalties_with_their_squares():
    values = drawn()[1]
    one, other = sparse_components(values, 2), sparse_components(8.0 * values, 2)
    assert np.allclose(other.loading, one.loading, atol=1e-12)
    assert np.allclose(other.penalty, 64.0 * one.penalty, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: sparse_components(np.ones(4), 1), DataError, "two of each"),
        (lambda: sparse_components([[1.0, np.nan], [1.0, 2.0]], 1), DataError, "1 of 4 values are missing"),
        (lambda: sparse_components(drawn()[1], 31), ModelError, "from 1 to 30"),
        (lambda: sparse_components(np.ones((4, 5)), 1), ModelError, "rank 0"),
        (lambda: sparse_components(drawn()[1], 2, penalty=[1.0, 2.0, 3.0]), ModelError, "penalty="),
        (lambda: sparse_components(drawn()[1], 2, penalty=-1.0), ModelError, "penalty="),
        (lambda: sparse_components(drawn()[1], 2, share=0.0), ModelError, "share="),
        (lambda: sparse_components(drawn()[1], 2, ridge=0.0), ModelError, "ridge="),
        (lambda: sparse_components(drawn()[1], 2, max_iterations=0), ModelError, "max_iterations=0"),
        (lambda: sparse_components(drawn()[1], 2, tolerance="a"), ModelError, "tolerance="),
    ],
)
def test_what_does_not_fit_is_said(call, error, said):
    with pytest.raises(error, match=said):
        call()
