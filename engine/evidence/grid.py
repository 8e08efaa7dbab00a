"""A grid that holds the mass of a density of few dimensions, from evaluations of its logarithm alone.

The trapezoid rule is spectrally accurate for smooth densities: a grid that agrees with every second of its own points
to a hundredth is right to many more digits. So a moderate answer costs one grid, without a finer one to compare with.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

STEPS = {1: 0.6, 2: 0.8, 3: 1.0}  # first spacing in standard deviations; halved until nothing changes
ALONG = {1: 4, 2: 1, 3: 1}  # cells that are looked at beyond one that holds mass
DRAWS = {2: 128, 3: 256}  # points that tell the spread of the mass
FREEDOM, ROUNDS = 4.0, 2  # degrees of freedom of their distribution, and how often it is adapted
NEWTON = 30  # steps to the peak, at most
LENGTHS = np.array([1.0, 0.5, 0.2, 0.05, 2.0])  # that are tried of each
FIRST = {1: 15, 2: 5, 3: 2}  # cells on either side of the peak that are looked at together


class Accuracy(NamedTuple):
    """How much a grid may leave out.

    `tolerance` is that of log evidence, means and log variances between one spacing and the next; points whose density
    is exp(-`cutoff`) of the peak, by number of dimensions, have no neighbours of their own; those that have less than
    `negligible` of the mass together are left out of the mixture (far out, they still count in variances).
    """

    tolerance: float
    cutoff: tuple[float, float, float]
    negligible: float


BEST = Accuracy(1e-7, (38.0, 26.0, 16.0), 1e-13)
GOOD = Accuracy(1e-2, (20.0, 14.0, 9.0), 1e-8)

_LARGEST = 60_000

LogDensity: TypeAlias = Callable[[Float[np.ndarray, "K d"]], Float[np.ndarray, " K"]]
Peak: TypeAlias = tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]  # and a root of the covariance around it
Place: TypeAlias = tuple[int, ...]  # of a cell, counted from the centre


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


def explore(
    log_density: LogDensity,
    starts: Float[np.ndarray, "... d"],
    scales: Float[np.ndarray, "... d"],
    accuracy: Accuracy = BEST,
    first: int | None = None,
) -> Grid | None:
    """The grid of a density whose mass lies around one of `starts` on its scale; None where it finds no end.

    `log_density` takes points (K, d) and returns (K,) values, minus infinity where there is none. From the peaks the
    grid grows by neighbours until the density around it is negligible, whatever the shape of its mass; `first` cells
    on either side of the highest are looked at together, which spares calls.

    For an analytic density a spacing is off by about the square of what half of it changes; that is the error.
    """
    starts, scales = np.atleast_2d(starts), np.atleast_2d(scales)
    peaks = [_peak(log_density, start, np.diag(scale)) for start, scale in zip(starts, scales, strict=True)]
    masses = _heights(log_density, peaks) + [np.linalg.slogdet(spread)[1] for _, spread in peaks]
    d, cutoff = starts.shape[1], accuracy.cutoff[starts.shape[1] - 1]
    (centre, spread), step, best = peaks[int(np.argmax(masses))], STEPS[starts.shape[1]], None
    others = [peak for (peak, _), mass in zip(peaks, masses, strict=True) if mass > np.max(masses) - cutoff]
    if d > 1:
        centre, spread = _mass(log_density, centre, spread)
    known: dict[Place, float] = {}
    first = FIRST[d] if first is None else first
    while step > 0.01:
        cell = spread * step
        seeds = [tuple(map(int, np.round(np.linalg.solve(cell, other - centre)))) for other in others]
        if not _flood(log_density, centre, cell, cutoff, known, [*_box(d, first), *seeds]):
            return best
        finer, coarser = _grid(known, centre, cell), _grid(_every_second(known), centre, 2.0 * cell)
        best = finer._replace(error=finer.distance(coarser) ** 2)
        if best.error <= accuracy.tolerance:
            return best
        if len(best.points) * 2**d > _LARGEST:  # half the spacing would be found too large, at great cost
            return best
        step *= 0.5
        known = {tuple(2 * k for k in place): value for place, value in known.items()}
    return best


def _heights(log_density: LogDensity, peaks: Sequence[Peak]) -> Float[np.ndarray, " K"]:
    found = log_density(np.array([centre for centre, _ in peaks]))
    return np.where(np.isfinite(found), found, -np.inf)


def _box(d: int, reach: int) -> list[Place]:
    """The cells around the centre."""
    return list(itertools.product(range(-reach, reach + 1), repeat=d))


def together(grids: Sequence[Grid]) -> Grid:
    """Grids side by side, as of several states: one with the cells' volumes in its densities."""
    if len(grids) == 1:
        return grids[0]
    heaviest = max(grids, key=Grid.log_total)
    return Grid(
        np.concatenate([grid.points for grid in grids]),
        np.concatenate([grid.log_density + grid.log_cell for grid in grids]),
        0.0,
        heaviest.widths,
        max(grid.error for grid in grids),
    )


def _flood(
    log_density: LogDensity,
    centre: Float[np.ndarray, " d"],
    cell: Float[np.ndarray, "d d"],
    cutoff: float,
    known: dict[Place, float],
    seeds: Sequence[Place],
) -> bool:
    """Adds to `known` the log densities of the cells around `seeds`; false where there are too many, or none."""
    front = [place for place in dict.fromkeys(seeds) if place not in known]
    looked: set[Place] = set()  # those whose neighbours have been asked for
    while front and len(known) + len(front) <= _LARGEST:
        values = log_density(centre + np.asarray(front, float) @ cell.T)
        known.update(zip(front, values.tolist(), strict=True))
        top = max(known.values())
        alive = [place for place, value in known.items() if value > top - cutoff and place not in looked]
        looked.update(alive)
        front = list(dict.fromkeys(n for place in alive for n in _neighbours(place) if n not in known))
    return not front and bool(np.isfinite(max(known.values())))


def _grid(known: dict[Place, float], centre: Float[np.ndarray, " d"], cell: Float[np.ndarray, "d d"]) -> Grid:
    points = centre + np.asarray(list(known), float) @ cell.T
    widths = 0.5 * np.linalg.norm(cell, axis=1)
    return Grid(points, np.array(list(known.values())), float(np.linalg.slogdet(cell)[1]), widths)


def _every_second(known: dict[Place, float]) -> dict[Place, float]:
    """The cells of a grid of twice the spacing."""
    return {tuple(k // 2 for k in place): value for place, value in known.items() if not any(k % 2 for k in place)}


def _neighbours(place: Place) -> list[Place]:
    """The next cells along each axis; several of them on a line, where they spare calls."""
    reach = range(1, ALONG[len(place)] + 1)
    return [
        (*place[:i], place[i] + way * k, *place[i + 1 :]) for i in range(len(place)) for k in reach for way in (1, -1)
    ]


def _peak(log_density: LogDensity, centre: Float[np.ndarray, " d"], spread: Float[np.ndarray, "d d"]) -> Peak:
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


def _mass(log_density: LogDensity, centre: Float[np.ndarray, " d"], spread: Float[np.ndarray, "d d"]) -> Peak:
    """The mean and a root of the covariance of the mass, from weighted points around the peak.

    The curvature at a peak may say little of a skewed density. Where the points say little, the peak is kept.
    """
    d = len(centre)
    random = np.random.default_rng(0)
    points = random.normal(size=(DRAWS[d], d)) / np.sqrt(random.chisquare(FREEDOM, DRAWS[d]) / FREEDOM)[:, None]
    proposed = -0.5 * (FREEDOM + d) * np.log1p(np.sum(points**2, axis=1) / FREEDOM)  # a Student distribution
    for _ in range(ROUNDS):
        found = log_density(centre + points @ spread.T)
        logs = np.where(np.isfinite(found), found, -np.inf) - proposed
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        if not 1.0 / np.sum(weights**2) > 4.0 * (d + 1):
            return centre, spread
        mean = weights @ points
        covariance = (weights[:, None] * (points - mean)).T @ (points - mean)
        centre, spread = centre + spread @ mean, spread @ np.linalg.cholesky(covariance)
    return centre, spread


def _stencil(d: int) -> Float[np.ndarray, "points d"]:
    """Where `_differences` wants values, in units of its width."""
    steps = [np.zeros(d)]
    for i, j in itertools.combinations_with_replacement(range(d), 2):
        signs = ((1, 1), (-1, -1)) if i == j else ((1, 1), (-1, -1), (1, -1), (-1, 1))
        steps += [(a * np.eye(d)[i] + b * np.eye(d)[j]) * (0.5 if i == j else 1.0) for a, b in signs]
    return np.asarray(steps)


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
