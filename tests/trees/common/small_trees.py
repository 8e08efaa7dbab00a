"""Small trees with data from their prior, and a random walk over their times that asks the exact evidence."""

import jax
import numpy as np

from cavity.models.trees.likelihoods.leaves import to_leaves
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.prior import TreePrior, log_times
from cavity.models.trees.shapes.sample import sample_tree
from cavity.models.trees.tree import ORIGIN, Tree


def case(seed, leaves, columns, noise=0.0, prior=None):
    """A tree and data from the prior, and the tree with its times spread evenly."""
    tree = sample_tree(prior or TreePrior(), leaves, jax.random.key(seed))
    random = np.random.default_rng(seed)
    covariance = tree.shared_time + noise * np.eye(leaves)
    return spread_out(tree), random.multivariate_normal(np.zeros(leaves), covariance, size=columns).T, tree


def spread_out(tree):
    depth = tree.depth.copy()
    for node in tree.order[::-1]:
        if node >= tree.n_leaves:
            depth[node] = 0.3 + (0.0 if tree.parent[node] == ORIGIN else depth[tree.parent[node]])
    return Tree(tree.parent, depth)


def chain_of_depths(tree, values, prior, draws, step):
    """(draws, points) Metropolis over the logs of the depths, exact evidence."""
    random, points = np.random.default_rng(0), np.arange(tree.n_leaves, tree.n_nodes)
    leaves, _ = to_leaves(Data(values))

    def level(log_depth):
        depth = tree.depth.copy()
        depth[points] = np.exp(log_depth)
        above = np.where(tree.parent[points] == ORIGIN, 0.0, depth[tree.parent[points]])
        if (depth[points] <= above).any():
            return -np.inf
        return fast_joint(Tree(tree.parent, depth), leaves, prior) + log_depth.sum()

    at = np.log(tree.depth[points])
    now, kept = level(at), []
    for _ in range(draws):
        there = at + step * random.normal(size=len(points))
        new = level(there)
        if np.log(random.uniform()) < new - now:
            at, now = there, new
        kept.append(np.exp(at))
    return np.array(kept)


def fast_joint(tree, leaves, prior):
    covariance = tree.shared_time
    _, log_det = np.linalg.slogdet(2.0 * np.pi * covariance)
    square = np.sum(leaves.mean * np.linalg.solve(covariance, leaves.mean))
    return -0.5 * (leaves.mean.shape[1] * log_det + square) + log_times(tree, prior)
