"""A density of several dimensions as weighted points: a rule for the normal that it is next to, reweighted.

In coordinates that are bent after its skewness the density is nearly normal. What it is beyond that, the weights say:
density over normal at every point. Where these differ much the coordinates are moved to the mean and covariance of what
was found, and where that does not help nothing is returned. Source: rue2009inla, cornuet2012amis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .bent import Bent, bent
from .grid import Grid
from .peak import LogDensity, peak
from .rules import Rule
from .surroundings import around

LEAST = 0.25  # of the points that count: with less, the density is not like a normal in any coordinates that are tried
ENOUGH = 0.8  # with more, nothing is moved
ROUNDS = 3
FAR = 0.01  # of the mass: with less away from the peak, the points around it are enough
SMOOTH = 0.9  # bandwidth, in sds, of a rule with one point: it falls with the fifth root of their number


class Found(NamedTuple):
    """Log weights of points (K,): of the density over the normal, with the weights of the rule."""

    axes: Bent
    z: Float[np.ndarray, "K d"]  # in their coordinates
    values: Float[np.ndarray, " K"]  # of the log density there
    log_weights: Float[np.ndarray, " K"]
    counting: float
    far: float = 0.0  # the mass found away from the peak

    def weights(self) -> Float[np.ndarray, " K"]:
        """Their probabilities."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()


def weighted_points(
    log_density: LogDensity,
    starts: Float[np.ndarray, "... d"],
    scales: Float[np.ndarray, "... d"],
    rule: Rule,
    wide: Rule | None = None,
) -> Grid | None:
    """The points of `rule` where the mass around one of `starts` is; None where the density is nothing like a normal.

    Arguments are those of `explore`; with the points of `wide`, mass away from the peak is looked for. The error is
    that of a mean of the weights, were the points drawn at random, and the mass that was found far away.
    """
    starts, scales = np.atleast_2d(starts), np.atleast_2d(scales)
    axes = bent(log_density, peak(log_density, starts[0], np.diag(scales[0])))
    best: Found | None = None
    for _ in range(ROUNDS):
        found = _found(log_density, axes, rule)
        if best is None or found.counting > best.counting:
            best = found
        if not best.counting < ENOUGH or not found.counting * len(rule.points) > 2.0 * rule.points.shape[1]:
            break
        weights = found.weights()
        mean = weights @ found.z
        axes = axes.moved(mean, np.linalg.cholesky((weights[:, None] * (found.z - mean)).T @ (found.z - mean)))
    if best is None or not best.counting > LEAST:
        return None
    return _as_grid(best if wide is None else _widened(log_density, best, wide))


def _found(log_density: LogDensity, axes: Bent, rule: Rule) -> Found:
    """The points with what part of the rule's weight counts."""
    z = rule.points
    values = _standard(log_density, axes, z)
    ratios = values + 0.5 * np.sum(z**2, axis=1) + 0.5 * z.shape[1] * np.log(2.0 * np.pi)
    if not np.isfinite(ratios).any():
        return Found(axes, z, values, ratios, 0.0)
    relative = np.exp(ratios - ratios.max())
    counting = (rule.weights @ relative) ** 2 / (rule.weights @ relative**2)
    return Found(axes, z, values, ratios + np.log(rule.weights), min(1.0, float(counting)))


def _widened(log_density: LogDensity, found: Found, wide: Rule) -> Found:
    """With the points of wider normals, where these find mass."""
    everywhere = around(lambda z: _standard(log_density, found.axes, z), found.z, found.values, wide)
    if not everywhere.far > FAR:
        return found
    weights = np.exp(everywhere.log_weights - everywhere.log_weights.max())
    counting = float(weights.sum() ** 2 / (len(weights) * (weights**2).sum()))
    return Found(found.axes, everywhere.z, found.values, everywhere.log_weights, counting, everywhere.far)


def _standard(log_density: LogDensity, axes: Bent, z: Float[np.ndarray, "K d"]) -> Float[np.ndarray, " K"]:
    """The log density of the coordinates of these axes."""
    values = log_density(axes.points(z)) + axes.log_slope(z)
    return np.where(np.isfinite(values), values, -np.inf)


def _as_grid(found: Found) -> Grid:
    points, number = found.axes.points(found.z), len(found.z) * found.counting
    weights = found.weights()
    sds = np.sqrt(weights @ (points - weights @ points) ** 2)
    error = float(np.hypot(np.sqrt((1.0 / found.counting - 1.0) / number), found.far))
    return Grid(points, found.log_weights, 0.0, SMOOTH * number**-0.2 * sds, error)
