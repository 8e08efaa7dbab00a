"""Imbalance of binary trees, against enumeration and the printed table."""

import jax
import numpy as np
import pytest
from enumeration import log_probability, structures
from imbalance import (
    colless,
    expected_branch_points,
    expected_imbalance,
    log_split,
    unbalanced,
)
from scipy.special import gamma

from cavity.factors.errors import DataError, ModelError
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.sample import sample_tree
from cavity.models.trees.tree import Tree

TABLE = [
    (-20, 0.0307, 0.566),
    (-10, 0.0346, 0.572),
    (-5, 0.0411, 0.581),
    (-2, 0.0557, 0.599),
    (-1, 0.0721, 0.616),
    (-0.5, 0.0908, 0.632),
    (0, 0.1328, 0.660),
    (0.25, 0.1775, 0.686),
    (0.5, 0.2639, 0.730),
    (0.75, 0.4574, 0.813),
    (0.9, 0.7057, 0.905),
    (0.99, 0.9632, 0.989),
]


@pytest.mark.parametrize(("discount", "first", "second"), TABLE)
def test_expectations_of_a_hundred_leaves(discount, first, second):
    found = expected_imbalance(discount, 100)
    assert abs(found[0] - first) < 0.6e-4
    assert abs(found[1] - second) < 0.6e-3


@pytest.mark.parametrize("discount", [-3.0, 0.0, 0.4, 0.9])
@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_expectations_by_enumeration(discount, n):
    prior = TreePrior(-2.0 * discount, discount)
    every = structures(n, 2)
    probability = np.exp([log_probability(tree, prior) for tree in every])
    found = expected_imbalance(discount, n)
    assert found[0] == pytest.approx(probability @ [colless(tree) for tree in every], rel=1e-12)
    assert found[1] == pytest.approx(probability @ [unbalanced(tree) for tree in every], rel=1e-12)


def test_extreme_trees():
    n = 8
    parent = np.concatenate([[n, *range(n, 2 * n - 1)], np.arange(n + 1, 2 * n - 1), [-1]])
    caterpillar = Tree(parent, np.concatenate([np.full(n, np.inf), np.arange(n - 1, 0, -1.0)]))
    assert colless(caterpillar) == 1.0
    assert unbalanced(caterpillar) == 1.0
    even = Tree(
        np.array([8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, -1]),
        np.concatenate([np.full(8, np.inf), [3.0] * 4, [2.0] * 2, [1.0]]),
    )
    assert colless(even) == 0.0
    assert unbalanced(even) == 0.0


def test_both_grow_with_the_discount():
    values = np.array([expected_imbalance(discount, 50) for discount in (-10, -1, 0, 0.5, 0.9, 0.99)])
    assert (np.diff(values, axis=0) > 0.0).all()


@pytest.mark.parametrize("m", [2, 3, 7, 20])
def test_splits(m):
    left = np.arange(1, m)
    uniform_in_log = 1.0 / (left * (m - left))  # the Dirichlet diffusion tree's
    np.testing.assert_allclose(np.exp(log_split(0.0, m)), uniform_in_log / uniform_in_log.sum())
    weight = gamma(left - 0.5) * gamma(m - left - 0.5) / gamma(left + 1.0) / gamma(m - left + 1.0)
    np.testing.assert_allclose(np.exp(log_split(0.5, m)), weight / weight.sum())


@pytest.mark.parametrize("parameters", [(0.0, 0.0), (1.0, 0.2), (-0.5, 0.3), (6.0, -2.0), (-1.2, 0.6), (4.0, -2.0)])
def test_numbers_of_branch_points_by_enumeration(parameters):
    prior = TreePrior(*parameters)
    for n in range(1, 6):
        every = structures(n, prior.most_children)
        wanted = sum(np.exp(log_probability(tree, prior)) * (tree.n_nodes - n) for tree in every)
        assert expected_branch_points(prior, n) == pytest.approx(wanted, rel=1e-12)


def test_bad_requests_are_refused():
    with pytest.raises(DataError, match="binary trees"):
        colless(Tree(np.array([3, 3, 3, -1]), np.array([np.inf] * 3 + [1.0])))
    for statistic in (colless, unbalanced):
        with pytest.raises(DataError, match="three leaves"):
            statistic(sample_tree(TreePrior(), 2, jax.random.key(0)))
    with pytest.raises(DataError, match="three leaves"):
        expected_imbalance(0.0, 2)
    with pytest.raises(ModelError, match="below 1"):
        expected_imbalance(1.0, 10)
