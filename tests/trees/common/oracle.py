"""Answers by other means than the package's: dense Gaussians, and trees built by hand one change at a time."""

import numpy as np
from scipy.stats import multivariate_normal

from cavity.models.trees.prior import log_prior
from cavity.models.trees.shapes.arrays import Leaves, Messages
from cavity.models.trees.tree import ORIGIN, Tree


def dense_evidence(tree, leaves: Leaves):
    """Log density of the leaves' Gaussians given the tree, unit diffusion variance: one dense Gaussian per column."""
    mean = np.asarray(leaves.mean)
    variance = np.broadcast_to(leaves.variance, mean.shape)
    total = 0.0
    for column in range(mean.shape[1]):
        known = np.isfinite(variance[:, column])
        if known.any():
            covariance = tree.shared_time[np.ix_(known, known)] + np.diag(variance[known, column])
            total += multivariate_normal.logpdf(mean[known, column], np.zeros(known.sum()), covariance)
    return float(total)


def dense_sweep(tree):
    """The sweep of one tree, of what `fit_sites` reads: each leaf given all others, from one dense Gaussian."""

    def sweep(arrays, leaves):
        rows, columns = leaves.mean.shape
        variance = np.broadcast_to(leaves.variance, leaves.mean.shape)
        mean, spread = np.zeros((2 * rows, columns)), np.zeros((2 * rows, columns))
        covariance = tree.shared_time
        length = tree.length[:rows]
        for d in range(columns):
            for i in range(rows):
                others = [j for j in range(rows) if j != i and np.isfinite(variance[j, d])]
                inside = covariance[np.ix_(others, others)] + np.diag(variance[others, d])
                weights = np.linalg.solve(inside, covariance[others, i]) if others else np.zeros(0)
                mean[i, d] = weights @ leaves.mean[others, d]
                spread[i, d] = 1.0 - weights @ covariance[others, i] - length[i]
        none = np.zeros_like(mean)
        return Messages(none, none, mean, spread, dense_evidence(tree, leaves))

    return sweep


def log_joint(tree, leaves, prior, measure="depth"):
    return dense_evidence(tree, leaves) + log_prior(tree, prior, measure)


def detached(tree, node):
    """The tree without the leaves below `node`, and their numbers; a branch point left with one child disappears."""
    gone = tree.members[node]
    return restricted(tree, np.flatnonzero(~gone)), np.flatnonzero(gone)


def restricted(tree, kept):
    """The tree of some leaves, renumbered in the order given."""
    kept = list(kept)
    parent, depth = [None] * len(kept), [np.inf] * len(kept)
    number = {leaf: i for i, leaf in enumerate(kept)}

    def add(node, above):
        below = [child for child in tree.children[node] if tree.members[child][kept].any()]
        if node < tree.n_leaves:
            parent[number[node]] = above
        elif len(below) == 1:
            add(below[0], above)
        else:
            parent.append(above)
            depth.append(tree.depth[node])
            place = len(parent) - 1
            for child in below:
                add(child, place)

    add(tree.top, ORIGIN)
    return Tree(np.array(parent), np.array(depth), tuple(tree.names[leaf] for leaf in kept))


def with_leaf(tree, branch, depth=None):
    """One more leaf, the last one: on the branch above `branch` at a depth, or at the branch point `branch` itself."""
    n = tree.n_leaves
    shift = np.where(tree.parent >= n, tree.parent + 1, tree.parent)
    parent = np.concatenate([shift[:n], [0], shift[n:]])
    depths = np.concatenate([tree.depth[:n], [np.inf], tree.depth[n:]])
    moved = branch + (branch >= n)
    if depth is None:
        parent[n] = moved
    else:
        parent = np.append(parent, parent[moved])
        parent[moved] = parent[n] = len(parent) - 1
        depths = np.append(depths, depth)
    return Tree(parent, depths)


def random_tree(random, n, many=0.0):
    """Any tree, for laws: leaves join random branches, or with probability `many` random branch points."""
    tree = (
        Tree(np.array([2, 2, -1]), np.array([np.inf, np.inf, random.exponential()]))
        if n > 1
        else Tree(np.array([-1]), np.array([np.inf]))
    )
    while tree.n_leaves < n:
        if random.random() < many:
            tree = with_leaf(tree, random.integers(tree.n_leaves, tree.n_nodes))
            continue
        branch = random.integers(tree.n_nodes)
        above = 0.0 if tree.parent[branch] == ORIGIN else tree.depth[tree.parent[branch]]
        last = tree.depth[branch] if np.isfinite(tree.depth[branch]) else above + 3.0
        tree = with_leaf(tree, branch, above + (last - above) * random.uniform(0.05, 0.95))
    return tree
