"""Slice sampling of divergence times, one branch point after another in one pass over the tree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..prior import Tables
from ..shapes.arrays import GAP, Arrays, Leaves
from .jit import LOG_2PI, called, flat_or, inner, kernel, log, uniform
from .messages import cavity, merge
from .prior import cumulative, intensity, prior_of
from .search import log_joint
from .state import exact, load, place, store, whole

WIDTH = 0.5  # in depth, of the first slice interval and of the steps by which it grows


@called
def density(s: Any, prior: Any, mean: Any, variance: Any, v: Any, depth: Any) -> Any:
    """Log joint as a function of the depth of v, up to a constant; leaves v there, its upward message renewed."""
    place(s, v, depth)
    merge(s, v)
    columns, parts = s.mean.shape[1], s.variance.shape[1]
    total, square = 0.0, 0.0
    if parts > 1:
        for d in range(columns):
            spread = s.variance[v, d] + s.length[v] + variance[v, d]
            total -= 0.5 * flat_or(spread, log(spread) + LOG_2PI + (s.mean[v, d] - mean[v, d]) ** 2 / spread)
    else:
        for d in range(columns):
            square += (s.mean[v, d] - mean[v, d]) ** 2
        spread = s.variance[v, 0] + s.length[v] + variance[v, 0]
        total = flat_or(spread, -0.5 * (columns * (log(spread) + LOG_2PI) + square / spread))
    slope, below = -prior.harmonic[s.count[v] - 1], s.child[v]
    while below >= 0:
        slope += prior.harmonic[s.count[below] - 1]
        below = s.next[below]
    return total + s.norm[v] + log(intensity(prior, s.rest[v])) + slope * cumulative(prior, depth, s.rest[v])


@called
def slice_depth(s: Any, prior: Any, mean: Any, variance: Any, v: Any, random: Any) -> Any:
    """Draw the depth of v by slice sampling: stepping out, then shrinking."""
    low, high, below = s.depth[s.parent[v]] + GAP, math.inf, s.child[v]
    while below >= 0:
        high = min(high, s.depth[below] - GAP)
        below = s.next[below]
    now = s.depth[v]
    if not low <= now <= high:  # a tree from elsewhere with two branch points of one depth
        return
    level = density(s, prior, mean, variance, v, now) + math.log(uniform(random))
    left = now - WIDTH * uniform(random)
    right = left + WIDTH
    while left > low and density(s, prior, mean, variance, v, left) > level:
        left -= WIDTH
    while right < high and density(s, prior, mean, variance, v, right) > level:
        right += WIDTH
    left, right = max(left, low), min(right, high)
    while True:
        new = left + uniform(random) * (right - left)
        if density(s, prior, mean, variance, v, new) > level or new == now:
            return
        if new < now:
            left = new
        else:
            right = new


@inner
def branch_point_from(s: Any, v: Any) -> Any:
    """The first branch point among v and its later siblings; -1 where there is none."""
    while v >= 0 and s.child[v] < 0:
        v = s.next[v]
    return v


@called
def sweep_depths(s: Any, prior: Any, mean: Any, variance: Any, random: Any) -> Any:
    """Draw every depth once. Messages from above are renewed on the way down, those from below on the way up."""
    origin = len(s.parent) - 1
    v = branch_point_from(s, s.child[origin])
    while v >= 0:
        cavity(s, mean, variance, s.parent[v], v, v)
        slice_depth(s, prior, mean, variance, v, random)
        merge(s, v)
        below = branch_point_from(s, s.child[v])
        while below < 0 and v != origin:
            below, v = branch_point_from(s, s.next[v]), s.parent[v]
            merge(s, v)
        v = below


@kernel
def _depth_moves(arrays: Any, leaves: Any, prior: Any, seed: Any) -> Any:
    s = load(arrays, leaves)
    log_joint(s, prior)
    mean, variance = np.zeros(s.mean.shape), np.zeros(s.variance.shape)
    sweep_depths(s, prior, mean, variance, np.full(1, seed, np.uint64))
    return store(s)


def depth_moves(arrays: Arrays, leaves: Leaves, tables: Tables, seed: int) -> Arrays:
    """One slice-sampling update of every divergence time given the structure.

    Args:
        arrays: a tree.
        leaves: Gaussians of the leaves, in units where the diffusion variance is 1.
        tables: of the prior.
        seed: of the draws.

    Source: knowles2012thesis.
    """
    return _depth_moves(whole(arrays), exact(leaves), prior_of(tables), int(seed))
