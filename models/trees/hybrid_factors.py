"""The factors of the hybrid scheme, each by itself: locations, variances of branches, the prior of times.

Gaussian messages are (shift, precision): exp(shift x - precision x^2 / 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma

from .messages import log_normal, sweep
from .shapes.arrays import Leaves
from .tree import Tree

GRID = 200  # points of the quadrature over a branch's variance
LOG_2PI = float(np.log(2.0 * np.pi))


class Swept(NamedTuple):
    """Messages along every branch: squared differences (nodes, columns) of its ends, their variances, which columns."""

    square: np.ndarray
    outside: np.ndarray
    log_density: np.ndarray
    log_evidence: float


class Tilted(NamedTuple):
    """The variances of branches under cavity times normal factor."""

    naturals: np.ndarray
    cavity: np.ndarray
    log_mass: np.ndarray


def gaussian_sweep(tree: Tree, values: np.ndarray, noise: float, variance: np.ndarray) -> Swept:
    """Exact messages over locations, where the branch above node v has the variance `variance[v]`."""
    seen = ~np.isnan(values)
    leaves = Leaves(np.where(seen, values, 0.0), np.where(seen, noise, np.inf))
    found = sweep(tree, leaves, variance)
    square, outside = (found.up_mean - found.down_mean) ** 2, found.up_variance + found.down_variance
    log_density = log_normal(square, outside + variance[:, None], values.shape[1])
    return Swept(square, outside, log_density, found.log_evidence)


def tilted_variances(messages: Swept, cavity: np.ndarray) -> Tilted:
    """N(w; cavity) 1(w > 0) prod over columns N(up mean; down mean, outside + w), by trapezoids in log w.

    The interval narrows to where the integrand is within exp(-40) of its largest value.
    """
    columns = np.isfinite(messages.outside)
    mean, variance = (part[:, None] for part in moments(cavity))
    typical = np.where(columns, messages.square, 0.0).sum(axis=1) / np.maximum(columns.sum(axis=1), 1)
    high = np.log(np.maximum(mean[:, 0] + 10.0 * np.sqrt(variance[:, 0]), 1e-10))
    low = np.minimum(high - 8.0, np.log(np.maximum(1e-6 * np.minimum(typical, mean[:, 0]), 1e-14)))
    rows = np.arange(len(high))
    while True:
        u = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, GRID)
        w = np.exp(u)
        log = u - 0.5 * (LOG_2PI + np.log(variance) + (w - mean) ** 2 / variance)
        for column in range(messages.square.shape[1]):
            spread = messages.outside[:, column, None] + w
            log = log + log_normal(messages.square[:, column, None, None], spread[..., None], 1)
        top = log.max(axis=1, keepdims=True)
        inside = log > top - 40.0
        if (inside.sum(axis=1) > GRID // 2).all():
            break
        first = np.maximum(inside.argmax(axis=1) - 1, 0)
        last = np.minimum(GRID - inside[:, ::-1].argmax(axis=1), GRID - 1)
        low, high = u[rows, first], u[rows, last]
        if (high - low).max() < 1e-9:
            break
    weight = np.exp(log - top)
    total = weight.sum(axis=1)
    centre = (weight * w).sum(axis=1) / total
    spread = np.maximum((weight * (w - centre[:, None]) ** 2).sum(axis=1) / total, 1e-18 * centre**2)
    log_mass = top[:, 0] + np.log(total * (high - low) / (GRID - 1))
    return Tilted(np.stack([centre / spread, 1.0 / spread]), cavity.copy(), log_mass)


class Times(NamedTuple):
    """Times under cavity times prior: naturals, log mass, E -log(1 - t)."""

    naturals: np.ndarray
    log_mass: np.ndarray
    minus_log: np.ndarray


def beta_times(cavity: np.ndarray, more: np.ndarray) -> Times:
    """Cavity times (1 - t)^more: the cavity as a beta distribution of its mean and variance, moments matched back.

    Where there is no such beta distribution (a cavity reaching out of (0, 1), as early ones do) the cavity is cut to
    that interval and integrated by trapezoids in -log(1 - t), `more` being at least -0.9: below -1 the integral of a
    cut Gaussian does not exist.
    """
    proper = cavity[1] > 0.0
    mean, variance = moments(np.where(proper, cavity, [[0.5], [1.0]]))
    total = mean * (1.0 - mean) / variance - 1.0
    good = proper & (mean > 0.0) & (mean < 1.0) & (total > 0.0) & ((1.0 - mean) * total + more > 0.0)
    a, b = np.where(good, mean * total, 1.0), np.where(good, (1.0 - mean) * total, 1.0)
    after = np.where(good, b + more, 1.0)
    both = a + after
    found = [a / both, a * after / (both**2 * (both + 1.0)), betaln(a, after) - betaln(a, b)]
    minus_log = digamma(both) - digamma(after)
    if not good.all():
        depth = np.linspace(0.0, 40.0, 2001)
        t = -np.expm1(-depth)
        shift, precision = (np.where(proper, part, 0.0)[:, None] for part in cavity)
        log = shift * t - 0.5 * precision * t**2 - depth * (np.maximum(more, -0.9)[:, None] + 1.0)
        top = log.max(axis=1, keepdims=True)
        weight = np.exp(log - top)
        mass = weight.sum(axis=1)
        centre = weight @ t / mass
        spread = np.maximum((weight * (t - centre[:, None]) ** 2).sum(axis=1) / mass, 1e-18)
        log_mass = top[:, 0] + np.log(mass * (depth[1] - depth[0])) - np.where(good, 0.0, log_integral_or_zero(cavity))
        found = [np.where(good, one, other) for one, other in zip(found, (centre, spread, log_mass), strict=True)]
        minus_log = np.where(good, minus_log, weight @ depth / mass)
    return Times(np.stack([found[0] / found[1], 1.0 / found[1]]), found[2], minus_log)


def improper_integral(cavity: np.ndarray, at: float, spread: float) -> float:
    """log of the integral of exp(shift d - precision d^2 / 2) N(d; at, spread) where the precision is not positive."""
    if spread <= 0.0:
        return float(cavity[0] * at - 0.5 * cavity[1] * at**2)
    total = cavity + np.array([at / spread, 1.0 / spread])
    if total[1] <= 0.0:
        return float("nan")
    return float(log_integral(total) - 0.5 * (at**2 / spread + LOG_2PI + np.log(spread)))


def moments(naturals: np.ndarray) -> np.ndarray:
    """Mean and variance; meaningless where the precision is not positive."""
    return np.stack([naturals[0] / naturals[1], 1.0 / naturals[1]])


def proper(naturals: np.ndarray) -> tuple[float, float] | None:
    return (naturals[0] / naturals[1], 1.0 / naturals[1]) if naturals[1] > 0.0 else None


def naturals_of(mean: float, variance: float) -> tuple[float, float]:
    return mean / variance, 1.0 / variance


def log_integral(naturals: np.ndarray) -> np.ndarray:
    """log of the integral of exp(shift x - precision x^2 / 2)."""
    return 0.5 * (naturals[0] ** 2 / naturals[1] - np.log(naturals[1]) + LOG_2PI)


def log_integral_or_zero(naturals: np.ndarray) -> np.ndarray:
    """The same, 0 where the integral is infinite."""
    proper = naturals[1] > 0.0
    return np.where(proper, log_integral(np.where(proper, naturals, [[0.0], [1.0]])), 0.0)
