"""Evidence: belief propagation against integrals over locations, and all trees of a few leaves against other means."""

import itertools

import jax
import numpy as np
import pytest
from enumeration import enumerated, log_probability, structures
from oracle import dense_evidence, log_joint
from scipy.stats import norm

from cavity.models.trees.backend import kernels
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.shapes.arrays import Leaves, pack
from cavity.models.trees.shapes.sample import sample_data, sample_tree
from cavity.models.trees.tree import ORIGIN, Tree

INF = np.inf
GRID = np.linspace(-9.0, 9.0, 721)
STEP = GRID[1] - GRID[0]


def leaves_of(prior, n, columns, seed, variance):
    _, data = sample_data(prior, n, columns, jax.random.key(seed), noise=variance)
    return Leaves(data, np.full((n, 1), variance))


def by_locations(tree, leaves):
    """Evidence of one column: locations of branch points on a grid, from the definition."""
    density = {}
    for node in tree.order:
        above = 0.0 if tree.parent[node] == ORIGIN else tree.time[tree.parent[node]]
        spread = tree.time[node] - above
        if node < tree.n_leaves:
            variance = leaves.variance[node, 0] + spread
            known = np.isfinite(variance)
            below = norm.pdf(GRID, leaves.mean[node, 0], np.sqrt(variance)) if known else np.ones_like(GRID)
        else:
            here = np.prod([density[child] for child in tree.children[node]], axis=0)
            below = STEP * norm.pdf(GRID[:, None], GRID, np.sqrt(spread)) @ here
        density[node] = below
    return np.log(density[tree.top][len(GRID) // 2])  # the origin is at location 0


@pytest.mark.parametrize("variance", [(0.0, 0.0, 0.0), (0.3, 0.0, 1.2), (0.1, INF, 0.0)])
@pytest.mark.parametrize("n", [2, 3])
def test_messages_integrate_out_locations(n, variance):
    random = np.random.default_rng(n)
    leaves = Leaves(random.normal(size=(n, 1)), np.array(variance[:n])[:, None])
    for tree in structures(n):
        depth = np.where(np.isinf(tree.depth), INF, 0.5 * tree.depth)
        tree = Tree(tree.parent, depth)
        wanted = by_locations(tree, leaves)
        assert dense_evidence(tree, leaves) == pytest.approx(wanted, abs=1e-9)
        assert float(kernels("jax").sweep(pack(tree), leaves).log_evidence) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "prior"),
    [
        (2, TreePrior()),
        (2, TreePrior(1.0, 0.2)),
        (2, TreePrior(0.0, 0.0, Divergence(0.5, 1.0, 0.3))),
        pytest.param(3, TreePrior(), marks=pytest.mark.slow),
        (3, TreePrior(1.0, 0.2)),
        (3, TreePrior(0.0, 0.0, Divergence(0.5, 1.0, 0.3))),
    ],
)
def test_enumeration_against_integrals_of_the_joint_density(n, prior):
    """Every structure's integral over depths, of log_prior plus dense evidence, by another rule."""
    leaves = leaves_of(prior, n, 2, 1, 0.2)
    found = enumerated(leaves, prior, 48)
    panels = itertools.pairwise(np.linspace(0.0, 1.0, 6))  # five of eight Gauss points, in the eighth root of
    x, weight = np.polynomial.legendre.leggauss(8)  # the share of time left, whose density may be infinite at 0
    root, weight = np.concatenate([(a + (b - a) * 0.5 * (x + 1.0), 0.5 * (b - a) * weight) for a, b in panels], axis=1)
    left, weight = root**8, weight * 8.0 * root**7
    for tree, joint in zip(found.trees, found.log_joint, strict=True):
        total = 0.0
        for places in itertools.product(range(40), repeat=tree.n_nodes - n):
            depth, mass = np.full(tree.n_nodes, INF), 1.0
            for place, node in zip(places, tree.order[-1 : n - 1 : -1], strict=True):
                above = 0.0 if tree.parent[node] == ORIGIN else depth[tree.parent[node]]
                depth[node] = above - np.log(left[place])
                mass *= weight[place] / left[place]  # of a depth, for one of the share of time left
            if mass > 1e-14:
                total += mass * np.exp(log_joint(Tree(tree.parent, depth), leaves, prior))
        assert np.log(total) == pytest.approx(joint, abs=2e-6)


@pytest.mark.parametrize("prior", [TreePrior(), TreePrior(1.0, 0.2), TreePrior(-0.5, 0.4)])
@pytest.mark.parametrize("variance", [0.0, 0.1])
def test_enumeration_of_four_leaves_has_converged(prior, variance):
    leaves = leaves_of(prior, 4, 2, 2, variance)
    coarse, fine = enumerated(leaves, prior, 32), enumerated(leaves, prior, 44)
    assert coarse.log_evidence == pytest.approx(fine.log_evidence, abs=1e-6 if variance else 6e-6)
    np.testing.assert_allclose(coarse.probability, fine.probability, atol=1e-5)


@pytest.mark.slow
def test_enumeration_of_five_leaves_has_converged():
    leaves = leaves_of(TreePrior(), 5, 2, 2, 0.1)
    coarse, fine = enumerated(leaves, TreePrior(), 13), enumerated(leaves, TreePrior(), 16)
    assert len(fine.trees) == 105
    assert coarse.log_evidence == pytest.approx(fine.log_evidence, abs=2e-3)


@pytest.mark.slow
def test_enumeration_of_five_leaves_has_converged_to_more_digits():
    for prior in (TreePrior(), TreePrior(1.0, 0.2)):
        leaves = leaves_of(prior, 5, 2, 2, 0.1)
        assert enumerated(leaves, prior, 20).log_evidence == pytest.approx(
            enumerated(leaves, prior, 28).log_evidence, abs=1e-4
        )


@pytest.mark.parametrize(("n", "prior"), [(4, TreePrior(1.0, 0.2)), (5, TreePrior())])
def test_enumeration_against_draws_of_the_prior(n, prior):
    """Evidence and posterior probabilities as averages over trees drawn from the prior."""
    leaves, times = leaves_of(prior, n, 2, 4, 0.5), 4000
    exact = enumerated(leaves, prior, 14)
    drawn = [sample_tree(prior, n, jax.random.key(seed)) for seed in range(times)]
    mean = np.asarray(leaves.mean)
    covariance = np.array([tree.shared_time for tree in drawn]) + 0.5 * np.eye(n)
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), np.broadcast_to(mean, (times, *mean.shape)))
    log_weight = -0.5 * (whitened**2).sum((1, 2)) - np.linalg.slogdet(2.0 * np.pi * covariance)[1]
    weight = np.exp(log_weight - exact.log_evidence)
    assert abs(weight.mean() - 1.0) < 4.0 * weight.std() / np.sqrt(times)
    place = {tree.structure: i for i, tree in enumerate(exact.trees)}
    mass = np.bincount([place[tree.structure] for tree in drawn], weight, len(exact.trees)) / times
    square = np.bincount([place[tree.structure] for tree in drawn], weight**2, len(exact.trees)) / times
    seen = exact.probability > 0.01
    assert seen.sum() >= 5
    error = np.sqrt((square - mass**2) / times)
    assert (np.abs(mass - exact.probability) < 4.5 * error)[seen].all()


def test_without_data_the_posterior_is_the_prior():
    prior = TreePrior(0.5, 0.2)
    blank = enumerated(Leaves(np.zeros((4, 2)), np.full((4, 1), INF)), prior, 12)
    assert blank.log_evidence == pytest.approx(0.0, abs=1e-10)
    np.testing.assert_allclose(blank.probability, np.exp([log_probability(tree, prior) for tree in blank.trees]))
    one = np.where(np.arange(4)[:, None] == 2, 0.3, INF)  # one leaf known: N(0, 1 + 0.3) whatever the tree
    alone = enumerated(Leaves(np.full((4, 1), 0.7), one), prior, 12)
    assert alone.log_evidence == pytest.approx(norm.logpdf(0.7, 0.0, np.sqrt(1.3)), abs=1e-10)


def test_a_pair_known_exactly():
    """Two leaves apart by r in each of two columns: one integral, done by hand in the time of their parting."""
    leaves = Leaves(np.array([[0.3, -0.4], [0.9, 0.1]]), np.zeros((2, 1)))
    time = (np.arange(200_000) + 0.5) / 200_000  # rate 1: the prior of the time is uniform
    sums, gaps = ((leaves.mean[0] + leaves.mean[1]) ** 2).sum(), ((leaves.mean[0] - leaves.mean[1]) ** 2).sum()
    log_density = -sums / (4.0 * (1.0 + time)) - gaps / (4.0 * (1.0 - time)) - np.log(1.0 - time**2)
    wanted = np.log(np.exp(log_density - 2.0 * np.log(2.0 * np.pi)).mean())
    assert enumerated(leaves, TreePrior(), 48).log_evidence == pytest.approx(wanted, abs=1e-7)
    assert tables(TreePrior(), 2).harmonic[1] == 1.0
