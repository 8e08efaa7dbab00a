"""Building a tree leaf by leaf, and greedy search by detaching subtrees and attaching them where they fit best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..prior import Tables
from ..shapes.arrays import Arrays, Leaves
from .best import CELLS, best_by_density, best_by_mass
from .jit import called, kernel, uniform
from .messages import renew, sweep_up
from .places import piece_of, score_one, scratch, survey
from .prior import log_prior, prior_of
from .state import add_count, attach, detach, empty, exact, hang, load, preorder, store, whole


@kernel
def log_joint(s: Any, prior: Any) -> Any:
    """Log joint density; renews all upward messages."""
    order = np.empty(len(s.parent), np.int64)
    return sweep_up(s, order, preorder(s, order)) + log_prior(s, prior)


@called
def find(s: Any, prior: Any, piece: Any, places: Any, log_mass: Any) -> Any:
    """The best place for a piece: index among `n` places, whether it joins a branch point, depth, score, n."""
    n = survey(s, prior, piece, places, False)
    if prior.new[3] > -np.inf:
        where, joins, depth, value = best_by_mass(s, prior, piece, places, n, log_mass)
        return where, joins, depth, value, n
    where, depth, value = best_by_density(s, prior, piece, places, n)
    return where, False, depth, value, n


@called
def add(s: Any, prior: Any, v: Any, places: Any, log_mass: Any) -> Any:
    """Attach v at its best place."""
    where, joins, depth, _, _ = find(s, prior, piece_of(s, v), places, log_mass)
    renew(s, attach(s, v, places.node[where], joins, depth))


@called
def random_subtree(s: Any, random: Any) -> Any:
    """A node drawn from all but the top."""
    rows = len(s.parent)
    while True:
        v = int(uniform(random) * (rows - 1))
        if s.parent[v] >= 0 and s.parent[v] != rows - 1:
            return v


@kernel
def room_for_masses(prior: Any, rows: Any) -> Any:
    """Scratch of `best_by_mass`, empty where trees are binary."""
    return np.zeros((rows if prior.new[3] > -np.inf else 1, CELLS + 1))


@kernel
def _build(leaves: Any, prior: Any, order: Any) -> Any:
    s = empty(leaves)
    rows, columns = s.mean.shape
    places, log_mass = scratch(rows, columns, s.variance.shape[1]), room_for_masses(prior, rows)
    hang(s, order[0], rows - 1)
    add_count(s, rows - 1, 1)
    renew(s, rows - 1)
    for k in range(1, len(order)):
        add(s, prior, order[k], places, log_mass)
    return s, log_joint(s, prior)


@called
def step(s: Any, prior: Any, v: Any, places: Any, log_mass: Any) -> Any:
    """Detach v and attach it at its best place; returns the gain in log joint."""
    before = s.depth[s.parent[v]]
    node, joined, low = detach(s, v)
    renew(s, low)
    piece = piece_of(s, v)
    where, joins, depth, value, _ = find(s, prior, piece, places, log_mass)
    old = 0
    while places.node[old] != node:
        old += 1
    if joined:
        worth = places.point[old]
    else:
        worth = score_one(s, prior, piece, places, old, before)
    # Where trees are binary, stay unless density is gained; else the larger mass decided, and density only on a branch.
    same = where == old and joins == joined
    stay = where < 0 or (value <= worth and (same or not prior.new[3] > -np.inf))
    if stay:
        renew(s, attach(s, v, node, joined, before))
        return 0.0
    renew(s, attach(s, v, places.node[where], joins, depth))
    return value - worth


@kernel
def _search(arrays: Any, leaves: Any, prior: Any, seed: Any, steps: Any) -> Any:
    s = load(arrays, leaves)
    rows, columns = s.mean.shape
    joint, trace = log_joint(s, prior), np.zeros(steps)
    places, log_mass = scratch(rows, columns, s.variance.shape[1]), room_for_masses(prior, rows)
    random = np.full(1, seed, np.uint64)
    for k in range(steps):
        if rows > 2:
            joint += step(s, prior, random_subtree(s, random), places, log_mass)
        trace[k] = joint
    return store(s), log_joint(s, prior), trace


@kernel
def _built(leaves: Any, prior: Any, order: Any) -> Any:
    s, joint = _build(leaves, prior, order)
    return store(s), joint


def build(leaves: Leaves, tables: Tables, order: np.ndarray, seed: int) -> tuple[Arrays, float]:
    """A tree to which leaves are added one by one, each at the best of all places.

    Args:
        leaves: Gaussians of the leaves, in units where the diffusion variance is 1.
        tables: of the prior.
        order: (N,) the leaves in the order in which they are added.
        seed: not used: nothing is drawn.

    Returns:
        The tree and its log joint density with respect to depths.

    Source: knowles2015pitman.
    """
    del seed
    return _built(exact(leaves), prior_of(tables), np.require(order, np.int64, ["C", "W"]))


def search(arrays: Arrays, leaves: Leaves, tables: Tables, seed: int, steps: int) -> tuple[Arrays, float, np.ndarray]:
    """Greedy search: detach a random subtree, score all places, attach it at the best one; again and again.

    Where trees are binary, no step decreases the log joint density. Where branch points can have more children, the
    place (a branch or a branch point) is decided by its mass, the density integrated over depth.

    Args:
        arrays: the tree to start from.
        leaves: Gaussians of the leaves, in units where the diffusion variance is 1.
        tables: of the prior.
        seed: of the subtrees' choice.
        steps: how many.

    Returns:
        The tree, its log joint density with respect to depths, and (steps,) that density after each step.

    Source: knowles2015pitman.
    """
    return _search(whole(arrays), exact(leaves), prior_of(tables), int(seed), int(steps))
