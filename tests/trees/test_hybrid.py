"""The hybrid scheme: its factors against quadrature, its answers against grids over the times of small trees."""

import numpy as np
import pytest
from oracle import dense_evidence
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp
from scipy.stats import norm
from small_trees import case, chain_of_depths

import cavity as cv
from cavity.models.trees.em import em_times, exponents
from cavity.models.trees.hybrid import hybrid
from cavity.models.trees.hybrid_factors import beta_times, gaussian_sweep, tilted_variances
from cavity.models.trees.likelihoods.leaves import to_leaves
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.prior import TreePrior, log_prior, log_structure
from cavity.models.trees.tree import Tree

KNOWN = {"variance": (1.0, 1e-6), "rate": (1e6, 1e6)}


def test_locations_have_the_evidence_of_a_dense_normal():
    _, values, tree = case(2, 6, 3, noise=0.3)
    values[1, 0] = values[4, 2] = np.nan
    leaves, _ = to_leaves(Data(values), 1.0, 0.3)
    found = gaussian_sweep(tree, values, 0.3, tree.length)
    assert found.log_evidence == pytest.approx(dense_evidence(tree, leaves), abs=1e-11)


@pytest.mark.parametrize(("mean", "variance"), [(0.4, 0.05), (0.4, 1e-8), (2.0, 9.0)])
def test_the_variance_of_a_branch_has_its_tilted_moments(mean, variance):
    _, values, tree = case(2, 5, 4, noise=0.2)
    swept = gaussian_sweep(tree, values, 0.2, tree.length)
    cavity = np.array([[mean / variance], [1.0 / variance]]) * np.ones((1, tree.n_nodes))
    found = tilted_variances(swept, cavity)

    def density(w, node, power=0):
        columns = norm.pdf(np.sqrt(swept.square[node]), 0.0, np.sqrt(swept.outside[node] + w))
        return w**power * norm.pdf(w, mean, np.sqrt(variance)) * np.prod(columns)

    ends = max(0.0, mean - 9.0 * np.sqrt(variance)), mean + 9.0 * np.sqrt(variance)
    for node in (0, tree.top):
        z, first, second = (quad(density, *ends, args=(node, power), epsabs=0.0, limit=200)[0] for power in range(3))
        shift, precision = found.naturals[:, node]
        assert found.log_mass[node] == pytest.approx(np.log(z), abs=1e-5)
        assert shift / precision == pytest.approx(first / z, rel=1e-4)
        assert 1.0 / precision == pytest.approx(second / z - (first / z) ** 2, rel=1e-2)


def test_times_outside_their_interval_are_cut_to_it():
    """Cavities around 1.4 and of no precision, by quadrature; one around 0.5 by a beta distribution of its moments."""
    cavity, more = np.array([[1.4 / 0.04, 0.0, 0.5 / 0.01], [1.0 / 0.04, 0.0, 1.0 / 0.01]]), np.array([0.5, -0.4, 1.0])
    found = beta_times(cavity, more)
    for place in range(2):

        def density(t, power=0, place=place):
            return t**power * (1.0 - t) ** more[place] * np.exp(cavity[0, place] * t - 0.5 * cavity[1, place] * t**2)

        z, first = (quad(density, 0.0, 1.0, args=(power,))[0] for power in range(2))
        assert found.naturals[0, place] / found.naturals[1, place] == pytest.approx(first / z, rel=1e-2)
    total = 0.5 * 0.5 / 0.01 - 1.0
    assert found.naturals[0, 2] / found.naturals[1, 2] == pytest.approx(0.5 * total / (total + 1.0))


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


@pytest.mark.parametrize(("seed", "columns"), [(20, 5), (21, 10), (24, 20), (25, 20), (23, 40)])
def test_times_and_evidence_of_three_leaves_against_a_grid(seed, columns):
    """Means within half a posterior sd, evidence within 0.6 nats: what the factorised Gaussians cost."""
    tree, values, _ = case(seed, 3, columns, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05, **KNOWN)
    assert found.converged
    time, inner, table = grid_over_times(tree, values, 0.05, TreePrior())
    evidence = logsumexp(table) - 2.0 * np.log(len(time))
    assert found.log_evidence[-1] == pytest.approx(evidence, abs=0.6)
    weight = np.exp(table - logsumexp(table))
    for node, share in ((tree.top, weight.sum(axis=1)), (inner, weight.sum(axis=0))):
        mean = share @ time
        sd = np.sqrt(share @ (time - mean) ** 2)
        assert abs(found.time_mean[node] - mean) < 0.5 * sd


def test_evidence_with_variance_and_rate_integrated():
    """The rate in closed form, the variance and both times on a grid: within a nat."""
    tree, values, _ = case(24, 3, 20, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05, variance=(1.0, 0.04), rate=(2.0, 2.0))
    assert found.converged
    time, logs = (np.arange(30) + 0.5) / 30, []
    inner = next(v for v in (3, 4) if v != tree.top)
    j = exponents(tree, TreePrior())
    spread = np.linspace(0.3, 1.7, 15)
    for i, first in enumerate(time):
        for second in time[i + 1 :]:
            depth = tree.depth.copy()
            depth[[tree.top, inner]] = -np.log1p(-np.array([first, second]))
            at = Tree(tree.parent, depth)
            total = 2.0 + j @ depth[3:]  # the rate of the gamma distribution of c, times exp(sum depth)
            prior = 2.0 * np.log(2.0) - gammaln(2.0) + gammaln(4.0) - 4.0 * np.log(total) + depth[3:].sum()
            data = [dense_gaussian(at, values, 0.05, s) + norm.logpdf(s, 1.0, 0.2) for s in spread]
            logs.append(prior + logsumexp(data) + np.log(spread[1] - spread[0]))
    exact = logsumexp(logs) - 2.0 * np.log(30.0) + log_structure(tree, TreePrior())
    assert found.log_evidence[-1] == pytest.approx(exact, abs=1.0)


@pytest.mark.parametrize("leaves", [4, 5])
def test_times_of_small_trees_against_markov_chains(leaves):
    """Each mean within 0.7 posterior sds, each sd within a factor of two, known variance and rate, 20 columns."""
    tree, values, _ = case(30 + leaves, leaves, 20)
    found = hybrid(tree, Data(values), **KNOWN)
    assert found.converged
    draws = -np.expm1(-chain_of_depths(found.tree, values, TreePrior(), 4000, 0.2)[500:])
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    assert (np.abs(found.time_mean[leaves:] - mean) < 0.7 * sd).all()
    assert (np.abs(np.log(found.time_sd[leaves:] / sd)) < np.log(2.0)).all()


def test_hybrid_and_em_agree_where_columns_are_many():
    """30 columns, 10 leaves, all learned: EM's times lie within the hybrid's intervals of 3 sds."""
    tree, values, _ = case(41, 10, 30, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05)
    assert found.converged
    em = em_times(tree, Data(values), noise=0.05, iterations=300)
    assert (np.abs(em.tree.time - found.time_mean)[10:] < 3.0 * found.time_sd[10:]).all()
    assert 1.0 / em.precision.mean == pytest.approx(found.variance[0], rel=0.2)


def test_a_run_that_has_not_converged_says_so():
    tree, values, _ = case(41, 10, 30, noise=0.05)
    found = hybrid(tree, Data(values), noise=0.05, iterations=5)
    assert not found.converged
    assert len(found.log_evidence) == 5
    assert "Not converged in 5 iterations" in found.diagnosis
    assert "em_times" in found.diagnosis


def test_what_the_hybrid_does_not_do():
    tree, values, _ = case(1, 5, 2)
    with pytest.raises(cv.DataError, match="continuous columns"):
        hybrid(tree, Data(values > 0.0, binary=True))
    with pytest.raises(cv.DataError, match="positive numbers"):
        hybrid(tree, Data(values), variance=(1.0, 0.0))
