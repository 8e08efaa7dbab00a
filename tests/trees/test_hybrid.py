"""The posterior of the times of a given tree: against grids over the times of small trees, chains, and EM."""

import jax
import numpy as np
import pytest
from oracle import dense_evidence
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma
from small_trees import case, chain_of_depths

import cavity as cv
from cavity.models.diffusion_tree import diffusion_times
from cavity.models.trees.em import em_times, exponents
from cavity.models.trees.hybrid import hybrid
from cavity.models.trees.inputs import structure
from cavity.models.trees.likelihoods.leaves import to_leaves
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.prior import TreePrior, log_prior, log_structure
from cavity.models.trees.shapes.sample import sample_tree
from cavity.models.trees.tree import ORIGIN, Tree

KNOWN = {"variance": (1.0, 1e-6), "rate": (1e6, 1e6)}


@pytest.mark.parametrize("prior", [TreePrior(), TreePrior(0.5, 0.2)])
@pytest.mark.parametrize("leaves", [2, 7])
def test_the_model_has_the_joint_density_of_tree_and_data(prior, leaves):
    """At given depths, variance and rate 1, gaps in cells, trees of any number of children; and the named times."""
    tree = sample_tree(prior, leaves, jax.random.key(leaves))
    values = np.random.default_rng(0).normal(size=(leaves, 3))
    values[1, 0] = np.nan
    given = structure(tree, prior)
    density = cv.log_density(diffusion_times(3, 0.3), {**given, "y": values}, integrate=["location"])
    above = np.where(tree.parent == ORIGIN, 0.0, tree.depth[tree.parent])
    gap = (tree.depth - above)[leaves:]
    leaf_evidence = dense_evidence(tree, to_leaves(Data(values), 1.0, 0.3)[0])
    others = gamma.logpdf(1.0, 1.0) * 2.0 + np.log(given["share"]).sum() - log_structure(tree, prior)
    found = density({"gap": gap, "rate": 1.0, "variance": 1.0})
    assert found == pytest.approx(leaf_evidence + log_prior(tree, prior) + others, abs=1e-9)


def grid_over_times(tree, values, noise, prior, size=60):
    """Both times of a tree of three leaves: their grids, and log density (unit variance, rate given) at every pair."""
    time, table = (np.arange(size) + 0.5) / size, np.full((size, size), -np.inf)
    inner = next(v for v in (3, 4) if v != tree.top)
    for i in range(size):
        for j in range(i + 1, size):
            depth = tree.depth.copy()
            depth[[tree.top, inner]] = -np.log1p(-time[[i, j]])
            at = Tree(tree.parent, depth)
            table[i, j] = dense_gaussian(at, values, noise) + log_prior(at, prior, "time")
    return time, inner, table


def dense_gaussian(tree, values, noise, variance=1.0):
    covariance = variance * tree.shared_time + noise * np.eye(len(values))
    square = np.sum(values * np.linalg.solve(covariance, values))
    return -0.5 * (values.shape[1] * np.linalg.slogdet(2.0 * np.pi * covariance)[1] + square)


@pytest.mark.parametrize(("seed", "columns"), [(20, 5), (21, 10), (23, 40)])
def test_times_and_evidence_of_three_leaves_against_a_grid(seed, columns):
    """Means within .1 posterior sd, sds within 8 %, evidence within .05 nats, of which the grid has some."""
    tree, values, _ = case(seed, 3, columns, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05, **KNOWN)
    assert found.converged
    time, inner, table = grid_over_times(tree, values, 0.05, TreePrior(), 100)
    evidence = logsumexp(table) - 2.0 * np.log(len(time))
    assert found.log_evidence == pytest.approx(evidence, abs=0.05)
    weight = np.exp(table - logsumexp(table))
    for node, share in ((tree.top, weight.sum(axis=1)), (inner, weight.sum(axis=0))):
        mean = share @ time
        sd = np.sqrt(share @ (time - mean) ** 2)
        assert abs(found.time_mean[node] - mean) < 0.1 * sd
        assert found.time_sd[node] == pytest.approx(sd, rel=0.08)


def test_evidence_with_variance_and_rate_integrated():
    """The rate in closed form, the variance and both times on a grid."""
    tree, values, _ = case(24, 3, 20, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05, variance=(1.0, 0.04), rate=(2.0, 2.0))
    assert found.converged
    time, logs = (np.arange(60) + 0.5) / 60, []
    inner = next(v for v in (3, 4) if v != tree.top)
    j = exponents(tree, TreePrior())
    spread = np.linspace(0.3, 1.9, 25)
    prior_of_spread = gamma.logpdf(spread, 25.0, scale=0.04)
    for i, first in enumerate(time):
        for second in time[i + 1 :]:
            depth = tree.depth.copy()
            depth[[tree.top, inner]] = -np.log1p(-np.array([first, second]))
            at = Tree(tree.parent, depth)
            total = 2.0 + j @ depth[3:]  # the rate of the gamma distribution of c, times exp(sum depth)
            prior = 2.0 * np.log(2.0) - gammaln(2.0) + gammaln(4.0) - 4.0 * np.log(total) + depth[3:].sum()
            data = [dense_gaussian(at, values, 0.05, s) for s in spread] + prior_of_spread
            logs.append(prior + logsumexp(data) + np.log(spread[1] - spread[0]))
    exact = logsumexp(logs) - 2.0 * np.log(60.0) + log_structure(tree, TreePrior())
    assert found.log_evidence == pytest.approx(exact, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [4, 5])
def test_times_of_small_trees_against_markov_chains(leaves):
    """Each mean within .2 posterior sds, each sd within 20 %, with the chain's error; variance and rate known."""
    tree, values, _ = case(30 + leaves, leaves, 20)
    found = hybrid(tree, Data(values), **KNOWN)
    assert found.converged
    draws = -np.expm1(-chain_of_depths(found.tree, values, TreePrior(), 30_000, 0.35)[2000:])
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    assert (np.abs(found.time_mean[leaves:] - mean) < 0.2 * sd).all()
    assert (np.abs(np.log(found.time_sd[leaves:] / sd)) < np.log(1.2)).all()


def test_hybrid_and_em_agree_where_columns_are_many():
    """30 columns, 10 leaves, all learned: EM's times lie within the intervals of 3 sds."""
    tree, values, _ = case(41, 10, 30, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05)
    assert found.converged
    em = em_times(tree, Data(values), noise=0.05, iterations=300)
    assert (np.abs(em.tree.time - found.time_mean)[10:] < 3.0 * found.time_sd[10:]).all()
    assert 1.0 / em.precision.mean == pytest.approx(found.variance[0], rel=0.2)


@pytest.mark.parametrize(("leaves", "columns"), [(20, 200), pytest.param(63, 10, marks=pytest.mark.slow)])
def test_many_columns_and_many_leaves_converge_to_the_times_that_made_the_data(leaves, columns):
    """Where EP's messages do not: the true times, rate 1 and variance 1 lie within their intervals."""
    tree, values, truth = case(3, leaves, columns, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05)
    assert found.converged
    z = (truth.time - found.time_mean)[leaves:] / found.time_sd[leaves:]
    assert np.sqrt(np.mean(z**2)) < 1.4
    assert np.abs(z).max() < 4.0
    assert abs(found.variance[0] - 1.0) < 4.0 * found.variance[1]
    assert found.rate.mean == pytest.approx(1.0, abs=4.0 * np.sqrt(found.rate.shape) / found.rate.rate)


def test_what_the_hybrid_does_not_do():
    tree, values, _ = case(1, 5, 2)
    with pytest.raises(cv.DataError, match="continuous columns"):
        hybrid(tree, Data(values > 0.0, binary=True))
    with pytest.raises(cv.DataError, match="positive numbers"):
        hybrid(tree, Data(values), variance=(1.0, 0.0))
