"""The scores of all places by the numba kernels, of which the package uses one place or eight at a time."""

import math

import numpy as np

from cavity.models.trees.numba_kernels.jit import HUGE, kernel
from cavity.models.trees.numba_kernels.places import LANES, OUT, SPAN, Piece, Y, score_lanes, scratch, survey
from cavity.models.trees.numba_kernels.prior import prior_of
from cavity.models.trees.numba_kernels.state import load, whole
from cavity.models.trees.shapes.arrays import Leaves


@kernel
def _score_all(arrays, leaves, down_mean, down_variance, piece, prior, fractions):
    s = load(arrays, leaves[0])
    rows = len(s.parent)
    s.mean[:], s.variance[:] = leaves[1], leaves[2]
    places = scratch(rows, s.mean.shape[1], s.variance.shape[1])
    places.mean[:], places.variance[:] = down_mean, down_variance
    n = survey(s, prior, piece, places, True)
    branch, point = np.full((rows, len(fractions)), -np.inf), np.full(rows, -np.inf)
    for i in range(n):
        v, span = places.node[i], places.branch[i, SPAN]
        point[v] = places.point[i]
        for k in range(0, len(fractions), LANES):
            if not span > 0.0:
                break
            many = min(LANES, len(fractions) - k)
            for j in range(LANES):
                f = fractions[min(k + j, len(fractions) - 1)]
                places.lanes[j], places.lanes[Y + j] = f * span, (1.0 - f) * span
            score_lanes(s, prior, piece, places, i, 0)
            for j in range(many):
                branch[v, k + j] = places.lanes[OUT + j]
    return branch, point


def score(arrays, messages, subtree, tables, fractions):
    """Gains in log joint density when a subtree is attached: (2N, F) on every branch, (2N,) at every branch point."""
    ups, downs = (np.minimum(part, HUGE) for part in (messages.up_variance, messages.down_variance))
    parts = [np.require(part, np.float64, ["C", "W"]) for part in (messages.up_mean, ups, messages.down_mean, downs)]
    arrays, n = whole(arrays), len(arrays.parent) // 2
    variance = np.minimum(np.require(subtree.variance, np.float64, ["C", "W"]), HUGE)
    depth = float(subtree.depth)
    mean = np.require(subtree.mean, np.float64, ["C", "W"])
    piece = Piece(mean, variance, depth, math.exp(-depth), int(subtree.count))
    leaves = (Leaves(parts[0][:n].copy(), parts[1][:n].copy()), parts[0], parts[1])
    fractions = np.require(np.atleast_1d(fractions), np.float64, ["C", "W"])
    return _score_all(arrays, leaves, parts[2], parts[3], piece, prior_of(tables), fractions)
