"""The mass of each divergence time: the integral of the joint density over one depth, the others fixed.

The log joint density of a tree with k branch points is a density in k dimensions: a tree with one more is not larger
or smaller than it. Each branch point's own interval makes a mass of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..divergence import Divergence
from ..prior import Tables
from ..shapes.arrays import Arrays, Messages
from .times import branch_points

NEGLIGIBLE = 30.0  # nats below the maximum that an interval's ends may be at
POINTS = 20  # profiles have one maximum, so that a few points find the part that counts
ZOOMS = 4
FAR = np.geomspace(0.01, 512.0, 2 * POINTS)  # depths below its parent that a branch point above leaves only may be at
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
BLOCK = 1 << 14  # numbers in the largest temporary array: what the processor's caches hold


def log_intervals(arrays: Arrays, messages: Messages, tables: Tables) -> np.ndarray:
    """(points,) log of the integral over each branch point's depth, the other depths fixed, of the joint density over
    its value at the present depth: minus the log density of a depth given the others. Order as `branch_points`.
    Gaussian leaves, with `messages` of one sweep at these depths.
    """
    points, degree = branch_points(arrays), np.asarray(arrays.degree)
    children, found = _children(arrays), np.zeros(len(arrays.parent))
    columns = messages.up_variance.shape[1]
    for many in np.unique(degree[points]):
        alike = points[degree[points] == many]
        size = max(1, BLOCK // (len(NODES) * columns))
        for start in range(0, len(alike), size):
            some = alike[start : start + size]
            found[some] = _log_intervals(arrays, messages, tables, some, np.array([children[v] for v in some]))
    return found[points]


def _children(arrays: Arrays) -> dict[int, list[int]]:
    below: dict[int, list[int]] = {}
    for node, above in enumerate(np.asarray(arrays.parent).tolist()):
        below.setdefault(above, []).append(node)
    return below


def _log_intervals(
    arrays: Arrays, messages: Messages, tables: Tables, points: np.ndarray, children: np.ndarray
) -> np.ndarray:
    """Of branch points (V,) with equally many children (V, K): Gauss' rule on the part of a range where it counts."""
    depth = np.asarray(arrays.depth)
    profile = _profiles(arrays, messages, tables, points, children)
    low, high = depth[np.asarray(arrays.parent)[points]], depth[children].min(axis=1)
    high = np.where(np.isinf(high), _far(profile, low), high)
    share = np.linspace(1e-9, 1.0 - 1e-9, POINTS)
    for _ in range(ZOOMS):
        grid = low[:, None] + (high - low)[:, None] * share
        values = profile(grid)
        counts = values > values.max(axis=1, keepdims=True) - NEGLIGIBLE
        first, last = counts.argmax(axis=1), POINTS - 1 - counts[:, ::-1].argmax(axis=1)
        row = np.arange(len(points))
        low, high = grid[row, np.maximum(first - 1, 0)], grid[row, np.minimum(last + 1, POINTS - 1)]
    half = 0.5 * (high - low)
    values = profile(low[:, None] + half[:, None] * (1.0 + NODES))
    peak = values.max(axis=1)
    area = half * (np.exp(values - peak[:, None]) @ WEIGHTS)
    return peak + np.log(area) - profile(depth[points][:, None])[:, 0]


def _far(profile: Callable, low: np.ndarray) -> np.ndarray:
    """Depths beyond which a branch point above leaves only has no mass."""
    grid = low[:, None] + FAR
    values = profile(grid)
    counts = values > values.max(axis=1, keepdims=True) - NEGLIGIBLE
    last = len(FAR) - 1 - counts[:, ::-1].argmax(axis=1)
    return grid[np.arange(len(low)), np.minimum(last + 1, len(FAR) - 1)]


def _profiles(
    arrays: Arrays, messages: Messages, tables: Tables, points: np.ndarray, children: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """The log joint density as a function of the depths (V, F) of branch points, each alone, up to constants.

    A branch point's location meets K + 1 messages, its parent's and its children's, each wider by a branch. With
    precisions w and means m their product integrates to
    `prod sqrt(w / 2 pi) sqrt(2 pi / W) exp(- sum_b<c w_b w_c (m_b - m_c)^2 / 2 W)`, W being the sum of the w.
    """
    depth, count = np.asarray(arrays.depth), np.asarray(arrays.count)
    above = depth[np.asarray(arrays.parent)[points]]
    mean = np.concatenate([messages.down_mean[points][:, None], messages.up_mean[children]], axis=1)
    variance = np.concatenate([messages.down_variance[points][:, None], messages.up_variance[children]], axis=1)
    constant, rate, square = tables.coefficients
    divergence = Divergence(rate=rate, constant=constant, square=square)
    harmonic = tables.harmonic[count[points] - 1] - tables.harmonic[count[children] - 1].sum(axis=1)
    several, parts = variance.shape[2], children.shape[1] + 1
    weight = mean.shape[2] // several  # columns that share a variance
    pairs = [(b, c) for b in range(parts) for c in range(b)]
    apart = [((mean[:, b] - mean[:, c]) ** 2).reshape(len(points), weight, several).sum(axis=1) for b, c in pairs]

    def value(depths: np.ndarray) -> np.ndarray:
        left = np.exp(-depths)
        lengths = [np.exp(-above)[:, None] - left, *(left - np.exp(-depth[child])[:, None] for child in children.T)]
        precision = [
            1.0 / (variance[:, b, None, :] + np.maximum(length, 1e-300)[:, :, None]) for b, length in enumerate(lengths)
        ]
        total = sum(precision)
        share = [one / total for one in precision]  # products of two precisions would overflow
        spread = sum(
            share[b] * precision[c] * distance[:, None, :] for (b, c), distance in zip(pairs, apart, strict=True)
        )
        logs = sum(np.log(np.where(one > 0.0, one, 1.0)) for one in precision)
        gaussian = 0.5 * (weight * (logs - np.log(total)) - spread).sum(axis=2)
        with np.errstate(divide="ignore"):
            times = np.log(divergence.intensity(depths))
        return gaussian + times - harmonic[:, None] * divergence.cumulative(depths)

    return value
