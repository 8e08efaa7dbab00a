"""The peak of a density of few dimensions and the spread around it, from evaluations of its logarithm alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

NEWTON = 30  # steps to the peak, at most
LENGTHS = np.array([1.0, 0.5, 0.2, 0.05, 2.0])  # that are tried of each

LogDensity: TypeAlias = Callable[[Float[np.ndarray, "K d"]], Float[np.ndarray, " K"]]
Peak: TypeAlias = tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]  # and a root of the covariance around it


def peak(log_density: LogDensity, centre: Float[np.ndarray, " d"], spread: Float[np.ndarray, "d d"]) -> Peak:
    """Newton's method with differences over most of a standard deviation: the peak and a root of its covariance.

    It never goes down: a step is the best of several lengths, and where none helps the differences are too wide.
    """
    d, width = len(centre), 0.7
    stencil = _stencil(d)
    for _ in range(NEWTON):
        found = log_density(centre + width * stencil @ spread.T)
        top = int(np.argmax(found))
        if not np.isfinite(found).all():
            centre, spread = centre + width * spread @ stencil[top], 0.5 * spread
            continue
        gradient, hessian = _differences(found, d, width)
        values, vectors = np.linalg.eigh(-hessian)
        newton = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 0.05))
        # never wider than about four of the present scales
        scaled = spread @ (vectors / np.sqrt(np.clip(np.abs(values), 0.05, 100.0)))
        if np.linalg.norm(newton) < 0.3:
            centre, spread = centre + spread @ newton, scaled
            if np.all((values > 0.1) & (values < 10.0)):
                break
            continue
        newton *= min(1.0, 3.0 / max(np.linalg.norm(newton), 1e-300))
        ladder = LENGTHS[:, None] * newton
        steps = np.concatenate([width * stencil[top : top + 1], ladder])
        heights = np.append(found[top], log_density(centre + ladder @ spread.T))
        best = int(np.argmax(heights))
        if heights[best] <= found[0]:
            spread = 0.5 * spread
            continue
        centre, spread = centre + spread @ steps[best], scaled
    return centre, spread


def _stencil(d: int) -> Float[np.ndarray, "points d"]:
    """Where `_differences` wants values, in units of its width: the centre, both ways along each axis, then pairs."""
    axes = np.eye(d)
    along = [way * axis for axis in axes for way in (1.0, -1.0)]
    across = [way * (axes[i] + axes[j]) for i, j in itertools.combinations(range(d), 2) for way in (0.5, -0.5)]
    return np.asarray([np.zeros(d), *along, *across])


def _differences(
    found: Float[np.ndarray, " points"], d: int, width: float
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Gradient and Hessian from the values at the steps of `_stencil`."""
    up, down, rest = found[1 : 2 * d + 1 : 2], found[2 : 2 * d + 1 : 2], found[2 * d + 1 :]
    gradient, hessian = (up - down) / (2 * width), np.diag((up - 2 * found[0] + down) / width**2)
    for (i, j), both in zip(itertools.combinations(range(d), 2), rest.reshape(-1, 2).sum(axis=1), strict=True):
        # along (i + j) / 2 the second difference is a quarter of both curvatures and half of the mixed one
        second = (both - 2 * found[0]) / width**2
        hessian[i, j] = hessian[j, i] = 2 * second - 0.5 * (hessian[i, i] + hessian[j, j])
    return gradient, hessian
