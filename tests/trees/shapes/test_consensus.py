"""Clade probabilities and consensus trees."""

import jax
import numpy as np
import pytest
from enumeration import log_probability, structures

from cavity.factors.errors import DataError
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.consensus import clade_probabilities, consensus
from cavity.models.trees.shapes.sample import sample_tree
from cavity.models.trees.tree import Tree

INF = np.inf
LEFT = Tree(np.array([3, 3, 4, 4, -1]), np.array([INF, INF, INF, 2.0, 1.0]))  # ((0, 1), 2)
LATER = Tree(np.array([3, 3, 4, 4, -1]), np.array([INF, INF, INF, 3.0, 0.5]))
RIGHT = Tree(np.array([4, 3, 3, 4, -1]), np.array([INF, INF, INF, 2.5, 0.7]))  # (0, (1, 2))


def test_one_tree_is_its_own_consensus():
    tree = sample_tree(TreePrior(1.0, 0.2), 40, jax.random.key(0))
    found = consensus([tree])
    assert found.tree.structure == tree.structure
    assert (found.support == 1.0).all()
    wanted = dict(zip(tree.clades, tree.depth[40:], strict=True))
    np.testing.assert_allclose(found.tree.depth[40:], [wanted[c] for c in found.tree.clades], rtol=1e-12)


def test_probabilities_and_mean_times_by_hand():
    weights = [1.0, 2.0, 1.0]
    clades = clade_probabilities([LEFT, LATER, RIGHT], weights)
    assert next(iter(clades)) == frozenset({0, 1, 2})
    assert clades == pytest.approx({frozenset({0, 1, 2}): 1.0, frozenset({0, 1}): 0.75, frozenset({1, 2}): 0.25})
    tree, support = consensus([LEFT, LATER, RIGHT], weights)
    assert tree.structure == LEFT.structure
    pair, top = tree.parent[0], tree.top
    assert support[[pair, top]] == pytest.approx([0.75, 1.0])
    assert tree.time[pair] == pytest.approx((LEFT.time[3] + 2.0 * LATER.time[3]) / 3.0)
    assert tree.time[top] == pytest.approx((LEFT.time[4] + 2.0 * LATER.time[4] + RIGHT.time[4]) / 4.0)


def test_without_majority_there_is_a_star():
    tree, support = consensus([LEFT, RIGHT])
    assert tree.n_nodes == 4
    assert support == pytest.approx(1.0)
    assert consensus([LEFT, LEFT, RIGHT], threshold=0.7).tree.n_nodes == 4


def test_a_child_is_not_before_its_parent():
    early = Tree(LEFT.parent, np.array([INF, INF, INF, 0.2, 0.1]))
    late = Tree(RIGHT.parent, np.array([INF, INF, INF, 6.0, 5.0]))
    tree, _ = consensus([early, early, late, late, late], [2, 2, 1, 1, 1])  # the pair is early where it exists
    assert tree.structure == LEFT.structure
    assert tree.depth[tree.parent[0]] >= tree.depth[tree.top]


def test_draws_of_the_prior_have_its_clade_probabilities():
    prior = TreePrior(0.5, 0.2)
    exact = {}
    for tree in structures(4):
        for clade in tree.clades:
            exact[clade] = exact.get(clade, 0.0) + np.exp(log_probability(tree, prior))
    draws = [sample_tree(prior, 4, jax.random.key(seed)) for seed in range(4000)]
    found = clade_probabilities(draws)
    for clade, wanted in exact.items():
        assert abs(found.get(clade, 0.0) - wanted) < 4.0 * np.sqrt(wanted * (1.0 - wanted) / 4000) + 1e-9


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="at least one"):
        consensus([])
    with pytest.raises(DataError, match="Weights"):
        consensus([LEFT, RIGHT], [1.0, -1.0])
    with pytest.raises(DataError, match="Weights"):
        consensus([LEFT, RIGHT], [0.0, 0.0])
    with pytest.raises(DataError, match="same leaves"):
        consensus([LEFT, RIGHT.renamed("abc")])
    with pytest.raises(DataError, match="threshold"):
        consensus([LEFT], threshold=0.4)
