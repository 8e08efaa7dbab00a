"""The weight of a tree with its times integrated out one by one: what trees of different numbers of branch points are
compared by.

The log joint density of a tree with k branch points is a density in k dimensions: a tree with one more is not larger
or smaller than it. Each branch point's own interval, the integral of the density over its depth divided by the
density where it is, makes a mass of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .arrays import Arrays, Messages
from .prior import Tables
from .times import branch_points

NEGLIGIBLE = 35.0  # nats below the maximum that an interval's ends may be at
POINTS = 97
ZOOMS = 4


def log_intervals(arrays: Arrays, messages: Messages, tables: Tables) -> np.ndarray:
    """(points,) log of the integral over each branch point's depth, the other depths fixed, of the joint density over
    its value at the present depth. Order as `branch_points`.

    `log joint + sum(log_intervals)` is the log mass of a structure around these times, exact where the depths are
    independent. Gaussian leaves, with `messages` of one sweep at these depths.
    """
    parent, children = np.asarray(arrays.parent), _children(arrays)
    return np.array(
        [
            _log_interval(
                _profile(arrays, messages, tables, node, children[node]), *_range(arrays, node, children[node])
            )
            - _profile(arrays, messages, tables, node, children[node])(np.asarray(arrays.depth)[[node]])[0]
            for node in branch_points(arrays)
            if parent[node] >= 0
        ]
    )


def cumulative(coefficients: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Integral of the divergence function, from its coefficients (constant, rate, square)."""
    constant, rate, square = coefficients
    return rate * depth - constant * np.expm1(-depth) + (square * np.expm1(depth) if square else 0.0)


def intensity(coefficients: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """The divergence function per unit of depth."""
    constant, rate, square = coefficients
    return rate + constant * np.exp(-depth) + (square * np.exp(depth) if square else 0.0)


def _children(arrays: Arrays) -> dict[int, list[int]]:
    below: dict[int, list[int]] = {}
    for node, above in enumerate(np.asarray(arrays.parent)):
        below.setdefault(int(above), []).append(node)
    return below


def _range(arrays: Arrays, node: int, children: list[int]) -> tuple[float, float]:
    depth = np.asarray(arrays.depth)
    return float(depth[np.asarray(arrays.parent)[node]]), float(depth[children].min())


def _profile(arrays: Arrays, messages: Messages, tables: Tables, node: int, children: list[int]) -> Callable:
    """The log joint density as a function of the depths (F,) of one branch point, up to a constant."""
    depth, count = np.asarray(arrays.depth), np.asarray(arrays.count)
    above = depth[np.asarray(arrays.parent)[node]]
    mean = np.concatenate([messages.down_mean[[node]], messages.up_mean[children]])  # (K + 1, D)
    variance = np.concatenate([messages.down_variance[[node]], messages.up_variance[children]])  # (K + 1, P)
    harmonic = tables.harmonic[count[node] - 1] - tables.harmonic[np.maximum(count[children] - 1, 0)].sum()
    columns = mean.shape[1] / variance.shape[1]

    def value(depths: np.ndarray) -> np.ndarray:
        left = np.exp(-depths)
        lengths = np.stack([np.exp(-above) - left, *(left - np.exp(-depth[child]) for child in children)])  # (K + 1, F)
        precision = 1.0 / (variance[:, None, :] + np.maximum(lengths, 1e-300)[:, :, None])  # (K + 1, F, P)
        total = precision.sum(axis=0)
        centre = (
            np.einsum("kfp,kd->fd", precision, mean)
            if variance.shape[1] == 1
            else (precision * mean[:, None, :]).sum(axis=0)
        )
        centre = centre / total
        spread = precision * (mean[:, None, :] - centre) ** 2
        known = np.where(precision > 0.0, np.log(np.where(precision > 0.0, precision, 1.0)), 0.0).sum(axis=0)
        gaussian = 0.5 * columns * (known - np.log(total)).sum(axis=-1) - 0.5 * spread.sum(axis=(0, 2))
        with np.errstate(divide="ignore"):
            times = np.log(intensity(tables.coefficients, depths))
        return gaussian + times - harmonic * cumulative(tables.coefficients, depths)

    return value


def _log_interval(profile: Callable, low: float, high: float) -> float:
    """Log of the integral of exp(profile) by the trapezoidal rule on the part of the range where it counts."""
    if not np.isfinite(high):
        high = low + 1.0
        while profile(np.array([high]))[0] > profile(np.linspace(low, high, POINTS)[1:-1]).max() - NEGLIGIBLE:
            high = low + 2.0 * (high - low)
            if high > 500.0:
                break
    for _ in range(ZOOMS):
        edge = 1e-9 * (high - low)
        grid = np.linspace(low + edge, high - edge, POINTS)
        values = profile(grid)
        counts = np.flatnonzero(values > values.max() - NEGLIGIBLE)
        low, high = float(grid[max(counts[0] - 1, 0)]), float(grid[min(counts[-1] + 1, POINTS - 1)])
    grid = np.linspace(low, high, 4 * POINTS)
    values = profile(grid)
    peak = values.max()
    return float(peak + np.log(np.trapezoid(np.exp(values - peak), grid)))
