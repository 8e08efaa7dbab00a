"""Weighted draws of a posterior whose scales are few: the others are drawn given these, around their mode.

The outer coordinates u (scales, precisions, shapes) get a Student distribution that is adapted to the Laplace
approximation of their marginal; given u, the inner ones get a Student distribution at their mode with the curvature
there. So a scale and the many effects that it scales are drawn together, where one distribution for all of them is far
from the funnel that they make. The weights are those of the joint density. Source: rue2009inla.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..density.log_density import LogDensity
from .annealed import annealed_draws, particles_within
from .reference import (
    DRAWS,
    Draws,
    Functions,
    Reference,
    around,
    centred,
    entries,
    log_student,
    mirrored,
    reference,
    spread_of,
    student,
    student_height,
    weighted,
)

MOST_OUTER = 8
EXPLORED, ROUNDS = 200, 6
WIDE = 1.0  # sd of the outer coordinates in the first round, where the beliefs say less
STEPS = (8, 3, 2)  # of Newton: from the beliefs, in later rounds, and of the draws
HALVED = 0.5 ** np.arange(6)
FREEDOM = 6.0
LEAST = 1000  # draws, where more are wanted and cannot be had
FUNNEL = 5  # inner coordinates from which on one distribution for all is the last resort
ENOUGH = 0.2  # of the draws count
SURE = 0.35  # of k: above it the spread of a heavy tail may be missed
LIGHTER = 3.0  # a number of a gradient of many points at once, than one of the curvature

Rows = Float[np.ndarray, "point coordinate"]


class Conditional(NamedTuple):
    """Given each outer point: the mode of the inner coordinates, the Cholesky factor of the precision, log p there."""

    mode: Rows
    root: Float[np.ndarray, "point coordinate coordinate"]
    height: Float[np.ndarray, " point"]

    @property
    def log_root(self) -> Float[np.ndarray, " point"]:
        return np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum(-1)

    @property
    def log_marginal(self) -> Float[np.ndarray, " point"]:
        """The Laplace approximation of the log density of the outer coordinates."""
        found = self.height - self.log_root + 0.5 * self.mode.shape[1] * np.log(2.0 * np.pi)
        return np.where(np.isfinite(found), found, -np.inf)


def outer_of(density: LogDensity, plain: bool) -> np.ndarray:
    """The outer coordinates: of variables that have few, those that are bounded; `plain` takes real ones too."""
    found: list[int] = []
    for name in sorted(density.names, key=lambda name: density.slices[name].stop - density.slices[name].start):
        variable, own = density.model.randoms[name], range(density.slices[name].start, density.slices[name].stop)
        wanted = not variable.domain.is_gaussian or (plain and not variable.plates)
        if wanted and len(found) + len(own) <= MOST_OUTER:
            found += own
    return np.array(sorted(found), int)


def nested_draws(
    density: LogDensity, call: Functions, outer: np.ndarray, start: Rows, seed: int, count: int
) -> Reference:
    """`count` weighted draws. `start` are draws of the beliefs, which tell where to begin."""
    random = np.random.default_rng(seed)
    dimension = start.shape[1]
    inner = np.setdiff1d(np.arange(dimension), outer)
    centre, spread = start[:, outer].mean(0), np.diag(_width(density, outer, start) ** 2)
    line = np.zeros((len(outer) + 1, len(inner)))  # of the mode as a function of the outer coordinates
    line[0] = start[:, inner].mean(0)
    for number in range(ROUNDS):
        points = student(random, centre, spread, FREEDOM, EXPLORED)
        found = _conditional(call, points, _on(line, points), outer, inner, STEPS[min(number, 1)])
        height = log_student(points, centre, spread, FREEDOM)
        seen = weighted(points, found.log_marginal - height).weighted
        enough = seen.effective > 0.5 * EXPLORED
        centre, spread, line = _moved(points, seen.weights, seen.effective, found.mode, spread)
        if enough:
            break
    points = student(random, centre, spread, FREEDOM, count)
    found = _conditional(call, points, _on(line, points), outer, inner, STEPS[2])
    freedom = FREEDOM + len(inner)
    normal = mirrored(random, count, freedom, len(inner))
    z = np.empty((count, dimension))
    z[:, outer] = points
    z[:, inner] = found.mode + np.linalg.solve(np.swapaxes(found.root, 1, 2), normal[..., None])[..., 0]
    log_q = log_student(points, centre, spread, FREEDOM)
    log_q += student_height(np.sum(normal**2, axis=1), -found.log_root, freedom, len(inner))
    return weighted(z, call.log_density(z) - log_q)


def _width(density: LogDensity, outer: np.ndarray, start: Rows) -> np.ndarray:
    """Sds of the outer coordinates to begin with: twice those of the beliefs, of a logarithm no less than one."""
    found = 2.0 * start.std(0)
    for name, part in density.slices.items():
        if not density.model.randoms[name].domain.is_gaussian:
            found[part] = np.maximum(found[part], WIDE)
    return found[outer]


def _on(line: np.ndarray, points: Rows) -> Rows:
    return np.column_stack([np.ones(len(points)), points]) @ line


def _moved(
    points: Rows, weights: np.ndarray, effective: float, mode: Rows, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of weighted points, and the line through the modes; few points move the latter little."""
    centre = weights @ points
    gap = points - centre
    rate = effective / (effective + 2.0 * points.shape[1])
    spread = (1.0 - rate) * spread + rate * 1.2 * (weights[:, None] * gap).T @ gap
    root = np.sqrt(weights)[:, None]
    design = np.column_stack([np.ones(len(points)), gap])
    ridge = 1e-6 * np.diag([0.0, *np.ones(points.shape[1])])
    line = np.linalg.solve((root * design).T @ (root * design) + ridge, (root * design).T @ (root * mode))
    line[0] -= centre @ line[1:]
    return centre, spread, line


def _conditional(
    call: Functions, points: Rows, guess: Rows, outer: np.ndarray, inner: np.ndarray, steps: int
) -> Conditional:
    """Damped Newton steps of all inner coordinates at once, from a guess at their mode."""
    z = np.empty((len(points), len(outer) + len(inner)))
    z[:, outer], z[:, inner] = points, guess
    rows = np.eye(z.shape[1])[inner]
    root, height = np.broadcast_to(np.eye(len(inner)), (len(z), len(inner), len(inner))), np.zeros(0)
    for _ in range(steps):
        gradient, hessian = call.curved(z, rows)
        precision = _definite(-hessian[:, :, inner])
        root = np.linalg.cholesky(precision)
        step = np.zeros_like(z)
        step[:, inner] = np.linalg.solve(precision, np.nan_to_num(gradient[:, inner])[..., None])[..., 0]
        z, height = _climbed(call, z, step)
        if np.median(np.abs(np.einsum("sij,si->sj", root, step[:, inner])).max(1)) < 0.01:
            break
    return Conditional(z[:, inner], root, height)


def _climbed(call: Functions, z: Rows, step: Rows) -> tuple[Rows, np.ndarray]:
    """The step where it goes up, else the largest half, quarter, ... of it that does, else the point itself."""
    here, height = z, call.log_density(z)
    found, top = z + step, call.log_density(z + step)
    for size in HALVED[1:]:
        worse = ~(top >= height - 1e-9)
        if not worse.any():
            return found, top
        shorter = np.where(worse[:, None], here + size * step, found)
        found, top = shorter, call.log_density(shorter)
    worse = ~(top >= height - 1e-9)
    return np.where(worse[:, None], here, found), np.where(worse, height, top)


def _definite(precision: np.ndarray) -> np.ndarray:
    """Matrices with the absolute values of their eigenvalues, where some are not positive."""
    precision = np.nan_to_num(0.5 * (precision + np.swapaxes(precision, 1, 2)))
    values, vectors = np.linalg.eigh(precision)
    largest = np.maximum(np.abs(values).max(-1, keepdims=True), 1e-10)
    floored = np.maximum(np.abs(values), 1e-6 * largest)
    return (vectors * floored[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def draws_of(
    density: LogDensity, call: Functions, draws: Draws, seed: int, count: int, most: float, jumps: bool
) -> Reference:
    """The best weighted draws of a posterior that are found: adapted to all coordinates at once, nested, or annealed.

    `draws` are those of the beliefs, `count` how many are wanted, and `most` how many numbers may be worked on. Where
    the density `jumps` to zero no derivatives are looked at.
    """
    found: list[Reference] = []
    for made in _ways(density, call, draws, seed, count, most, jumps):
        found.append(made)
        enough = made.weighted.effective > ENOUGH * len(made.z)
        if made.usable and (made.annealed or (enough and made.weighted.k < SURE)):
            break
    return max(found, key=lambda one: (one.usable, one.weighted.effective))


def _ways(
    density: LogDensity, call: Functions, draws: Draws, seed: int, count: int, most: float, jumps: bool
) -> Iterator[Reference]:
    """Weighted draws by one way after the other, the likeliest first."""

    def together() -> Iterator[Reference]:
        mean = draws.z.mean(0)
        if jumps:  # no derivative tells of it
            covariance = np.atleast_2d(np.cov(draws.z.T)) + 1e-12 * np.eye(len(mean))
        else:
            mean = centred(call, mean)
            covariance, _ = spread_of(-call.hessian(mean))
        yield reference(call, draws, covariance, mean, seed, count)

    def apart() -> Iterator[Reference]:
        for outer in [] if jumps else _outers(density):
            each = float((density.dimension - len(outer)) * entries(density))
            # Fewer where all that were wanted cost too much: they are surer than what comes next.
            number = next((n for n in (count, count // 2, count // 4) if each * _points(n) <= most), 0)
            if number >= min(count, LEAST):
                yield nested_draws(density, call, outer, draws.z, seed, number)

    funnel = density.dimension - len(outer_of(density, False)) >= FUNNEL

    def beside() -> Iterator[Reference]:
        if draws.together is not None and np.isfinite(draws.together).all():
            affordable = int(min(most * LIGHTER / entries(density), 4 * DRAWS))
            yield around(call, draws.together, seed, max(affordable, count))  # one round, where others have several

    def along() -> Iterator[Reference]:
        number = 0 if jumps else particles_within(density, most * LIGHTER)
        if number:
            yield annealed_draws(density, call, draws, seed, number)

    for way in (apart, together, beside, along) if funnel else (together, apart, beside, along):
        yield from way()


def _points(count: int) -> int:
    """How many points have their derivatives looked at, in an ordinary run."""
    return 3 * EXPLORED * STEPS[1] + count * STEPS[2]


def _outers(density: LogDensity) -> list[np.ndarray]:
    """The choices of outer coordinates that leave inner ones; with real ones last, which costs more draws."""
    few, more = outer_of(density, False), outer_of(density, True)
    return [own for own in ([few] if len(few) == len(more) else [few, more]) if 0 < len(own) < density.dimension]
