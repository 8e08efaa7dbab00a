"""A grid that holds the mass of a density of few dimensions, from evaluations of its logarithm alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

STEPS = {1: 0.6, 2: 0.8, 3: 1.0}  # first spacing in standard deviations; halved until nothing changes
CUTOFF = {1: 38.0, 2: 26.0, 3: 16.0}  # points whose density is exp(-CUTOFF) of the peak have no neighbours of their own
TOLERANCE = 1e-7  # of the log evidence, means and log variances, between one spacing and the next
_LARGEST = 60_000

LogDensity: TypeAlias = Callable[[Float[np.ndarray, "K d"]], Float[np.ndarray, " K"]]


class Grid(NamedTuple):
    """Points (K, d), their log densities, the log volume of a cell, half its extent along each axis, and the error.

    `error` estimates that of the log evidence, and of means and variances on their scale: the change from the spacing
    before.
    """

    points: Float[np.ndarray, "K d"]
    log_density: Float[np.ndarray, " K"]
    log_cell: float
    widths: Float[np.ndarray, " d"]
    error: float = np.inf

    def log_total(self) -> float:
        """The logarithm of the integral."""
        top = self.log_density.max()
        return float(np.log(np.exp(self.log_density - top).sum()) + top + self.log_cell)

    def moments(self) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
        """Mean and variance of every coordinate."""
        weights = np.exp(self.log_density - self.log_density.max())
        weights /= weights.sum()
        mean = weights @ self.points
        return mean, weights @ (self.points - mean) ** 2

    def distance(self, other: Grid) -> float:
        """The largest difference of log evidence, means in standard deviations, and log variances."""
        (mean, variance), (other_mean, other_variance) = self.moments(), other.moments()
        shifts = np.abs(mean - other_mean) / np.sqrt(variance)
        return float(
            max(abs(self.log_total() - other.log_total()), *shifts, *np.abs(np.log(variance / other_variance)))
        )


def explore(log_density: LogDensity, start: Float[np.ndarray, " d"], scale: Float[np.ndarray, " d"]) -> Grid | None:
    """The grid of a density whose mass lies around `start` on the scale `scale`; None where it finds no end.

    `log_density` takes points (K, d) and returns (K,) values, minus infinity where there is none. From the peak the
    grid grows by neighbours until the density around it is negligible, whatever the shape of its mass.
    """
    centre, spread = _peak(log_density, start, np.diag(scale))
    step, best = STEPS[len(start)], None
    while (best is None or best.error > TOLERANCE) and step > 0.01:
        finer = _flood(log_density, centre, spread * step, CUTOFF[len(start)])
        if finer is None:
            return best
        best = finer if best is None else finer._replace(error=finer.distance(best))
        step *= 0.5
        if len(best.points) * 2 ** len(start) > _LARGEST:  # half the spacing would be found too large, at great cost
            break
    return best


def _flood(
    log_density: LogDensity, centre: Float[np.ndarray, " d"], cell: Float[np.ndarray, "d d"], cutoff: float
) -> Grid | None:
    """The grid with this cell, grown from the centre; None where it grows too large or holds nothing."""
    found: dict[tuple[int, ...], float] = {}
    front = [(0,) * len(centre)]
    while front and len(found) + len(front) <= _LARGEST:
        values = log_density(centre + np.asarray(front, float) @ cell.T)
        found.update(zip(front, values.tolist(), strict=True))
        top = max(found.values())
        alive = [place for place, value in zip(front, values, strict=True) if value > top - cutoff]
        front = list(dict.fromkeys(n for place in alive for n in _neighbours(place) if n not in found))
    if front or not np.isfinite(max(found.values())):
        return None
    points = centre + np.asarray(list(found), float) @ cell.T
    widths = 0.5 * np.linalg.norm(cell, axis=1)
    return Grid(points, np.array(list(found.values())), float(np.linalg.slogdet(cell)[1]), widths)


def _neighbours(place: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [(*place[:i], place[i] + step, *place[i + 1 :]) for i in range(len(place)) for step in (1, -1)]


def _peak(
    log_density: LogDensity, centre: Float[np.ndarray, " d"], spread: Float[np.ndarray, "d d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
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


def _differences(
    found: Float[np.ndarray, " points"], d: int, width: float
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Gradient and Hessian from the values at the steps of `_peak`."""
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
