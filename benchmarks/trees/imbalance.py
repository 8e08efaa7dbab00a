"""Shapes of trees: Colless's and Rogers' imbalance of binary ones, numbers of branch points, exact expectations."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from cavity.factors.errors import DataError, ModelError
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.tree import Tree


def colless(tree: Tree) -> float:
    """Colless's index of imbalance, `2 / ((n - 1) (n - 2))` times the sum over branch points of |left - right|, the
    difference of the numbers of leaves below the two children: 0 where all are even, 1 for a caterpillar.

    Raises:
        DataError: a tree of fewer than three leaves, or with a branch point of more than two children.

    Source: knowles2012thesis.
    """
    n = tree.n_leaves
    return float(2.0 * np.abs(_differences(tree)).sum() / ((n - 1) * (n - 2)))


def unbalanced(tree: Tree) -> float:
    """Rogers' J, the number of branch points whose two children have different numbers of leaves, over n - 2.

    Raises:
        DataError: a tree of fewer than three leaves, or with a branch point of more than two children.

    Source: knowles2012thesis.
    """
    return float(np.count_nonzero(_differences(tree)) / (tree.n_leaves - 2))


def expected_imbalance(discount: float, n: int) -> tuple[float, float]:
    """Expectations of `colless` and `unbalanced` over trees of the binary family, `concentration = -2 discount`.

    Each clade of m leaves splits into l and m - l of them with probability proportional to
    `C(m, l) Gamma(l - discount) Gamma(m - l - discount)`, whatever the divergence function, so that both sums obey
    `E(m) = sum over l of p(l) (E(l) + E(m - l) + term(l))`.

    Args:
        discount: below 1; 0 is the Dirichlet diffusion tree.
        n: number of leaves, at least 3.

    Returns:
        The expectations of Colless's index and of Rogers' J.

    Raises:
        ModelError: a discount of 1 or more.
        DataError: fewer than three leaves.

    Source: knowles2012thesis.
    """
    if not discount < 1.0:
        raise ModelError(f"The discount is below 1; found {discount!r}.")
    if n < 3:
        raise DataError(f"Imbalance is a property of trees of three leaves or more; asked: {n!r}.")
    difference, uneven = np.zeros(n + 1), np.zeros(n + 1)
    for m in range(2, n + 1):
        left = np.arange(1, m)
        share = np.exp(log_split(discount, m))
        gap = np.abs(m - 2 * left)
        difference[m] = share @ (gap + difference[left] + difference[m - left])
        uneven[m] = share @ ((gap > 0) + uneven[left] + uneven[m - left])
    return float(2.0 * difference[n] / ((n - 1) * (n - 2))), float(uneven[n] / (n - 2))


def expected_branch_points(prior: TreePrior, n: int) -> float:
    """Expectation of the number of branch points of a tree of n leaves: n - 1 where it is binary, less where it is not.

    Below a branch point of m leaves the expected number of children with j < m leaves is proportional to
    `C(m, j) Gamma(j - discount) Gamma(m - j + concentration + discount)`, and the leaves below them sum to m.

    Args:
        prior: the prior; its divergence function does not matter.
        n: number of leaves, at least 1.
    """
    expected = np.zeros(n + 1)
    for m in range(2, n + 1):
        size = np.arange(1, m)
        log_weight = gammaln(size - prior.discount) - gammaln(size + 1.0) - gammaln(m - size + 1.0)
        log_weight += gammaln(m - size + prior.concentration + prior.discount)
        weight = np.exp(log_weight - log_weight.max())
        expected[m] = 1.0 + m * (weight @ expected[size]) / (weight @ size)
    return float(expected[n])


def log_split(discount: float, m: int) -> np.ndarray:
    """(m - 1,) log probability that a clade of m leaves splits into l and m - l, for l = 1 .. m - 1."""
    left = np.arange(1, m)
    weight = gammaln(left - discount) - gammaln(left + 1.0)
    weight = weight + weight[::-1]
    return weight - np.logaddexp.reduce(weight)


def _differences(tree: Tree) -> np.ndarray:
    """Of the numbers of leaves below the two children of each branch point."""
    if tree.n_leaves < 3:
        raise DataError(f"Imbalance is a property of trees of three leaves or more; found {tree.n_leaves}.")
    below = tree.children[tree.n_leaves :]
    if (most := max(len(children) for children in below)) > 2:
        raise DataError(f"Imbalance is a property of binary trees; found a branch point with {most} children.")
    pairs = tree.count[np.array(below)]
    return pairs[:, 0] - pairs[:, 1]
