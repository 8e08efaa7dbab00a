"""Features that run in families: rows are leaves of a tree, and near relatives share what an ancestor came to have.

A feature is absent at the root. Down each branch it appears at a rate of its own, and stays: a leaf has it where it
appeared on the way. The rate is such that a single leaf has it with the feature's weight, whatever the tree.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.special import digamma

from ....engine.mcmc.keys import generator
from ....factors.errors import DataError
from ...trees.tree import ORIGIN, Tree
from ..checks import binary, positive
from .columns import log_of_class, used_columns

ODDS = np.arange(-45.0, 45.05, 0.1)  # log odds of weights: the trapezoidal rule, exact to rounding as ends vanish


@dataclasses.dataclass(frozen=True)
class PhylogeneticBuffet:
    """The phylogenetic Indian buffet process: a feature of weight w appears along branches at the rate `-log(1 - w)`.

    Times run from 0 at the root to 1 at the leaves, so that a leaf has the feature with probability w; weights are a
    Poisson process of intensity `mass / w`. Each row has Poisson(mass) features, and all have Poisson(`mass H(L)`), L
    the length of the whole tree and `H(L) = digamma(L + 1) - digamma(1)`. Where all branches meet at the root this is
    the Indian buffet process.

    Args:
        tree: whose leaves are the rows.
        mass: positive; the expected number of features of a row.

    Raises:
        ModelError: a mass that is not a finite number above zero.

    Source: miller2008phylogenetic.
    """

    tree: Tree
    mass: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", positive("mass", self.mass))

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.tree.n_leaves

    def expected_features(self) -> float:
        """Expected number of features that any row has, `mass H(L)`; it is Poisson."""
        return self.mass * float(digamma(self.tree.length.sum() + 1.0) - digamma(1.0))

    def expected_ones(self) -> float:
        """Expected number of ones, `mass rows`."""
        return self.mass * self.rows

    def log_probability(self, matrix: Any) -> float:
        """Log probability of the matrix up to the order of its columns.

        `exp(-mass H(L)) prod_k rate(column k) / prod_h K_h!`, K_h columns alike and `rate(z) = mass int P(z | w) / w
        dw` over 0 < w < 1, P by one pass up the tree.

        Args:
            matrix: (rows, features) of zeros and ones, rows in the order of the leaves; empty columns count for
                nothing.

        Raises:
            DataError: other entries than 0 and 1, or another number of rows than leaves.

        Source: miller2008phylogenetic.
        """
        values = binary(matrix)
        if len(values) != self.rows:
            raise DataError(f"The tree has {self.rows} leaves; found a matrix of {len(values)} rows.")
        used = used_columns(values)
        return log_of_class(self.log_rates(used), used, self.expected_features())

    def log_rates(self, columns: np.ndarray) -> np.ndarray:
        """(features,) log expected numbers of columns like these (rows, features), none of them empty."""
        log_off = -np.logaddexp(0.0, ODDS)
        integrand = self._log_of_column(columns, log_off) + log_off  # as dw / w is (1 - w) d log odds
        return np.log(self.mass) + np.logaddexp.reduce(integrand, axis=1) + np.log(ODDS[1] - ODDS[0])

    def sample(self, key: Any) -> np.ndarray:
        """(rows, features) booleans, no column empty.

        Branches are put end to end on a line of length L. A feature appears first at the point x of the line with
        intensity `mass int (1 - w)^x rate dw / w`, which with g = -log(1 - w), the rate, is `mass sum over i of int g
        exp(-(x + 1 + i) g) dg`: so i and x together have the density `1 / (x + 1 + i)^2`, and g given them is Gamma(2,
        x + 1 + i). On the branches after it the feature appears or not, on its own.

        Args:
            key: a key of `jax.random`.
        """
        random, length = generator(key), self.tree.length
        total, ends = length.sum(), np.cumsum(length)
        features = random.poisson(self.expected_features())
        term = _first_terms(random.random(features), total)
        low, high = 1.0 / (term + 1.0 + total), 1.0 / (term + 1.0)
        place = 1.0 / (high - random.random(features) * (high - low)) - 1.0 - term
        rate = random.gamma(2.0, 1.0 / (place + 1.0 + term))
        first = np.minimum(np.searchsorted(ends, place), len(length) - 1)
        branch = np.arange(len(length))[:, None]
        appears = random.random((len(length), features)) < -np.expm1(-rate * length[:, None])
        appears = (appears & (branch > first)) | (branch == first)
        return self._at_leaves(appears)

    def _at_leaves(self, appears: np.ndarray) -> np.ndarray:
        """What leaves have, where features appear on the branch above each node."""
        has, parent = appears.copy(), self.tree.parent
        for node in self._downward():
            if parent[node] != ORIGIN:
                has[node] |= has[parent[node]]
        return has[: self.rows]

    def _log_of_column(self, columns: np.ndarray, log_off: np.ndarray) -> np.ndarray:
        """(features, weights) log probability of columns given log(1 - w), absent at the root."""
        shape = (self.tree.n_nodes, columns.shape[1], len(log_off))
        off, on = np.zeros(shape), np.zeros(shape)
        off[: self.rows], on[: self.rows] = (
            np.where(one, 0.0, -np.inf)[:, :, None] * np.ones(len(log_off)) for one in (~columns, columns)
        )
        top = np.zeros(shape[1:])
        for node in reversed(self._downward()):
            log_stay = self.tree.length[node] * log_off
            with np.errstate(divide="ignore"):
                log_appear = np.log(-np.expm1(log_stay))
            absent = np.logaddexp(log_stay + off[node], log_appear + on[node])
            above = self.tree.parent[node]
            if above == ORIGIN:
                top = absent
            else:
                off[above] += absent
                on[above] += on[node]
        return top

    def _downward(self) -> list[int]:
        """Nodes, each after its parent."""
        order = [self.tree.top]
        for node in order:
            order.extend(self.tree.children[node])
        return order


def _first_terms(u: np.ndarray, total: float) -> np.ndarray:
    """i = 0, 1, .. of probability proportional to `1 / (1 + i) - 1 / (1 + i + total)`, at these quantiles: by bisection
    of the sum up to i, in digamma functions."""

    def above(i: np.ndarray) -> np.ndarray:
        return digamma(i + 1.0 + total) - digamma(i + 1.0)  # the sum over i, i + 1, ..

    level = (1.0 - u) * above(np.zeros(()))
    low, high = np.zeros_like(u), np.ones_like(u)
    while (over := above(high) > level).any():
        high = np.where(over, 2.0 * high, high)
    for _ in range(64):
        middle = np.floor(0.5 * (low + high))
        more = above(middle) > level
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low
