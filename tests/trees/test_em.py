"""Message passing in EM: its bound, its messages, and its times against the exact evidence."""

import jax
import numpy as np
import pytest
from oracle import log_joint
from small_trees import case, chain_of_depths

import cavity as cv
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.em import em_times, exponents, squares
from cavity.models.trees.jax_kernels import sweep
from cavity.models.trees.likelihoods.leaves import to_leaves
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.likelihoods.times import optimise_times
from cavity.models.trees.prior import TreePrior, log_times, tables
from cavity.models.trees.shapes.arrays import pack
from cavity.models.trees.shapes.sample import sample_tree
from cavity.models.trees.tree import ORIGIN

KNOWN = (1e9, 1e9)  # a prior that knows its parameter is 1


@pytest.mark.parametrize("measure", ["depth", "time"])
@pytest.mark.parametrize("prior", [TreePrior(), TreePrior(1.0, 0.2)])
def test_the_bound_never_falls(prior, measure):
    tree, values, _ = case(1, 12, 4, prior=prior)
    found = em_times(tree, Data(values), prior, measure=measure, iterations=60)
    assert (np.diff(found.bound) > -1e-9).all()
    assert found.bound[-1] > found.bound[0] + 5.0


def test_exponents_are_those_of_the_prior():
    """log_times at rate c is sum log c + (c J - 1) log(1 - t), in the time measure."""
    prior = TreePrior(1.0, 0.2, Divergence(1.7))
    tree = sample_tree(prior, 9, jax.random.key(3))
    depth = tree.depth[9:]
    expected = len(depth) * np.log(1.7) - (1.7 * exponents(tree, prior) - 1.0) @ depth
    assert log_times(tree, prior, "time") == pytest.approx(expected, abs=1e-10)


def test_squares_are_those_of_the_joint_distribution():
    """E |x_v - x_u|^2 from one dense Gaussian over all nodes."""
    _, values, tree = case(2, 6, 3, noise=0.3)
    values[1, 0] = np.nan
    leaves, _ = to_leaves(Data(values), 1.0, 0.3)
    covariance = np.zeros((tree.n_nodes, tree.n_nodes))
    for node in tree.order[::-1]:
        above = tree.parent[node]
        covariance[node] = covariance[:, node] = 0.0 if above == ORIGIN else covariance[above]
        covariance[node, node] = tree.time[node]
    expected = np.zeros(tree.n_nodes)
    for d in range(3):
        seen = np.flatnonzero(~np.isnan(values[:, d]))
        gain = covariance[:, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)] + 0.3 * np.eye(len(seen)))
        mean, spread = gain @ values[seen, d], covariance - gain @ covariance[seen]
        for node, above in enumerate(tree.parent):
            step = mean[node] - (mean[above] if above >= 0 else 0.0)
            own = spread[node, node] + (spread[above, above] - 2.0 * spread[node, above] if above >= 0 else 0.0)
            expected[node] += step**2 + own
    np.testing.assert_allclose(squares(tree, sweep(pack(tree), leaves)), expected, rtol=1e-9)


def test_with_known_hyperparameters_em_climbs_the_exact_joint_density():
    """Its bound is the log joint, its times are those of the direct optimisation."""
    tree, values, _ = case(4, 6, 20, noise=0.05)
    prior = TreePrior()
    found = em_times(tree, Data(values), prior, precision=KNOWN, rate=KNOWN, noise=0.05, iterations=3000)
    leaves, _ = to_leaves(Data(values), 1.0, 0.05)
    assert found.bound[-1] == pytest.approx(log_joint(found.tree, leaves, prior), abs=1e-4)
    best = optimise_times(pack(tree), leaves, tables(prior, 6), tolerance=1e-8)
    assert found.bound[-1] == pytest.approx(best.log_joint, abs=1e-2)


def test_posteriors_of_precision_and_rate_given_the_times():
    """Both conjugate: the shapes count branches and branch points, the rates are at their fixed points."""
    tree, values, _ = case(5, 8, 6)
    found = em_times(tree, Data(values), iterations=2000)
    assert found.converged
    assert found.precision.shape == pytest.approx(1.0 + 0.5 * 6 * tree.n_nodes)
    assert found.rate.shape == pytest.approx(1.0 + 7)
    assert found.rate.rate == pytest.approx(1.0 + exponents(tree, TreePrior()) @ found.tree.depth[8:], rel=1e-3)
    leaves, _ = to_leaves(Data(values), 1.0 / found.precision.mean)
    total = squares(found.tree, sweep(pack(found.tree), leaves)) / found.precision.mean
    assert found.precision.rate == pytest.approx(1.0 + 0.5 * (total / found.tree.length).sum(), rel=1e-3)


@pytest.mark.parametrize("leaves", [3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_times_agree_with_the_posterior_of_small_trees(leaves):
    """With 40 columns: each depth within 1.5 posterior sds of its mean, by Metropolis."""
    tree, values, _ = case(10 + leaves, leaves, 40)
    prior = TreePrior()
    found = em_times(tree, Data(values), prior, precision=KNOWN, rate=KNOWN, iterations=2000)
    depths = chain_of_depths(found.tree, values, prior, 2000, 0.15)[200:]
    mean, sd = depths.mean(axis=0), depths.std(axis=0)
    assert (np.abs(found.tree.depth[leaves:] - mean) < 1.5 * sd).all()


def test_binary_leaves_run_with_their_sites():
    random = np.random.default_rng(0)
    tree, values, _ = case(6, 8, 30)
    data = Data((2.0 * values > random.normal(size=values.shape)) * 1.0, binary=True)
    found = em_times(tree, data, iterations=40)
    assert found.bound[-1] > found.bound[0]
    assert found.tree.time[8:].max() < 0.99


def test_what_em_does_not_do():
    tree, values, _ = case(1, 5, 2)
    with pytest.raises(cv.DataError, match="one of depth, time"):
        em_times(tree, Data(values), measure="log")
    with pytest.raises(cv.DataError, match="5 leaves, the data have 4 rows"):
        em_times(tree, Data(values[:4]))
    with pytest.raises(cv.UnsupportedError, match="further terms"):
        em_times(tree, Data(values), TreePrior(divergence=Divergence(1.0, 1.0)))
