"""Weighted draws of a posterior whose scales are few: the others are drawn given these, around their mode.

The outer coordinates u (scales, precisions, shapes) get a Student distribution that is adapted to the Laplace
approximation of their marginal; given u, the inner ones get a Student distribution at their mode with the curvature
there. So a scale and the many effects that it scales are drawn together, where one distribution for all of them is far
from the funnel that they make. The weights are those of the joint density. Source: rue2009inla.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..density.log_density import LogDensity
from .reference import Functions, Reference, log_student, student, student_height, weighted

MOST_OUTER = 8
EXPLORED, ROUNDS = 200, 6
WIDE = 1.0  # sd of the outer coordinates in the first round, where the beliefs say less
STEPS = (8, 3, 2)  # of Newton: from the beliefs, in later rounds, and of the draws
HALVED = 0.5 ** np.arange(6)
FREEDOM = 6.0

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


def outer_of(density: LogDensity) -> np.ndarray:
    """The outer coordinates: of what is bounded, element by element, in the variables that have few."""
    found: list[int] = []
    bounded = [name for name in density.names if not (density.model.randoms[name].domain.is_gaussian)]
    for name in sorted(bounded, key=lambda name: density.slices[name].stop - density.slices[name].start):
        own = range(density.slices[name].start, density.slices[name].stop)
        if len(found) + len(own) <= MOST_OUTER:
            found += own
    return np.array(sorted(found), int)


def nested_draws(call: Functions, outer: np.ndarray, start: Rows, seed: int, count: int) -> Reference:
    """`count` weighted draws. `start` are draws of the beliefs, which tell where to begin."""
    random = np.random.default_rng(seed)
    dimension = start.shape[1]
    inner = np.setdiff1d(np.arange(dimension), outer)
    centre, spread = start[:, outer].mean(0), np.diag(np.maximum(start[:, outer].std(0), WIDE) ** 2)
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
    scale = np.sqrt(freedom / random.chisquare(freedom, count))
    normal = scale[:, None] * random.normal(size=(count, len(inner)))
    z = np.empty((count, dimension))
    z[:, outer] = points
    z[:, inner] = found.mode + np.linalg.solve(np.swapaxes(found.root, 1, 2), normal[..., None])[..., 0]
    log_q = log_student(points, centre, spread, FREEDOM)
    log_q += student_height(np.sum(normal**2, axis=1), -found.log_root, freedom, len(inner))
    return weighted(z, call.log_density(z) - log_q)


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
