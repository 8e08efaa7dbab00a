"""A density of several dimensions as weighted points: a rule for the normal that it is next to, reweighted.

In coordinates that are bent after its skewness the density is nearly normal. What it is beyond that, the weights say:
density over normal at every point. Where these differ much the coordinates are moved to the mean and covariance of what
was found, and where that does not help nothing is returned. Source: rue2009inla, cornuet2012amis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .bent import bent
from .grid import Grid
from .peak import LogDensity, peak
from .rules import Rule

LEAST = 0.25  # of the points that count: with less, the density is not like a normal in any coordinates that are tried
ENOUGH = 0.8  # with more, nothing is moved
ROUNDS = 3
SMOOTH = 0.9  # bandwidth, in sds, of a rule with one point: it falls with the fifth root of their number


class Found(NamedTuple):
    """Log weights of points (K,): of the density over the normal, with the weights of the rule."""

    points: Float[np.ndarray, "K d"]
    log_weights: Float[np.ndarray, " K"]
    counting: float

    def weights(self) -> Float[np.ndarray, " K"]:
        """Their probabilities."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()


def weighted_points(
    log_density: LogDensity, starts: Float[np.ndarray, "... d"], scales: Float[np.ndarray, "... d"], rule: Rule
) -> Grid | None:
    """The points of `rule` where the mass around one of `starts` is; None where the density is nothing like a normal.

    Arguments are those of `explore`. The error is that of a mean of the weights, were the points drawn at random.
    """
    starts, scales = np.atleast_2d(starts), np.atleast_2d(scales)
    axes = bent(log_density, peak(log_density, starts[0], np.diag(scales[0])))
    best: Found | None = None
    for _ in range(ROUNDS):
        z = rule.points
        normal = -0.5 * np.sum(z**2, axis=1) - 0.5 * z.shape[1] * np.log(2.0 * np.pi)
        values = log_density(axes.points(z)) + axes.log_slope(z) - normal
        found = _found(axes.points(z), np.where(np.isfinite(values), values, -np.inf), rule)
        if best is None or found.counting > best.counting:
            best = found
        if not best.counting < ENOUGH or not found.counting * len(z) > 2.0 * z.shape[1]:
            break
        weights = found.weights()
        mean = weights @ z
        axes = axes.moved(mean, np.linalg.cholesky((weights[:, None] * (z - mean)).T @ (z - mean)))
    return None if best is None or not best.counting > LEAST else _as_grid(best)


def _found(points: Float[np.ndarray, "K d"], ratios: Float[np.ndarray, " K"], rule: Rule) -> Found:
    """The points with what part of the rule's weight counts."""
    if not np.isfinite(ratios).any():
        return Found(points, ratios, 0.0)
    relative = np.exp(ratios - ratios.max())
    counting = (rule.weights @ relative) ** 2 / (rule.weights @ relative**2)
    return Found(points, ratios + np.log(rule.weights), min(1.0, float(counting)))


def _as_grid(found: Found) -> Grid:
    number = len(found.points) * found.counting
    weights = found.weights()
    sds = np.sqrt(weights @ (found.points - weights @ found.points) ** 2)
    error = float(np.sqrt((1.0 / found.counting - 1.0) / number))
    return Grid(found.points, found.log_weights, 0.0, SMOOTH * number**-0.2 * sds, error)
