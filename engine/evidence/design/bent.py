"""Coordinates in which a skewed density is nearly a standard normal: its axes, each stretched to one side.

The curvature at a peak tells the axes and their scale. Along each of them a density of scales falls faster to one side
than to the other; x = y + b (sqrt(1 + y^2) - 1) is about y near the peak and tends to the two lines (1 + b) y and
(1 - b) y: a split normal without its edge, so that sums over points evenly spaced stay accurate. Source: rue2009inla.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .peak import LogDensity, Peak

LOOKED_AT = 2.0  # standard deviations on either side of the peak
ROUNDS = 2  # of looking
MOST = 0.85  # bend: beyond, one side would hardly move
FALLS = (0.05, 8.0)  # nats between which a fall tells a scale
_FINE = np.linspace(-8.0, 8.0, 801)[:, None]


class Bent(NamedTuple):
    """Points x = centre + root @ (y + bend * (sqrt(1 + y^2) - 1)) with y = mean + inner @ z, for coordinates z."""

    centre: Float[np.ndarray, " d"]
    root: Float[np.ndarray, "d d"]
    bend: Float[np.ndarray, " d"]
    mean: Float[np.ndarray, " d"]
    inner: Float[np.ndarray, "d d"]

    def points(self, z: Float[np.ndarray, "K d"]) -> Float[np.ndarray, "K d"]:
        """The points at these coordinates."""
        y = self.mean + z @ self.inner.T
        return self.centre + (y + self.bend * _rise(y)) @ self.root.T

    def log_slope(self, z: Float[np.ndarray, "K d"]) -> Float[np.ndarray, " K"]:
        """The logarithm of the volume of x for one of z."""
        y = self.mean + z @ self.inner.T
        affine = np.linalg.slogdet(self.root)[1] + np.linalg.slogdet(self.inner)[1]
        return np.log1p(self.bend * y / np.sqrt(1.0 + y**2)).sum(axis=1) + affine

    def moved(self, mean: Float[np.ndarray, " d"], root: Float[np.ndarray, "d d"]) -> Bent:
        """Coordinates z' with z = mean + root @ z'."""
        return self._replace(mean=self.mean + self.inner @ mean, inner=self.inner @ root)

    @property
    def spread(self) -> Float[np.ndarray, "d d"]:
        """About a root of the covariance of x where that of z is one."""
        return self.root @ self.inner


def straight(found: Peak) -> Bent:
    """The axes of a peak as they are."""
    d = len(found[0])
    return Bent(*found, np.zeros(d), np.zeros(d), np.eye(d))


def bent(log_density: LogDensity, found: Peak) -> Bent:
    """The axes of a peak, each bent so that the density falls alike on both sides: z has mean 0 and variance 1."""
    now, d = straight((found[0], _upright(found[1]))), len(found[0])
    steps = LOOKED_AT * np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)])
    for _ in range(ROUNDS):
        values = log_density(now.points(steps))
        with np.errstate(invalid="ignore"):  # where there is no density at all
            fall = np.where(np.isfinite(values), values[0] - values, np.inf)[1:].reshape(2, d)
        up, down = np.sqrt(2.0 * np.clip(fall, *FALLS))
        bend_up, bend_down = LOOKED_AT + now.bend * _rise(LOOKED_AT), LOOKED_AT - now.bend * _rise(LOOKED_AT)
        ratio = bend_up / bend_down
        bend = np.clip((ratio * down - up) / (_rise(up) + ratio * _rise(down)), -MOST, MOST)
        scale = (bend_up + bend_down) / (up + down + bend * (_rise(up) - _rise(down)))
        now = now._replace(root=now.root * scale, bend=bend)
    density = np.exp(-0.5 * _FINE**2) * (1.0 + now.bend * _FINE / np.sqrt(1.0 + _FINE**2))
    density /= density.sum(axis=0)
    mean = (density * _FINE).sum(axis=0)
    return now.moved(mean, np.diag(np.sqrt((density * (_FINE - mean) ** 2).sum(axis=0))))


def _upright(root: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """The root of the same covariance whose axes are nearest to those of the coordinates: there skewness lives."""
    covariance = root @ root.T
    sds = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(sds, sds))
    return sds[:, None] * (vectors * np.sqrt(values)) @ vectors.T


def _rise(y: np.ndarray | float) -> np.ndarray:
    return np.sqrt(1.0 + np.square(y)) - 1.0
