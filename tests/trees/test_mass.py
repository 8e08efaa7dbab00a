"""The mass of a tree: each branch point's interval against dense quadrature of the joint density."""

import itertools

import numpy as np
import pytest
from oracle import log_joint, random_tree
from scipy import integrate

from cavity.models.trees.arrays import Leaves, pack
from cavity.models.trees.backend import kernels
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.mass import log_intervals
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.tree import Tree

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
