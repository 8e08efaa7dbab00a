"""Draws have the distribution that the prior states: structures, times, locations."""

import jax
import numpy as np
import pytest
from enumeration import log_probability, structures
from imbalance import colless, expected_branch_points, expected_imbalance, unbalanced
from scipy import stats
from scipy.special import gamma

from cavity.engine.mcmc.keys import generator
from cavity.factors.errors import DataError
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior, log_prior, tables
from cavity.models.trees.shapes.sample import sample_data, sample_locations, sample_tree
from cavity.models.trees.tree import ORIGIN, Tree

NEAL = Divergence(rate=0.5, constant=1.0, square=0.3)
PRIORS = [
    TreePrior(),
    TreePrior(1.0, 0.2, NEAL),
    TreePrior(-0.5, 0.4),
    TreePrior(6.0, -2.0),
    TreePrior(-1.2, 0.6, Divergence(3.0)),
    TreePrior(4.0, -2.0, NEAL),
]


def draws(prior, n, times):
    return [sample_tree(prior, n, jax.random.key(seed)) for seed in range(times)]


def waits(tree, prior):
    """Of each branch point, the integral of its intensity since its parent: unit exponentials under the prior."""
    points = np.arange(tree.n_leaves, tree.n_nodes)
    above = np.where(tree.parent[points] == ORIGIN, 0.0, tree.depth[tree.parent[points]])
    passed = prior.divergence.cumulative(tree.depth[points]) - prior.divergence.cumulative(above)
    return passed * tables(prior, tree.n_leaves).harmonic[tree.count[points] - 1]


# The last two are of the regimes of two before them, with other divergence functions.
@pytest.mark.parametrize(
    "prior", [*PRIORS[:4], *(pytest.param(prior, marks=pytest.mark.slow) for prior in PRIORS[4:])], ids=str
)
def test_structures_and_times_have_the_stated_law(prior):
    """Given the structure, times are independent exponentials in the integral: with the structures' probabilities,
    which another test gets from the density, that is all of the density."""
    drawn = draws(prior, 4, 3000)
    found = {}
    for tree in drawn:
        found[tree.structure] = found.get(tree.structure, 0) + 1
    every = structures(4, prior.most_children)
    wanted = np.array([np.exp(log_probability(tree, prior)) for tree in every])
    count = np.array([found.pop(tree.structure, 0) for tree in every])
    assert not found
    assert stats.chisquare(count, 3000 * wanted).pvalue > 1e-3
    exponential = np.concatenate([waits(tree, prior) for tree in drawn])
    assert stats.kstest(exponential, "expon").pvalue > 1e-3
    by_size = np.concatenate([waits(tree, prior)[tree.count[4:] == 2] for tree in drawn])
    assert stats.kstest(by_size, "expon").pvalue > 1e-3


@pytest.mark.parametrize("parameters", [(0.0, 0.0), (1.0, 0.2), (6.0, -2.0)])
def test_mean_of_the_first_divergence_time(parameters):
    for rate, n in ((1.0, 4), (0.5, 9)):
        prior = TreePrior(*parameters, Divergence(rate))
        first = np.array([tree.time[tree.top] for tree in draws(prior, n, 1500)])
        wanted = 1.0 / (1.0 + rate * tables(prior, n).harmonic[n - 1])
        assert abs(first.mean() - wanted) < 4.0 * first.std() / np.sqrt(1500)


def test_dirichlet_tree_of_four():
    drawn = draws(TreePrior(), 4, 4000)
    balanced = np.mean([sorted(tree.count[list(tree.children[tree.top])]) == [2, 2] for tree in drawn])
    assert abs(balanced - 3.0 / 11.0) < 3.0 * np.sqrt(3.0 / 11.0 * 8.0 / 11.0 / 4000)
    first = np.array([tree.time[tree.top] for tree in drawn])
    assert abs(first.mean() - 6.0 / 17.0) < 3.0 * first.std() / np.sqrt(4000)


@pytest.mark.parametrize("parameters", [(0.0, 0.0), (0.5, 0.3)])
def test_locations_have_the_stated_correlation(parameters):
    concentration, discount = parameters
    prior = TreePrior(*parameters, Divergence(1.5))
    x = np.array([sample_data(prior, 3, 4, jax.random.key(seed), variance=2.0)[1] for seed in range(1500)])
    wanted = 1.0 / (1.0 + 1.5 * gamma(1.0 - discount) / gamma(2.0 + concentration))
    for a, b in ((0, 1), (0, 2), (1, 2)):  # any two leaves: arrival does not matter
        products = (x[:, a] * x[:, b]).mean(1) / 2.0
        assert abs(products.mean() - wanted) < 4.0 * products.std() / np.sqrt(1500)
    squares = (x**2).mean((1, 2)) / 2.0
    assert abs(squares.mean() - 1.0) < 4.0 * squares.std() / np.sqrt(1500)


def test_locations_given_the_tree_are_the_stated_gaussian():
    tree = sample_tree(TreePrior(1.0, 0.2), 7, jax.random.key(5))
    variance = np.array([0.5, 3.0])
    x = np.array([sample_locations(tree, 2, jax.random.key(seed), variance) for seed in range(3000)])
    assert x.shape == (3000, tree.n_nodes, 2)
    for column in range(2):
        white = np.linalg.solve(np.linalg.cholesky(tree.shared_time * variance[column]), x[:, :7, column].T)
        assert stats.kstest(white.ravel(), "norm").pvalue > 1e-3
        assert stats.kstest((white**2).sum(0), stats.chi2(7).cdf).pvalue > 1e-3
    steps = (x[:, :, 0] - np.where(tree.parent == ORIGIN, 0.0, x[:, tree.parent, 0])) / np.sqrt(0.5 * tree.length)
    assert stats.kstest(steps.ravel(), "norm").pvalue > 1e-3
    assert np.abs(np.corrcoef(steps.T) - np.eye(tree.n_nodes)).max() < 5.0 / np.sqrt(3000)


@pytest.mark.parametrize(
    ("parameters", "printed"), [((0.0, 0.0), 99), ((0.5, 0.0), 76), ((1.0, 0.0), 64.5), ((2.0, 0.3), 40)]
)
def test_number_of_branch_points_of_a_hundred_leaves(parameters, printed):
    prior = TreePrior(*parameters)
    wanted = expected_branch_points(prior, 100)
    assert abs(wanted - printed) < 0.5
    found = np.array([tree.n_nodes - 100.0 for tree in draws(prior, 100, 300)])
    assert abs(found.mean() - wanted) <= 4.0 * found.std() / np.sqrt(300) + 1e-9


@pytest.mark.parametrize("discount", [-2.0, -0.5, 0.0, 0.5, 0.9])
def test_imbalance_of_draws(discount):
    """Fails where branch points round to time 1, as they do in times at a discount of -2."""
    drawn = draws(TreePrior(-2.0 * discount, discount), 100, 150)
    for statistic, wanted in zip((colless, unbalanced), expected_imbalance(discount, 100), strict=True):
        found = np.array([statistic(tree) for tree in drawn])
        assert abs(found.mean() - wanted) < 4.0 * found.std() / np.sqrt(150)


@pytest.mark.parametrize("parameters", [(0.0, 0.0), (3.0, -1.0), (8.0, -2.0), (1.0, 0.5), (-1.8, 0.9), (4.0, -2.0)])
def test_number_of_children_is_within_limits(parameters):
    prior = TreePrior(*parameters)
    most = max(len(children) for tree in draws(prior, 300, 5) for children in tree.children)
    assert most == prior.most_children if prior.most_children else most > 4


def test_large_and_extreme_trees():
    for prior in (
        TreePrior(),
        TreePrior(-1.8, 0.9),
        TreePrior(100.0),
        TreePrior(4.0, -2.0),
        TreePrior(6.0, -2.0, NEAL),
    ):
        tree = sample_tree(prior, 2000, jax.random.key(0))
        assert tree.n_leaves == 2000
        assert np.isfinite(log_prior(tree, prior))
    tree, data = sample_data(TreePrior(), 2000, 3, jax.random.key(1), noise=0.1)
    assert data.shape == (2000, 3)


def test_small_trees():
    one = sample_tree(TreePrior(), 1, jax.random.key(0))
    assert (one.n_leaves, one.n_nodes) == (1, 1)
    assert sample_locations(one, 3, jax.random.key(0)).shape == (1, 3)
    two = sample_tree(TreePrior(), 2, jax.random.key(0))
    assert (two.n_leaves, two.n_nodes) == (2, 3)


def test_same_key_same_draw():
    first, again, other = (sample_data(TreePrior(1.0), 20, 2, jax.random.key(seed)) for seed in (4, 4, 5))
    assert (first[0].parent == again[0].parent).all()
    assert (first[0].depth == again[0].depth).all()
    assert (first[1] == again[1]).all()
    assert not (first[1] == other[1]).any()
    assert generator(jax.random.key(3)).random() == generator(jax.random.PRNGKey(3)).random()


def test_noise_is_added():
    tree = Tree(np.array([2, 2, -1]), np.array([np.inf, np.inf, 1.0]))
    assert tree.n_leaves == 2
    exact = sample_data(TreePrior(), 400, 5, jax.random.key(7))[1]
    noisy = sample_data(TreePrior(), 400, 5, jax.random.key(7), noise=0.25)[1]
    assert stats.kstest(((noisy - exact) / 0.5).ravel(), "norm").pvalue > 1e-3


def test_bad_requests_are_refused():
    tree = sample_tree(TreePrior(), 5, jax.random.key(0))
    with pytest.raises(DataError, match="at least one leaf"):
        sample_tree(TreePrior(), 0, jax.random.key(0))
    with pytest.raises(DataError, match="at least one column"):
        sample_locations(tree, 0, jax.random.key(0))
    for variance in (0.0, -1.0, np.nan, np.ones(2), np.ones((3, 3))):
        with pytest.raises(DataError, match="diffusion variance"):
            sample_locations(tree, 3, jax.random.key(0), variance)
    with pytest.raises(DataError, match="noise"):
        sample_data(TreePrior(), 5, 2, jax.random.key(0), noise=-1.0)
