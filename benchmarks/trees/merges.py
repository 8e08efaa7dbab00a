"""Bayesian hierarchical clustering (Heller and Ghahramani 2005): clusters merge where one is more probable.

A node's rows are one cluster, or divided as its subtrees have them: `p(D|T) = pi p(D|one) + (1 - pi) p(D_i|T_i)
p(D_j|T_j)`, with the weights of a Dirichlet process mixture, `pi = mass Gamma(n) / d`, `d = mass Gamma(n) + d_i d_j`.
Of all pairs that with the largest probability of being one merges next. `p(D|T)` is a lower bound on the evidence of
the mixture, over the partitions that the tree has.
"""

from typing import NamedTuple

import numpy as np
from conjugate import Law, Sums, laws, log_marginal, log_predictive, sums_of
from scipy.special import gammaln, logsumexp


class Merges(NamedTuple):
    """A binary tree over n rows, its nodes the rows and then the merges in their order.

    Attributes:
        children: (n - 1, 2) nodes.
        log_odds: (2 n - 1,) of a node's rows being one cluster, infinite for rows.
        log_evidence: of all rows given the tree.
        sums: of each node.
        mass, law: of the Dirichlet process, and the prior of Gaussians.
    """

    children: np.ndarray
    log_odds: np.ndarray
    log_evidence: float
    sums: Sums
    mass: float
    law: Law


def merge(rows, law, mass=1.0):
    """The tree of greedy merges, one row after another: the cost is that of rows squared."""
    n = len(rows)
    own = sums_of(rows, law)
    sums = Sums(
        *(np.concatenate([part, np.zeros((n - 1, *part.shape[1:]))]) for part in (own.number, own.total, own.square))
    )
    log_d, log_tree = np.full(2 * n - 1, np.log(mass)), np.zeros(2 * n - 1)
    log_tree[:n] = log_marginal(own, law)
    log_odds, children = np.full(2 * n - 1, np.inf), np.zeros((n - 1, 2), int)
    alive = list(range(n))
    best = np.full((2 * n - 1, 2 * n - 1), -np.inf)

    def weighed(node, others):
        """Log odds of one cluster for a node with each of others; and log d and log p(D|T)."""
        both = sums[[node]] + sums[others]
        one = np.log(mass) + gammaln(both.number)
        apart = log_d[node] + log_d[others]
        d = np.logaddexp(one, apart)
        whole, parts = one - d + log_marginal(both, law), apart - d + log_tree[node] + log_tree[others]
        return whole - parts, d, np.logaddexp(whole, parts)

    for place, node in enumerate(alive[:-1]):
        others = np.array(alive[place + 1 :])
        best[node, others] = weighed(node, others)[0]
    for step in range(n - 1):
        new, table = n + step, best[np.ix_(alive, alive)]
        i, j = (alive[place] for place in np.unravel_index(table.argmax(), table.shape))
        odds, d, tree = weighed(i, np.array([j]))
        children[step], log_odds[new], log_d[new], log_tree[new] = (i, j), odds[0], d[0], tree[0]
        for part in (sums.number, sums.total, sums.square):
            part[new] = part[i] + part[j]
        alive = [node for node in alive if node not in (i, j)]
        if alive:
            best[np.array(alive), new] = weighed(new, np.array(alive))[0]
        alive.append(new)
    return Merges(children, log_odds, float(log_tree[-1]), sums, mass, law)


def best_merge(rows, masses=(0.1, 1.0, 10.0), columns=False, grid=None):
    """The tree of the largest evidence over a grid of masses and priors."""
    grid = laws(rows.shape[1], columns)[1::3] if grid is None else grid
    return max((merge(rows, law, mass) for law in grid for mass in masses), key=lambda each: each.log_evidence)


def shares(found):
    """(nodes,) probability that a node's rows are a cluster: that they are one, and that those above are not."""
    n = len(found.children) + 1
    one, whole = -np.logaddexp(0.0, -found.log_odds), -np.logaddexp(0.0, found.log_odds)
    above = np.zeros(2 * n - 1)
    for step in range(n - 2, -1, -1):
        above[found.children[step]] = above[n + step] + whole[n + step]
    return np.exp(above + one)


def log_density(found, test):
    """(tests,) log density of new rows: of the mixture, over the partitions that the tree has."""
    n = len(found.children) + 1
    weight = shares(found) * found.sums.number / (n + found.mass)
    nothing = Sums(
        *(np.zeros((1, *part.shape[1:])) for part in (found.sums.number, found.sums.total, found.sums.square))
    )
    some = np.flatnonzero(weight > 1e-14)
    every = Sums(*(np.concatenate([one, two]) for one, two in zip(found.sums[some], nothing, strict=True)))
    weight = np.append(weight[some], found.mass / (n + found.mass))
    return logsumexp(log_predictive(test, every, found.law) + np.log(weight), axis=1)


def clusters(found, number=None):
    """(rows,) clusters: the tree cut where one cluster is improbable, or at the last merges into so many."""
    n = len(found.children) + 1
    joined = np.arange(n - 1) < n - number if number is not None else found.log_odds[n:] > 0.0
    label = np.arange(2 * n - 1)
    for node in range(2 * n - 2, n - 1, -1):  # from the top: what is below one cluster is in it, whatever its own odds
        if joined[node - n] or label[node] != node:
            label[found.children[node - n]] = label[node]
    return np.unique(label[:n], return_inverse=True)[1]


def hierarchical(train, test):
    """Log densities of new rows, as `baselines` has others."""
    return log_density(best_merge(train), test)
