"""Draws from the prior: trees by the sequential process, locations from the origin down, data."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.special import gammaln

from ....engine.mcmc.keys import generator
from ....factors.errors import DataError
from ..prior import TreePrior
from ..tree import ORIGIN, Tree


def sample_tree(prior: TreePrior, n: int, key: Any) -> Tree:
    """A tree of `n` leaves from its prior, by the sequential process: one point after another runs down the tree,
    leaves the path of the m points before it with intensity `a(t) Gamma(m - discount) / Gamma(m + 1 + concentration)`,
    and chooses at branch points (see `TreePrior`).

    The process is run in the integral of the divergence function, where every path is left at a constant rate, and
    its branch points are put on depths at the end. In times it would fail: a negative discount gives rates of order
    m^(discount - 1 - concentration), and most branch points would round to time 1, where a walk finds the wrong branch.

    Args:
        prior: the prior.
        n: number of leaves, at least 1.
        key: a key of `jax.random`.

    Returns:
        The tree, its leaves in the order of their arrival (which is exchangeable).

    Source: knowles2015pitman.
    """
    if n < 1:
        raise DataError(f"A tree has at least one leaf; asked: {n!r}.")
    random, m = generator(key), np.arange(1, n + 1, dtype=np.float64)
    rate = np.exp(gammaln(m - prior.discount) - gammaln(m + 1.0 + prior.concentration)).tolist()
    walk = _Walk(prior, n, rate, random)
    for point in range(1, n):
        walk.insert(point)
    integral = np.array(walk.level[n:])
    return Tree(np.array(walk.parent), np.concatenate([np.full(n, np.inf), prior.divergence.inverse(integral)]))


class _Walk:
    """The tree so far. Plain lists: the walk visits one node after another, where arrays would only cost."""

    def __init__(self, prior: TreePrior, n: int, rate: list[float], random: np.random.Generator) -> None:
        self.concentration, self.discount = prior.concentration, prior.discount
        self.most = n if prior.most_children is None else prior.most_children
        self.rate, self.random = rate, random
        self.parent, self.count = [ORIGIN] * n, [1] * n
        self.level = [float("inf")] * n  # integral of the divergence function down to each node
        self.children: list[list[int]] = [[] for _ in range(n)]
        self.top = 0

    def insert(self, point: int) -> None:
        """Runs one more point down the tree."""
        node, above, branch_of = self.top, 0.0, ORIGIN
        patience = self.random.standard_exponential()  # spent along the path; where it ends, the point diverges
        while True:
            room = (self.level[node] - above) * self.rate[self.count[node] - 1]
            if patience < room:
                return self._split(node, branch_of, point, above + patience / self.rate[self.count[node] - 1])
            patience -= room
            branch_of, above = node, self.level[node]
            chosen = self._choose(node)
            self.count[node] += 1
            if chosen is None:
                self.children[node].append(point)
                self.parent[point] = node
                return None
            node = chosen

    def _choose(self, node: int) -> int | None:
        """The child that the next point follows; None for a new one."""
        left = self.random.random() * (self.count[node] + self.concentration)
        for child in self.children[node]:
            left -= self.count[child] - self.discount
            if left < 0.0:
                return child
        return None if len(self.children[node]) < self.most else self.children[node][-1]  # rounding makes no new one

    def _split(self, node: int, above: int, point: int, level: float) -> None:
        """Puts a branch point on the branch above a node, with a new leaf below it."""
        new = len(self.parent)
        self.parent.append(above)
        self.count.append(self.count[node] + 1)
        self.level.append(level)
        self.children.append([node, point])
        self.parent[node] = self.parent[point] = new
        if above == ORIGIN:
            self.top = new
        else:
            siblings = self.children[above]
            siblings[siblings.index(node)] = new


def sample_locations(tree: Tree, columns: int, key: Any, variance: Any = 1.0) -> np.ndarray:
    """Locations of all nodes of a tree: `x_child ~ N(x_parent, variance (t_child - t_parent))` from the origin down.

    Args:
        tree: the tree.
        columns: number of columns, at least 1.
        key: a key of `jax.random`.
        variance: positive diffusion variance, one number or one for each column.

    Returns:
        (nodes, columns); the first `tree.n_leaves` rows are the leaves.
    """
    variance = np.asarray(variance, dtype=np.float64)
    if columns < 1:
        raise DataError(f"Locations have at least one column; asked: {columns!r}.")
    if variance.shape not in ((), (columns,)) or not (np.isfinite(variance).all() and (variance > 0.0).all()):
        raise DataError(
            f"The diffusion variance is a positive number, or one for each of {columns} columns; found {variance}."
        )
    location = generator(key).standard_normal((tree.n_nodes, columns)) * np.sqrt(variance * tree.length[:, None])
    for node in tree.order[-2::-1]:  # increments become locations, each node after its parent
        location[node] += location[tree.parent[node]]
    return location


def sample_data(
    prior: TreePrior, n: int, columns: int, key: Any, variance: Any = 1.0, noise: float = 0.0
) -> tuple[Tree, np.ndarray]:
    """A tree from its prior and data of its leaves, `location + N(0, noise)`.

    Args:
        prior: the prior.
        n: number of leaves.
        columns: number of columns.
        key: a key of `jax.random`.
        variance: positive diffusion variance, one number or one for each column.
        noise: non-negative variance of the noise.

    Returns:
        The tree and the (n, columns) data.
    """
    if not noise >= 0.0:
        raise DataError(f"The variance of the noise is a number >= 0; found {noise!r}.")
    of_tree, of_locations, of_noise = jax.random.split(key, 3)
    tree = sample_tree(prior, n, of_tree)
    location = sample_locations(tree, columns, of_locations, variance)[:n]
    return tree, location + np.sqrt(noise) * generator(of_noise).standard_normal(location.shape)
