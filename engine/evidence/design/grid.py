"""A grid that holds the mass of a density of few dimensions, from evaluations of its logarithm alone.

The trapezoid rule is spectrally accurate for smooth densities: a grid that agrees with every second of its own points
to a hundredth is right to many more digits. So a moderate answer costs one grid, without a finer one to compare with.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from .bent import Bent, bent, straight
from .peak import LogDensity, Peak, peak

# First spacing in standard deviations, by number of dimensions: halved until nothing changes, and of a coarse grid.
STEPS = {False: {1: 0.6, 2: 0.8, 3: 1.0}, True: {1: 0.8, 2: 1.0, 3: 1.1}}
ALONG = {1: 4, 2: 1, 3: 1}  # cells that are looked at beyond one that holds mass
DRAWS = {2: 128, 3: 256}  # points that tell the spread of the mass
FREEDOM, ROUNDS = 4.0, 2  # degrees of freedom of their distribution, and how often it is adapted
FIRST = {1: 15, 2: 5, 3: 2}  # cells on either side of the peak that are looked at together


class Accuracy(NamedTuple):
    """How much a grid may leave out.

    `tolerance` is that of log evidence, means and log variances between one spacing and the next; points whose density
    is exp(-`cutoff`) of the peak, by number of dimensions, have no neighbours of their own; those that have less than
    `negligible` of the mass together are left out of the mixture (far out, they still count in variances). A `coarse`
    grid takes the spread of the mass from curvature and skewness at the peak, and its spacing is not halved.
    """

    tolerance: float
    cutoff: tuple[float, float, float]
    negligible: float
    coarse: bool = False


BEST = Accuracy(1e-7, (38.0, 26.0, 16.0), 1e-13)
GOOD = Accuracy(1e-2, (20.0, 14.0, 9.0), 1e-8)
COARSE = Accuracy(1e-2, (9.0, 7.0, 5.0), 1e-6, coarse=True)

_LARGEST = 60_000

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
        if not (np.all(variance > 0.0) and np.all(other_variance > 0.0)):
            return np.inf  # all mass is in one cell, which says nothing of its width
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
    tried = slice(1 if accuracy.coarse else None)
    peaks = [peak(log_density, *one) for one in zip(starts[tried], map(np.diag, scales[tried]), strict=True)]
    masses = _heights(log_density, peaks) + [np.linalg.slogdet(spread)[1] for _, spread in peaks]
    d, cutoff = starts.shape[1], accuracy.cutoff[starts.shape[1] - 1]
    highest, step, best = peaks[int(np.argmax(masses))], STEPS[accuracy.coarse][d], None
    others = [other for (other, _), mass in zip(peaks, masses, strict=True) if mass > np.max(masses) - cutoff]
    if accuracy.coarse:
        axes = bent(log_density, highest)
    else:
        axes = straight(_mass(log_density, *highest) if d > 1 else highest)
    known: dict[Place, float] = {}
    along = 1 if accuracy.coarse else ALONG[d]
    first = FIRST[d] if first is None else first
    while step > 0.01:
        seeds = [] if accuracy.coarse else [_place(axes, other, step) for other in others]
        if not _flood(log_density, axes, step, cutoff, known, [*_box(d, first), *seeds], along):
            return best
        finer, coarser = _grid(known, axes, step), _grid(_every_second(known), axes, 2.0 * step)
        best = finer._replace(error=finer.distance(coarser) ** 2)
        if best.error <= accuracy.tolerance or accuracy.coarse:
            return best
        if len(best.points) * 2**d > _LARGEST:  # half the spacing would be found too large, at great cost
            return best
        step *= 0.5
        known = {tuple(2 * k for k in place): value for place, value in known.items()}
    return best


def _place(axes: Bent, point: Float[np.ndarray, " d"], step: float) -> Place:
    """The cell of a point, where the axes are straight."""
    return tuple(map(int, np.round(np.linalg.solve(axes.spread, point - axes.centre) / step)))


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
    axes: Bent,
    step: float,
    cutoff: float,
    known: dict[Place, float],
    seeds: Sequence[Place],
    along: int,
) -> bool:
    """Adds to `known` the log densities of the cells around `seeds`; false where there are too many, or none."""
    front = [place for place in dict.fromkeys(seeds) if place not in known]
    open_ones = list(known)  # whose neighbours have not been asked for
    top = max(known.values(), default=-np.inf)
    while front and len(known) + len(front) <= _LARGEST:
        z = step * np.asarray(front, float)
        values = log_density(axes.points(z)) + axes.log_slope(z)
        known.update(zip(front, np.where(np.isnan(values), -np.inf, values).tolist(), strict=True))
        open_ones += front
        top = max(top, *(known[place] for place in front))
        alive = [place for place in open_ones if known[place] > top - cutoff]
        open_ones = []  # what is negligible stays so: the top only rises
        front = list(dict.fromkeys(n for place in alive for n in _neighbours(place, along) if n not in known))
    return not front and bool(np.isfinite(top))


def _grid(known: dict[Place, float], axes: Bent, step: float) -> Grid:
    points = axes.points(step * np.asarray(list(known), float))
    widths = 0.5 * step * np.linalg.norm(axes.spread, axis=1)
    return Grid(points, np.array(list(known.values())), len(widths) * float(np.log(step)), widths)


def _every_second(known: dict[Place, float]) -> dict[Place, float]:
    """The cells of a grid of twice the spacing."""
    return {tuple(k // 2 for k in place): value for place, value in known.items() if not any(k % 2 for k in place)}


def _neighbours(place: Place, along: int) -> list[Place]:
    """The next cells along each axis; several of them on a line, where they spare calls."""
    reach = range(1, along + 1)
    return [
        (*place[:i], place[i] + way * k, *place[i + 1 :]) for i in range(len(place)) for k in reach for way in (1, -1)
    ]


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
        if not np.isfinite(logs).any():
            return centre, spread
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        if not 1.0 / np.sum(weights**2) > 4.0 * (d + 1):
            return centre, spread
        mean = weights @ points
        covariance = (weights[:, None] * (points - mean)).T @ (points - mean)
        centre, spread = centre + spread @ mean, spread @ np.linalg.cholesky(covariance)
    return centre, spread
