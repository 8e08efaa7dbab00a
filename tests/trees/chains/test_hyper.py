"""Hyperparameters given a tree: closed forms and maxima against the dense density."""

import dataclasses

import numpy as np
import pytest
from oracle import dense_evidence, random_tree

from cavity.factors.errors import ModelError
from cavity.models.trees.backend import kernels
from cavity.models.trees.chains.hyper import Hyperpriors, best_rate, best_structure, best_variance, structure_density
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior, log_prior, tables
from cavity.models.trees.shapes.arrays import Leaves, pack

PRIOR = TreePrior(0.8, 0.2, Divergence(0.9))


def test_the_density_of_a_structure_is_that_of_the_prior():
    random = np.random.default_rng(0)
    for n, many in ((1, 0.0), (2, 0.0), (9, 0.4)):
        tree = random_tree(random, n, many)
        for prior in (PRIOR, TreePrior(0.0, 0.0) if not many else TreePrior(2.0, 0.0)):
            assert structure_density(pack(tree), prior.divergence)(prior) == pytest.approx(log_prior(tree, prior))


def test_the_rate_is_a_maximum():
    tree = random_tree(np.random.default_rng(1), 12, 0.2)
    found = best_rate(pack(tree), PRIOR, (2.0, 3.0)).divergence.rate

    def density(rate):
        return (
            log_prior(tree, dataclasses.replace(PRIOR, divergence=Divergence(rate))) + 2.0 * np.log(rate) - 3.0 * rate
        )

    assert all(density(found) > density(found * step) for step in (0.99, 1.01))


def test_concentration_and_discount_are_a_maximum():
    tree, priors = random_tree(np.random.default_rng(2), 15, 0.4), Hyperpriors()
    found = best_structure(pack(tree), PRIOR, priors, frozenset(["concentration", "discount"]))

    def density(concentration, discount):
        prior = dataclasses.replace(PRIOR, concentration=concentration, discount=discount)
        slope = 2.0 * np.log(concentration) - 0.5 * concentration + np.log(discount) + np.log1p(-discount)
        return log_prior(tree, prior) + slope

    best = density(found.concentration, found.discount)
    for step in (0.97, 1.03):
        assert best > density(found.concentration * step, found.discount)
        assert best > density(found.concentration, found.discount * step)


@pytest.mark.parametrize("noise", [0.0, 0.3], ids=["exact", "noisy"])
@pytest.mark.parametrize("shared", [True, False], ids=["one for all", "one for each"])
def test_the_variance_is_a_maximum(shared, noise):
    random = np.random.default_rng(3)
    tree, data = random_tree(random, 10), random.normal(size=(10, 2)) * [0.5, 2.0]
    arrays, table, engine = pack(tree), tables(PRIOR, 10), kernels("jax")

    def leaves(variance):
        return Leaves(data / np.sqrt(variance), np.broadcast_to(noise / variance, (10, 2)).copy())

    def density(variance):
        each = variance[:1] if shared else variance
        evidence = dense_evidence(tree, leaves(variance)) - 5.0 * np.log(variance).sum()
        return evidence - (1.5 * np.log(each) + 0.7 / each).sum()

    found = np.ones(2)
    for _ in range(3):
        found = best_variance(arrays, leaves(found), table, found, (1.5, 0.7), engine, shared=shared)
    for step in (0.97, 1.03):
        for which in ([1, 1], [1, 0], [0, 1]) if not shared else ([1, 1],):
            assert density(found) > density(found * np.where(which, step, 1.0))


def test_what_is_refused():
    with pytest.raises(ModelError, match="precision takes two positive numbers"):
        Hyperpriors(precision=(1.0, -1.0))
    with pytest.raises(ModelError, match=r"rate / \(1 - t\) only"):
        best_rate(
            pack(random_tree(np.random.default_rng(0), 3)), TreePrior(divergence=Divergence(1.0, 1.0)), (1.0, 1.0)
        )
