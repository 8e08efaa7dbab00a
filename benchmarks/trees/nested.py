"""Nested Chinese restaurants of finitely many levels, whose limits are the diffusion trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from cavity.engine.mcmc.keys import generator
from cavity.factors.errors import DataError
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.tree import ORIGIN, Tree


def sample_nested(prior: TreePrior, n: int, levels: int, key: Any) -> Tree:
    """A tree from `levels` nested partitions, which tends to a draw of `sample_tree` as levels grow.

    Level s = 1 .. S stands at time (s - 1) / S. With m points before it in a block that has not been parted there,
    a point parts with probability `g / (1 + g)`, `g = a(t_s) Gamma(m - discount) / (S Gamma(m + 1 + concentration))`;
    in a block that has, it chooses as at a branch point of `TreePrior`. Unlike the limit this is not exchangeable.
    With concentration and discount zero it is binary at every S, where `sample_nested_crp` is not.

    Points that the last level leaves together part at time 1 - 1 / (2 S): the approximation says no more of them.

    Args:
        prior: the prior of the limit.
        n: number of leaves, at least 1.
        levels: S, at least 1.
        key: a key of `jax.random`.

    Source: knowles2012thesis.
    """
    m = np.arange(1, n + 1, dtype=np.float64)
    rate = np.exp(gammaln(m - prior.discount) - gammaln(m + 1.0 + prior.concentration))
    most = n if prior.most_children is None else prior.most_children

    def weights(level: int, counts: list[int]) -> list[float]:
        new = prior.concentration + len(counts) * prior.discount if len(counts) < most else 0.0
        return [*(count - prior.discount for count in counts), new]

    return _sample(prior.divergence, rate, weights, n, levels, key)


def sample_nested_crp(divergence: Divergence, n: int, levels: int, key: Any) -> Tree:
    """A tree from nested Chinese restaurant processes with the concentration `a(t_s) / S` at level s = 1 .. S, which
    tends to the Dirichlet diffusion tree as levels grow.

    At every finite S it is exchangeable and has branch points of three and more children, whose number vanishes in
    the limit. See `sample_nested` for levels, arguments, and points that the last level leaves together.

    Source: knowles2012thesis.
    """
    intensity = _intensity(divergence, levels) / levels

    def weights(level: int, counts: list[int]) -> list[float]:
        return [*map(float, counts), float(intensity[level])]

    return _sample(divergence, 1.0 / np.arange(1, n + 1), weights, n, levels, key)


def _intensity(divergence: Divergence, levels: int) -> np.ndarray:
    """(levels,) the divergence function at the times of the levels."""
    left = 1.0 - np.arange(levels) / levels
    return divergence.intensity(-np.log(left)) / left


def _sample(divergence: Divergence, rate: np.ndarray, weights: Any, n: int, levels: int, key: Any) -> Tree:
    if n < 1 or levels < 1:
        raise DataError(f"Nested partitions take at least one point and one level; asked: {n} points, {levels} levels.")
    random, intensity = generator(key), _intensity(divergence, levels) / levels
    parent, count, level = [ORIGIN] * n, [1] * n, [levels] * n  # a leaf is below the last level
    children: list[list[int]] = [[] for _ in range(n)]
    hazard: dict[int, np.ndarray] = {}
    top = 0

    def first_parting(m: int, start: int, stop: int) -> int:
        """The first level from start on, and before stop, at which a point leaves m others; stop if there is none."""
        if m not in hazard:  # sum of -log(1 - p) over the levels before each
            hazard[m] = np.concatenate([[0.0], np.cumsum(np.log1p(intensity * rate[m - 1]))])
        spent = hazard[m][start] + random.standard_exponential()
        return min(int(np.searchsorted(hazard[m], spent, side="left")) - 1, stop)

    def join(point: int) -> None:
        nonlocal top
        node, above, start = top, ORIGIN, 0
        while True:
            parted = first_parting(count[node], start, level[node])
            if parted < level[node] or node < n:  # a new branch point; at the last level, of points left together
                new = len(parent)
                parent.append(above)
                count.append(count[node] + 1)
                level.append(parted)
                children.append([node, point])
                parent[node] = parent[point] = new
                if above == ORIGIN:
                    top = new
                else:
                    children[above][children[above].index(node)] = new
                return
            count[node] += 1
            chosen = len(children[node])  # points that reach a block of the last level join it
            if level[node] < levels:
                shares = np.cumsum(weights(level[node], [count[child] for child in children[node]]))
                chosen = int(np.searchsorted(shares, random.random() * shares[-1], side="right"))
            if chosen == len(children[node]):
                children[node].append(point)
                parent[point] = node
                return
            above, start, node = node, level[node] + 1, children[node][chosen]

    for point in range(1, n):
        join(point)
    place = np.array(level[n:], dtype=np.float64)
    time_left = np.where(place == levels, 0.5, levels - place) / levels
    return Tree(np.array(parent), np.concatenate([np.full(n, np.inf), -np.log(time_left)]))
