"""The mass that a density has away from its peak: ridges and other modes, which the curvature at the peak cannot know.

Where a class of a mixture may be empty, or a scale may be anything, a few percent of the mass lie many standard
deviations away, and may be most of a variance. Points of a much wider normal find them: fitted to the density raised to
a small power, then to what is found far out. All points count together, each weighted by the density over the mixture
of the normals that they are of. Source: cornuet2012amis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from .rules import Rule

POWER = 0.15  # of the density whose mean and covariance the first wide normal has
ROUNDS = 8  # of normals fitted to what lies far out
BEYOND = 2.5  # sds: in d dimensions a normal has no mass beyond this and sqrt(d)
SEEN = 0.01  # of the mass: with less away from the peak, the points around it are enough
WIDER = 1.5  # than the spread of what was found
LEAST = 1e-6  # variance of a fitted normal

Standard: TypeAlias = Callable[[Float[np.ndarray, "K d"]], Float[np.ndarray, " K"]]  # a log density, nearly normal


class Normal(NamedTuple):
    """A proposal of so many points mean + root @ z."""

    mean: Float[np.ndarray, " d"]
    root: Float[np.ndarray, "d d"]
    number: int

    def log_density(self, z: Float[np.ndarray, "K d"]) -> Float[np.ndarray, " K"]:
        """Its logarithm, times the number of points."""
        own = np.linalg.solve(self.root, (z - self.mean).T)
        volume = np.linalg.slogdet(self.root)[1] + 0.5 * len(self.mean) * np.log(2.0 * np.pi)
        return np.log(self.number) - 0.5 * np.sum(own**2, axis=0) - volume


class Around(NamedTuple):
    """Points in standard coordinates, their log weights (density over proposals), and the mass far from the peak."""

    z: Float[np.ndarray, "K d"]
    log_weights: Float[np.ndarray, " K"]
    far: float

    @property
    def is_needed(self) -> bool:
        """Whether there is more mass far away than the points around the peak can leave out."""
        return self.far > SEEN


def around(log_density: Standard, z: Float[np.ndarray, "K d"], values: Float[np.ndarray, " K"], rule: Rule) -> Around:
    """The points `z` of a standard normal, where the log density has `values`, with those of wider normals."""
    d = z.shape[1]
    proposals, places, found = [Normal(np.zeros(d), np.eye(d), len(z))], [z], [values]

    def look(normal: Normal) -> None:
        new = normal.mean + rule.points @ normal.root.T
        proposals.append(normal)
        places.append(new)
        found.append(log_density(new))

    look(Normal(np.zeros(d), np.eye(d) / np.sqrt(POWER), len(rule.points)))
    tempered = normalised(POWER * found[-1] - proposals[-1].log_density(places[-1]))
    look(_fitted(places[-1], tempered, len(rule.points)))
    now = _together(proposals, places, found)
    for _ in range(ROUNDS):
        if not now.is_needed:
            break
        outside = _is_far(now.z)
        look(_fitted(now.z[outside], normalised(now.log_weights[outside]), len(rule.points), WIDER))
        now = _together(proposals, places, found)
    return now


def _together(proposals: list[Normal], places: list[np.ndarray], found: list[np.ndarray]) -> Around:
    z = np.concatenate(places)
    log_weights = np.concatenate(found) - np.logaddexp.reduce([normal.log_density(z) for normal in proposals])
    return Around(z, log_weights, float(normalised(log_weights)[_is_far(z)].sum()))


def _is_far(z: Float[np.ndarray, "K d"]) -> np.ndarray:
    return np.linalg.norm(z, axis=1) > np.sqrt(z.shape[1]) + BEYOND


def _fitted(z: Float[np.ndarray, "K d"], weights: Float[np.ndarray, " K"], number: int, wider: float = 1.0) -> Normal:
    mean = weights @ z
    covariance = (weights[:, None] * (z - mean)).T @ (z - mean) + LEAST * np.eye(z.shape[1])
    return Normal(mean, wider * np.linalg.cholesky(covariance), number)


def normalised(log_weights: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    """Their probabilities."""
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()
