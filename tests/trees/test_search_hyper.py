"""Hyperparameters that a search learns on data from a prior, against what a long chain says of the same data."""

import jax
import pytest

from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.search import search_trees
from cavity.models.trees.shapes.sample import sample_data


@pytest.mark.parametrize("seed", [0, 1])
def test_concentration_and_discount_do_not_run_away(seed):
    """By the best structure alone, flatter trees and larger discounts would follow each other, to 0.7 and beyond."""
    pytest.importorskip("numba")
    _, rows = sample_data(TreePrior(0.5), 100, 5, jax.random.key(7))
    learn = {"variance", "rate", "concentration", "discount"}
    found = search_trees(
        Data(rows), TreePrior(1.0, 0.1), key=jax.random.key(seed), learn=learn, backend="numba"
    ).best.hyper
    assert 0.2 < found.prior.discount < 0.68  # the chain: 0.53, standard deviation 0.12
    assert 0.5 < found.prior.concentration < 2.5  # 1.37, 0.57
    assert 0.3 < found.prior.divergence.rate < 2.5  # 1.02, 0.69
    assert 0.6 < found.variance[0] < 1.6  # 1.00, 0.18
