"""Prediction against the oracle: a new leaf tried at every place of the tree, one dense Gaussian each."""

import itertools

import jax
import numpy as np
import oracle
import pytest
from scipy import stats
from scipy.special import logsumexp

from cavity.factors.errors import DataError
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.fitted_tree import FittedTree, fit_tree
from cavity.models.trees.predict import log_predictive, predictive_mixture, sample_predictive
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.arrays import Leaves, pack
from cavity.models.trees.shapes.branches import RANGE
from cavity.models.trees.shapes.sample import sample_data, sample_tree
from cavity.models.trees.tree import ORIGIN, Tree

PRIORS = {
    "binary": TreePrior(),
    "fast": TreePrior(divergence=Divergence(2.5)),
    "many": TreePrior(1.0, 0.3),
    "three": TreePrior(3.0, -1.0, Divergence(24.0)),
    "unbalanced": TreePrior(-1.0, 0.5),
    "Neal": TreePrior(0.5, 0.1, Divergence(1.0, 0.5, 0.3)),
}


def places(tree, prior, pieces=2, nodes=60):
    """Every place for a new leaf: (branch, depth or None, log of its width), depths by Gauss' rule on pieces."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    for branch in range(tree.n_nodes):
        above = tree.parent[branch]
        start = 0.0 if above == ORIGIN else tree.depth[above]
        edges = np.linspace(start, min(tree.depth[branch], start + RANGE), pieces + 1)
        for low, high in itertools.pairwise(edges):
            half = 0.5 * (high - low)
            for one, weight in zip(low + half * (1.0 + x), np.log(half * w), strict=True):
                yield branch, one, weight
        if branch >= tree.n_leaves and len(tree.children[branch]) < (prior.most_children or np.inf):
            yield branch, None, 0.0


def dense(tree, leaves, prior, row, noise):
    """Log predictive density of one row in units of the leaves, NaN where missing."""
    mean = np.vstack([leaves.mean, np.nan_to_num(row)])
    own = np.where(np.isnan(row), np.inf, noise)
    variance = np.vstack([np.broadcast_to(leaves.variance, leaves.mean.shape), own])
    more = Leaves(mean, variance)
    base = oracle.log_joint(tree, leaves, prior)
    values = [
        oracle.log_joint(oracle.with_leaf(tree, branch, depth), more, prior) + width
        for branch, depth, width in places(tree, prior)
    ]
    return logsumexp(values) - base


def problem(name, leaves=4, columns=2, noise=0.05, seed=0):
    random = np.random.default_rng(seed)
    prior = PRIORS[name]
    tree = sample_tree(prior, leaves, jax.random.key(seed))
    return tree, Leaves(random.normal(size=(leaves, columns)), np.full((leaves, 1), noise)), prior


@pytest.mark.parametrize("name", PRIORS)
def test_density_is_the_joint_with_one_leaf_more(name):
    tree, leaves, prior = problem(name)
    rows = np.array([[0.3, -0.5], [1.2, 2.0], leaves.mean[1]])
    found = log_predictive(fit_tree(tree, leaves, prior, noise=0.05), rows)
    expected = [dense(tree, leaves, prior, row, 0.05) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_missing_entries_and_column_variances():
    tree, leaves, prior = problem("many", columns=3)
    random = np.random.default_rng(1)
    variance = random.uniform(0.02, 0.2, size=leaves.mean.shape)
    variance[0, 1] = variance[2, 0] = np.inf
    leaves, noise = Leaves(leaves.mean, variance), np.array([0.05, 0.1, 0.02])
    rows = np.array([[0.3, np.nan, 0.1], [np.nan, np.nan, 1.0], [0.5, -0.5, 0.0], [np.nan] * 3])
    found = log_predictive(fit_tree(tree, leaves, prior, noise=noise), rows)
    np.testing.assert_allclose(found[:3], [dense(tree, leaves, prior, row, noise) for row in rows[:3]], atol=1e-7)
    assert abs(found[3]) < 1e-7  # nothing was said


def test_missing_entries_with_one_variance():
    tree, leaves, prior = problem("binary", columns=3)
    rows = np.array([[0.3, np.nan, 0.1], [0.5, -0.5, 0.0], [np.nan] * 3])
    found = log_predictive(fit_tree(tree, leaves, prior, noise=0.05), rows)
    np.testing.assert_allclose(found[:2], [dense(tree, leaves, prior, row, 0.05) for row in rows[:2]], atol=1e-7)
    assert abs(found[2]) < 1e-7


def gaussians(tree, leaves, branch, depth):
    """Mean and variance of a new leaf's location, each column by itself, from the dense covariance."""
    time = oracle.with_leaf(tree, branch, depth).shared_time
    mean, variance = [], []
    for column in range(leaves.mean.shape[1]):
        known = time[:-1, :-1] + np.diag(leaves.variance[:, column])
        gain = np.linalg.solve(known, time[:-1, -1])
        mean.append(gain @ leaves.mean[:, column])
        variance.append(time[-1, -1] - gain @ time[:-1, -1])
    return np.array(mean), np.array(variance)


def test_binary_and_mixed_columns_by_quadrature():
    tree, leaves, prior = problem("many", columns=3)
    leaves = Leaves(leaves.mean, np.random.default_rng(1).uniform(0.1, 2.0, size=leaves.mean.shape))
    binary, scale, noise = np.array([True, False, True]), np.array([1.5, 0.7, 2.0]), 0.05
    fitted = fit_tree(tree, leaves, prior, scale=scale, noise=noise, binary=binary)
    rows = np.array([[1.0, 0.2, 0.0], [0.0, -0.5, 0.0], [np.nan, 0.1, 1.0], [1.0, np.nan, np.nan]])
    x, w = np.polynomial.hermite_e.hermegauss(60)
    expected = []
    for row in rows:
        values = []
        for branch, depth, width in places(tree, prior, nodes=40):
            mean, variance = gaussians(tree, leaves, branch, depth)
            new = oracle.with_leaf(tree, branch, depth)
            value = oracle.log_prior(new, prior, "depth") - oracle.log_prior(tree, prior, "depth") + width
            for d in np.flatnonzero(~np.isnan(row)):
                if binary[d]:
                    location = scale[d] * (mean[d] + np.sqrt(variance[d]) * x)
                    yes = w @ stats.norm.cdf(location) / w.sum()
                    value += np.log(yes if row[d] else 1.0 - yes)
                else:
                    value += stats.norm.logpdf(row[d], scale[d] * mean[d], scale[d] * np.sqrt(variance[d] + noise))
            values.append(value)
        expected.append(logsumexp(values))
    np.testing.assert_allclose(log_predictive(fitted, rows), expected, atol=1e-6)
    corners = np.array([[a, np.nan, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    assert np.exp(log_predictive(fitted, corners)).sum() == pytest.approx(1.0, abs=1e-7)


def large(prior, leaves=100, columns=4, noise=0.0, seed=3, new=20):
    """A tree from its prior, the data of its leaves, and rows from the same prior that it has not seen."""
    tree, data = sample_data(prior, leaves + new, columns, jax.random.key(seed), noise=noise)
    kept = np.random.default_rng(seed).permutation(leaves + new)
    seen = oracle.restricted(tree, kept[:leaves])
    known = Leaves(data[kept[:leaves]], np.full((leaves, 1), noise))
    return seen, fit_tree(seen, known, prior, noise=noise), data[kept[leaves:]]


@pytest.mark.parametrize(("name", "noise"), [("binary", 0.0), ("binary", 0.01), ("many", 0.0), ("Neal", 0.0)])
def test_many_leaves_against_dense_quadrature(name, noise):
    _, fitted, rows = large(PRIORS[name], noise=noise)
    branches = fitted.branches
    x, w = np.polynomial.legendre.leggauss(40)
    total = np.full(len(rows), -np.inf)
    for b in range(len(branches.node)):
        edges = np.linspace(branches.start[b], branches.last[b], 21 if np.isinf(branches.end[b]) else 4)
        half = 0.5 * np.diff(edges)[:, None]
        depth = np.append((edges[:-1, None] + half * (1.0 + x)).ravel(), branches.last[b])
        log_stay = branches.log_stay(depth[None], np.array([b]))[0]
        log_weight = np.log(fitted.prior.divergence.intensity(depth) * branches.rate[b]) + log_stay
        log_weight[:-1] += np.log(half * w).ravel()
        log_weight[-1] = log_stay[-1] + (0.0 if np.isinf(branches.end[b]) else branches.log_join[b])
        time, start = -np.expm1(-depth), -np.expm1(-branches.start[b])
        high = branches.high_variance[b] + time - start
        low = branches.low_variance[b] - np.expm1(-branches.end[b]) - time
        mean = (high[:, None] * branches.low_mean[b] + low[:, None] * branches.high_mean[b]) / (high + low)[:, None]
        sd = np.sqrt(high * low / (high + low) + np.exp(-depth) + noise)
        density = stats.norm.logpdf(rows[:, None], mean, sd[:, None]).sum(axis=2)
        part = logsumexp(density + log_weight + branches.log_enter[b], axis=1)
        total = np.logaddexp(total, part)
    error = np.abs(log_predictive(fitted, rows) - total)
    assert error.max() < 0.01
    assert error.mean() < 0.002


@pytest.mark.parametrize("name", PRIORS)
def test_weights_sum_to_one(name):
    tree, leaves, prior = problem(name, leaves=9)
    assert predictive_mixture(fit_tree(tree, leaves, prior)).weight.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("prior", [PRIORS["many"], TreePrior(6.0, -2.0)])
def test_density_integrates_to_one(prior):
    """Under the second prior paths part late, many beyond the depths that are told apart."""
    tree = sample_tree(prior, 12, jax.random.key(0))
    leaves = Leaves(np.random.default_rng(0).normal(size=(12, 1)), np.full((12, 1), 0.01))
    grid = np.linspace(-9.0, 9.0, 4001)[:, None]
    density = np.exp(log_predictive(fit_tree(tree, leaves, prior, scale=1.3, noise=0.01), grid))
    assert density.sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1.0, abs=1e-3)


def test_explicit_mixture_has_the_same_density():
    _, fitted, rows = large(TreePrior(1.0, 0.2), noise=0.05)
    mixture = predictive_mixture(fitted, cells=64)
    each = stats.norm.logpdf(rows[:, None], mixture.mean, np.sqrt(mixture.variance)).sum(axis=2)
    np.testing.assert_allclose(logsumexp(each, b=mixture.weight, axis=1), log_predictive(fitted, rows), atol=0.02)


def test_draws_have_the_moments_of_the_mixture():
    tree, leaves, prior = problem("many", leaves=6, columns=2)
    fitted = fit_tree(tree, leaves, prior, scale=np.array([1.0, 2.0]), noise=0.1)
    mixture = predictive_mixture(fitted, cells=512)
    draws = sample_predictive(fitted, 100_000, jax.random.key(0))
    mean = mixture.weight @ mixture.mean
    variance = mixture.weight @ (mixture.variance + (mixture.mean - mean) ** 2)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=4.0 * np.sqrt(variance.max() / 1e5))
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.03)
    np.testing.assert_array_equal(draws[:5], sample_predictive(fitted, 100_000, jax.random.key(0))[:5])


def test_binary_draws_have_their_probability():
    tree, leaves, prior = problem("binary", leaves=5, columns=2)
    leaves = Leaves(leaves.mean, np.broadcast_to(leaves.variance, leaves.mean.shape))
    fitted = fit_tree(tree, leaves, prior, scale=2.0, binary=np.array([True, False]))
    draws = sample_predictive(fitted, 50_000, jax.random.key(1))
    yes = np.exp(log_predictive(fitted, np.array([[1.0, np.nan]])))[0]
    assert set(draws[:, 0]) == {0.0, 1.0}
    assert draws[:, 0].mean() == pytest.approx(yes, abs=4.0 * np.sqrt(0.25 / 5e4))


def test_order_of_the_leaves_does_not_matter():
    tree, _, rows = large(PRIORS["many"], noise=0.02)
    data = np.random.default_rng(0).normal(size=(tree.n_leaves, 4))
    order = np.random.default_rng(1).permutation(tree.n_leaves)
    leaves = Leaves(data, np.full((tree.n_leaves, 1), 0.02))
    found = log_predictive(fit_tree(tree, leaves, PRIORS["many"], noise=0.02), rows)
    other = Leaves(data[order], leaves.variance)
    again = log_predictive(fit_tree(oracle.restricted(tree, order), other, PRIORS["many"], noise=0.02), rows)
    np.testing.assert_allclose(found, again, atol=1e-9)


def test_far_and_coincident_rows_are_finite():
    _, fitted, _ = large(TreePrior())
    leaves = fitted.messages.up_mean[:2]
    found = log_predictive(fitted, np.vstack([leaves, leaves + 1e-12, leaves + 1e4]))
    assert np.isfinite(found).all()
    assert found[:4].min() > found[4:].max()


def test_other_units_change_the_density_by_the_scale():
    _, fitted, rows = large(TreePrior(), noise=0.01)
    sd = np.array([1.0, 2.0, 0.5, 3.0])
    other = FittedTree(fitted.arrays, fitted.messages, fitted.prior, scale=sd, noise=0.01)
    np.testing.assert_allclose(
        log_predictive(other, rows * sd), log_predictive(fitted, rows) - np.log(sd).sum(), rtol=1e-12
    )
    by_column = FittedTree(fitted.arrays, fitted.messages, fitted.prior, scale=sd, noise=np.full(4, 0.01))
    np.testing.assert_allclose(log_predictive(by_column, rows * sd), log_predictive(other, rows * sd), atol=1e-9)


def test_locations_are_posterior_means():
    tree, leaves, prior = problem("many", leaves=6)
    shared = np.zeros((tree.n_nodes, tree.n_nodes))
    for one in range(tree.n_nodes):
        for other in range(tree.n_nodes):
            meet = [v for v in range(tree.n_nodes) if (tree.members[[one, other]] <= tree.members[v]).all()]
            shared[one, other] = tree.time[min(meet, key=lambda v: tree.count[v])]
    known = shared[:6, :6] + np.diag(leaves.variance[:, 0])
    expected = 2.0 * shared[:, :6] @ np.linalg.solve(known, leaves.mean)
    np.testing.assert_allclose(fit_tree(tree, leaves, prior, scale=2.0).locations, expected, atol=1e-12)


def test_several_trees_are_averaged():
    tree, leaves, prior = problem("binary", leaves=5)
    other = oracle.random_tree(np.random.default_rng(9), 5)
    both = [fit_tree(one, leaves, prior, noise=0.05) for one in (tree, other)]
    rows = np.random.default_rng(2).normal(size=(3, 2))
    each = np.array([log_predictive(one, rows) for one in both])
    expected = np.log(0.8 * np.exp(each[0]) + 0.2 * np.exp(each[1]))
    np.testing.assert_allclose(log_predictive(both, rows, np.log([8.0, 2.0])), expected, rtol=1e-12)
    np.testing.assert_allclose(log_predictive(both, rows, [0.0, -np.inf]), each[0], rtol=1e-12)


def test_one_leaf_is_a_tree():
    prior = TreePrior()
    lone = Tree(np.array([-1]), np.array([np.inf]))
    fitted = fit_tree(lone, Leaves(np.array([[0.5]]), np.array([[0.1]])), prior, noise=0.1)
    grid = np.linspace(-8.0, 8.0, 4001)[:, None]
    assert np.exp(log_predictive(fitted, grid)).sum() * 0.004 == pytest.approx(1.0, abs=1e-4)


def test_errors_say_what_was_found():
    tree, leaves, prior = problem("binary")
    fitted = fit_tree(tree, leaves, prior)
    for rows, match in ((np.zeros((2, 3)), "shape"), (np.array([[np.inf, 0.0]]), "infinite")):
        with pytest.raises(DataError, match=match):
            log_predictive(fitted, rows)
    arrays, messages = pack(tree), fitted.messages
    for wrong in ({"scale": 0.0}, {"noise": -1.0}, {"noise": np.ones(3)}, {"binary": [True]}, {"binary": [1, 0]}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            FittedTree(arrays, messages, prior, **wrong)
    with pytest.raises(DataError, match="0, 1"):
        log_predictive(fit_tree(tree, leaves, prior, binary=[True, False]), np.array([[0.5, 0.0]]))
    with pytest.raises(DataError, match="at least one"):
        log_predictive([], np.zeros((1, 2)))
    with pytest.raises(DataError, match="log_weights"):
        log_predictive([fitted], np.zeros((1, 2)), [0.0, 1.0])
