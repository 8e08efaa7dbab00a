"""The mass of a tree: each branch point's interval against dense quadrature of the joint density."""

import importlib.util
import itertools

import jax
import numpy as np
import pytest
from enumeration import enumerated
from oracle import log_joint, random_tree
from scipy import integrate

from cavity.models.trees.backend import kernels
from cavity.models.trees.chains.fitted import Hyper, Problem, State, log_mass, settled
from cavity.models.trees.chains.hyper import Hyperpriors
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.likelihoods.mass import log_intervals
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.search import search_trees
from cavity.models.trees.shapes.arrays import Leaves, pack
from cavity.models.trees.shapes.sample import sample_data
from cavity.models.trees.tree import Tree

BACKEND = "numba" if importlib.util.find_spec("numba") else "jax"
PRIORS = {
    "Dirichlet": TreePrior(),
    "Pitman-Yor": TreePrior(1.0, 0.3, Divergence(0.7)),
    "Neal's divergence": TreePrior(divergence=Divergence(0.5, 0.4, 0.1)),
}


@pytest.mark.parametrize("wide", [False, True], ids=["shared variance", "variance of each column"])
@pytest.mark.parametrize("noise", [0.0, 0.2], ids=["exact", "noisy"])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_intervals(prior, noise, wide):
    random = np.random.default_rng(5)
    tree = random_tree(random, 7, 0.4 * (prior.concentration > 0.0))
    variance = np.full((7, 3 if wide else 1), noise)
    if wide:
        variance[2, 1] = np.inf
    data = random.multivariate_normal(np.zeros(7), tree.shared_time + noise * np.eye(7), size=3).T
    leaves = Leaves(data, variance)
    arrays = pack(tree)
    found = log_intervals(arrays, kernels("jax").sweep(arrays, leaves), tables(prior, 7))
    now = log_joint(tree, leaves, prior)
    for place, node in enumerate(range(7, tree.n_nodes)):

        def density(depth, node=node):
            moved = tree.depth.copy()
            moved[node] = depth
            try:
                return np.exp(log_joint(Tree(tree.parent, moved), leaves, prior) - now)
            except np.linalg.LinAlgError:  # leaves that part at their very end, far apart: no density to rounding
                return 0.0

        above = 0.0 if tree.parent[node] < 0 else tree.depth[tree.parent[node]]
        below = min(tree.depth[list(tree.children[node])].min(), above + 40.0)
        ends = [above + (below - above) * share for share in (1e-9, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0)]
        dense = sum(integrate.quad(density, low, high, limit=200)[0] for low, high in itertools.pairwise(ends))
        assert found[place] == pytest.approx(np.log(dense), abs=2e-3)


@pytest.mark.parametrize("prior", [TreePrior(), TreePrior(1.0, 0.2)], ids=["binary", "any"])
def test_the_mass_of_a_tree_against_enumeration(prior):
    """Exact for one branch point; below the integral over all depths, but not far, for more."""
    data = Data(np.random.default_rng(1).normal(size=(4, 2)))
    hyper = Hyper(prior, np.ones(2), 0.1)
    problem = Problem(data, frozenset(), Hyperpriors(), True, BACKEND)
    leaves, shift = problem.leaves(hyper)
    exact = enumerated(leaves, prior, nodes=16)
    for tree, mass in zip(exact.trees, exact.log_joint, strict=True):
        state = settled(problem, State(pack(tree), leaves, hyper, shift, 0.0), np.random.default_rng(0))
        found = np.mean([log_mass(problem, state, np.random.default_rng(seed), draws=60) for seed in range(4)])
        points = tree.n_nodes - 4
        assert -0.45 * (points - 1) - 0.02 < found - shift - mass < 0.2 * (points - 1) + 0.02


def test_the_mass_of_a_tree_hardly_depends_on_the_seed():
    _, data = sample_data(TreePrior(), 100, 4, jax.random.key(0), noise=0.01)
    found = search_trees(data, key=jax.random.key(1), steps=0, noise=0.01, keep=1, backend=BACKEND)
    masses = [log_mass(found.problem, found.best.state, np.random.default_rng(seed), draws=240) for seed in range(8)]
    assert np.std(masses) < 1.0
