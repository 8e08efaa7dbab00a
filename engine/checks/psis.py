"""Pareto-smoothed importance sampling: weights whose largest are replaced by quantiles of a fitted tail.

The shape k of the tail tells how far averages with these weights can be trusted: below 0.7 they can. Source:
vehtari2024psis, zhang2009gpd.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

GOOD_K = 0.7  # below it averages with smoothed weights can be trusted


class Smoothed(NamedTuple):
    """Normalised weights, the shape k of their tail (-inf when they are all equal), and their effective number."""

    weights: np.ndarray
    k: float
    effective: float


def smoothed(log_weights: np.ndarray) -> Smoothed:
    """Pareto-smoothed weights of at least 25 draws; `log_weights` may hold minus infinity. The k is that of Stan's loo.

    The tail is the largest min(0.2 S, 3 sqrt S) weights; its generalised Pareto fit is that of Zhang and Stephens with
    the weak prior of the paper.
    """
    count = log_weights.size
    finite = np.isfinite(log_weights)
    if not finite.any():
        return Smoothed(np.full(count, 1.0 / count), np.inf, 0.0)
    shifted = np.where(finite, log_weights - log_weights[finite].max(), -np.inf)
    if np.ptp(shifted[finite]) < 1e-9 and finite.all():
        return Smoothed(np.full(count, 1.0 / count), -np.inf, float(count))
    tail = int(min(0.2 * count, 3.0 * np.sqrt(count)))
    order = np.argsort(shifted)
    largest = order[-tail:]
    cut = np.exp(shifted[order[-tail - 1]])
    excess = np.exp(shifted[largest]) - cut
    weights = np.exp(shifted)
    k = np.inf
    if tail >= 5 and excess[0] >= 0 and excess[-1] > 0:
        k, scale = _fit(np.maximum(excess, 1e-300))
        levels = (np.arange(tail) + 0.5) / tail
        with np.errstate(over="ignore"):  # no weight is above one, however heavy the tail
            quantiles = cut + (
                scale * np.expm1(-k * np.log1p(-levels)) / k if abs(k) > 1e-12 else -scale * np.log1p(-levels)
            )
        weights[largest] = np.minimum(quantiles, 1.0)
    weights = weights / weights.sum()
    return Smoothed(weights, float(k), float(1.0 / np.sum(weights**2)))


def _fit(excess: np.ndarray) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution from sorted excesses."""
    count = excess.size
    grid = 30 + int(np.sqrt(count))
    quartile = excess[int(count / 4 + 0.5) - 1]
    steps = np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    theta = 1.0 / excess[-1] + (1.0 - steps) / (3.0 * quartile)
    shape = np.mean(np.log1p(-theta[:, None] * excess), axis=1)
    profile = count * (np.log(-theta / shape) - shape - 1.0)
    weight = softmax(profile)
    weight[weight < 10 * np.finfo(float).eps] = 0.0
    best = np.sum(theta * weight) / weight.sum()
    k = np.mean(np.log1p(-best * excess))
    scale = -k / best
    return float((count * k + 5.0) / (count + 10.0)), float(scale)
