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
from .surroundings import Around, around, normalised

LEAST = 0.25  # of the points that count: with less, the density is not like a normal in any coordinates that are tried
ENOUGH = 0.8  # with more, nothing is moved
ROUNDS = 3
SMOOTH = 0.9  # bandwidth, in sds, of a rule with one point: it falls with the fifth root of their number


class Found(NamedTuple):
    """Log weights of the points of a rule: of the density over the normal, with the weights of the rule."""

    axes: Bent
    values: Float[np.ndarray, " K"]  # of the log density in their coordinates
    log_weights: Float[np.ndarray, " K"]
    counting: float


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
        weights = normalised(found.log_weights)
        mean = weights @ rule.points
        off = rule.points - mean
        axes = axes.moved(mean, np.linalg.cholesky((weights[:, None] * off).T @ off))
    if best is None or not best.counting > LEAST:
        return None
    near = Around(rule.points, best.log_weights, 0.0)
    if wide is None:
        return _as_grid(best.axes, near, best.counting)
    everywhere = around(lambda z: _standard(log_density, best.axes, z), rule.points, best.values, wide)
    if not everywhere.is_needed:
        return _as_grid(best.axes, near, best.counting)
    weights = normalised(everywhere.log_weights)
    return _as_grid(best.axes, everywhere, 1.0 / float(len(weights) * (weights**2).sum()))


def _found(log_density: LogDensity, axes: Bent, rule: Rule) -> Found:
    """The points with what part of the rule's weight counts."""
    z = rule.points
    values = _standard(log_density, axes, z)
    ratios = values + 0.5 * np.sum(z**2, axis=1) + 0.5 * z.shape[1] * np.log(2.0 * np.pi)
    if not np.isfinite(ratios).any():
        return Found(axes, values, ratios, 0.0)
    relative = np.exp(ratios - ratios.max())
    counting = (rule.weights @ relative) ** 2 / (rule.weights @ relative**2)
    return Found(axes, values, ratios + np.log(rule.weights), min(1.0, float(counting)))


def _standard(log_density: LogDensity, axes: Bent, z: Float[np.ndarray, "K d"]) -> Float[np.ndarray, " K"]:
    """The log density of the coordinates of these axes."""
    values = log_density(axes.points(z)) + axes.log_slope(z)
    return np.where(np.isfinite(values), values, -np.inf)


def _as_grid(axes: Bent, found: Around, counting: float) -> Grid:
    points, number = axes.points(found.z), len(found.z) * counting
    weights = normalised(found.log_weights)
    sds = np.sqrt(weights @ (points - weights @ points) ** 2)
    error = float(np.hypot(np.sqrt((1.0 / counting - 1.0) / number), found.far))
    return Grid(points, found.log_weights, 0.0, SMOOTH * number**-0.2 * sds, error)
