"""A grid that holds the mass of a density of few dimensions, from evaluations of its logarithm alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

STEPS = {1: 0.4, 2: 0.7, 3: 1.0}  # spacing in standard deviations: the trapezoid rule is spectrally accurate
CUTOFF = 18.0  # points whose density is exp(-CUTOFF) of the peak are left out
_REACH = 60  # steps to either side, at most
_LARGEST = 5000


class Grid(NamedTuple):
    """Points (K, d), their log densities, the log volume of a cell, and half its extent along each axis."""

    points: np.ndarray
    log_density: np.ndarray
    log_cell: float
    widths: np.ndarray


def explore(log_density: Callable[[np.ndarray], np.ndarray], start: np.ndarray, scale: np.ndarray) -> Grid | None:
    """The grid of a density whose mass lies around `start` on the scale `scale`; None where it finds no peak.

    `log_density` takes points (K, d) and returns (K,) values, minus infinity where there is none.
    """
    centre, spread = _peak(log_density, start, np.diag(scale))
    d, step = len(start), STEPS[len(start)]
    top = log_density(centre[None])[0]
    if not np.isfinite(top):
        return None
    profiles = [_profile(log_density, centre, spread[:, i] * step, top) for i in range(d)]
    offsets = [sorted(profile) for profile in profiles]
    chosen = [
        point for point in itertools.product(*offsets) if sum(profiles[i][k] for i, k in enumerate(point)) > -CUTOFF
    ]
    if len(chosen) > _LARGEST:
        return None
    points = centre + np.asarray(chosen, float) @ (spread * step).T
    cell = spread * step
    return Grid(points, log_density(points), float(np.linalg.slogdet(cell)[1]), 0.5 * np.linalg.norm(cell, axis=1))


def _peak(log_density: Callable[[np.ndarray], np.ndarray], centre: np.ndarray, spread: np.ndarray):
    """Newton's method with differences over most of a standard deviation: the peak and a root of its covariance."""
    d, width = len(centre), 0.7
    for _ in range(12):
        steps = [np.zeros(d)]
        for i, j in itertools.combinations_with_replacement(range(d), 2):
            signs = ((1, 1), (-1, -1)) if i == j else ((1, 1), (-1, -1), (1, -1), (-1, 1))
            steps += [(a * np.eye(d)[i] + b * np.eye(d)[j]) * (0.5 if i == j else 1.0) for a, b in signs]
        found = log_density(centre + width * np.asarray(steps) @ spread.T)
        if not np.isfinite(found).all():
            best = np.asarray(steps)[np.argmax(np.where(np.isfinite(found), found, -np.inf))]
            centre, spread = centre + width * spread @ best, 0.5 * spread
            continue
        gradient, hessian = _differences(found, d, width)
        values, vectors = np.linalg.eigh(-hessian)
        values = np.maximum(values, 0.05)  # never wider than about four of the present scales
        newton = vectors @ ((vectors.T @ gradient) / values)
        newton *= min(1.0, 2.0 / max(np.linalg.norm(newton), 1e-300))
        centre = centre + spread @ newton
        spread = spread @ (vectors / np.sqrt(values))
        if np.linalg.norm(newton) < 0.3 and np.all(values > 0.1):
            break
    return centre, spread


def _differences(found: np.ndarray, d: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    gradient, hessian, at = np.zeros(d), np.zeros((d, d)), 1
    for i, j in itertools.combinations_with_replacement(range(d), 2):
        if i == j:
            up, down = found[at : at + 2]
            gradient[i], hessian[i, i] = (up - down) / (2 * width), (up - 2 * found[0] + down) / width**2
            at += 2
        else:
            both, neither, first, second = found[at : at + 4]
            hessian[i, j] = hessian[j, i] = (both + neither - first - second) / (4 * width**2)
            at += 4
    return gradient, hessian


def _profile(log_density, centre: np.ndarray, step: np.ndarray, top: float) -> dict[int, float]:
    """Drops of the log density along one axis by number of steps, to both sides until the cutoff."""
    found = {0: 0.0}
    for sign in (1, -1):
        reached, at = False, 1
        while not reached and at <= _REACH:
            numbers = np.arange(at, at + 8)
            drops = log_density(centre + sign * numbers[:, None] * step) - top
            for number, drop in zip(numbers, drops, strict=True):
                if not drop > -CUTOFF:
                    reached = True
                    break
                found[sign * int(number)] = float(drop)
            at += 8
    return found
