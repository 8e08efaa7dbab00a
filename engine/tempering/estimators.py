"""The log evidence from tempered chains, by several estimators, each with a standard error.

An estimator is a smooth function of means over sweeps. Its error is that of the mean of its influence, a series by
sweep and copy in which what neighbouring rungs have in common is contained, and which is as correlated as the chains
are: the effective number of its values is told by its autocorrelation and by how far copies differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator
from scipy.optimize import root_scalar
from scipy.special import expit, logsumexp

from .replicas import Ladder

LogRatio = Float[np.ndarray, "sweep copy rung"]
Series = Float[np.ndarray, "sweep copy"]


class Estimate(NamedTuple):
    """A log evidence with its standard error."""

    value: float
    error: float


def estimates(log_ratio: LogRatio, ladder: Ladder, weights: LogRatio | float = 1.0) -> dict[str, Estimate]:
    """By name of the estimator; thermodynamic integration only where the log ratio has a mean everywhere.

    Draws may have `weights`, of mean one on every rung.
    """
    found = {
        "bridge": bridge(log_ratio, ladder, weights),
        "stepping stone": stepping_stone(log_ratio, ladder, weights),
    }
    if np.all(np.isfinite(log_ratio)):
        found["thermodynamic integration"] = thermodynamic(log_ratio, ladder, weights)
    return found


def bridge(log_ratio: LogRatio, ladder: Ladder, weights: LogRatio | float = 1.0) -> Estimate:
    """Neighbour by neighbour the ratio of normalisers of least variance from draws of both.

    log Z_b' / Z_b is the c for which sigmoid((b' - b) u - c) has the mean over draws at b that sigmoid(c - (b' - b) u)
    has at b'. Source: bennett1976efficient, meng1996simulating.
    """
    total, influence = 0.0, np.zeros(log_ratio.shape[:2])
    weights = np.broadcast_to(weights, log_ratio.shape)
    for k, step in enumerate(np.diff(ladder)):
        ahead, behind = step * log_ratio[..., k], step * log_ratio[..., k + 1]
        before, after = weights[..., k], weights[..., k + 1]
        c = _balanced(ahead, behind, before, after)
        left, right = expit(ahead - c), expit(c - behind)
        total += c
        curvature = np.mean(before * left * (1.0 - left)) + np.mean(after * right * (1.0 - right)) + 1e-300
        mean = np.mean(before * left)
        influence += (before * (left - mean) - after * (right - mean)) / curvature
    return Estimate(total, error_of_mean(influence))


def _balanced(ahead: Series, behind: Series, before: Series, after: Series) -> float:
    """Where the two means are equal, by these weights; one falls in c, the other rises."""
    seen = np.concatenate([ahead[np.isfinite(ahead)], behind[np.isfinite(behind)]])
    low, high = float(seen.min()) - 50.0, float(seen.max()) + 50.0

    def excess(c: float) -> float:
        return float(np.mean(before * expit(ahead - c)) - np.mean(after * expit(c - behind)))

    return float(root_scalar(excess, bracket=(low, high), xtol=1e-12).root)


def stepping_stone(log_ratio: LogRatio, ladder: Ladder, weights: LogRatio | float = 1.0) -> Estimate:
    """The sum of log E_b exp((b' - b) u), from draws at the lower of each pair. Source: xie2011improving."""
    total, influence = 0.0, np.zeros(log_ratio.shape[:2])
    weights = np.broadcast_to(weights, log_ratio.shape)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    for k, step in enumerate(np.diff(ladder)):
        ahead = step * log_ratio[..., k]
        c = float(np.asarray(logsumexp(ahead + log_weights[..., k]))) - np.log(ahead.size)
        total += c
        influence += weights[..., k] * (np.exp(ahead - c) - 1.0)
    return Estimate(total, error_of_mean(influence))


def thermodynamic(log_ratio: LogRatio, ladder: Ladder, weights: LogRatio | float = 1.0) -> Estimate:
    """The integral of E_b u over the inverse temperature b, by monotone cubic interpolation of the means.

    From zero to the first rung the mean is taken to go as c - 1 / (a b + d) where it bends so. What interpolation may
    miss counts in the error: how far the integral is from that of a cubic with the slopes that the variances of u tell.
    Source: gelman1998simulating, lartillot2006computing, paquet2007thesis.
    """
    weights = np.broadcast_to(weights, log_ratio.shape)
    means = (weights * log_ratio).mean((0, 1))
    variances = (weights * (log_ratio - means) ** 2).mean((0, 1))
    steps = 1e-4 * np.sqrt(variances) + 1e-12
    by_mean = [
        (_integral(ladder, means + step * unit) - _integral(ladder, means - step * unit)) / (2.0 * step)
        for step, unit in zip(steps, np.eye(len(means)), strict=True)
    ]
    value = _integral(ladder, means)
    chance = error_of_mean((weights * (log_ratio - means)) @ np.array(by_mean))
    cubic, tail = CubicHermiteSpline(ladder, means, variances), _tail(ladder, means)
    missed = abs(float(cubic.integrate(ladder[1], 1.0)) - _after(ladder, means))
    missed += min(abs(float(cubic.integrate(0.0, ladder[1])) - tail), abs(_plain(ladder, means) - tail))
    return Estimate(value, float(np.hypot(chance, missed)))


def _integral(ladder: Ladder, means: Float[np.ndarray, " rung"]) -> float:
    return _tail(ladder, means) + _after(ladder, means)


def _after(ladder: Ladder, means: Float[np.ndarray, " rung"]) -> float:
    """From the first rung above zero on."""
    return float(PchipInterpolator(ladder, means).integrate(ladder[1], 1.0))


def _plain(ladder: Ladder, means: Float[np.ndarray, " rung"]) -> float:
    """Up to the first rung above zero, without a tail."""
    return float(PchipInterpolator(ladder, means).integrate(0.0, ladder[1]))


def _tail(ladder: Ladder, means: Float[np.ndarray, " rung"]) -> float:
    """Up to the first rung above zero: the integral of c - 1 / (a b + d) through the first three rungs.

    In the two unknowns p = d / a and q = 1 / a it is the curve c - q / (b + p); three points give both in closed form.
    """
    if len(ladder) < 3:
        return _plain(ladder, means)
    (one, two), (first, second, third) = ladder[1:3], means[:3]
    rise, on = second - first, third - first
    # rise = q one / (p (p + one)), on = q two / (p (p + two))
    quotient = rise * two / (on * one) if on > 0.0 else 0.0
    if not (rise > 0.0 and quotient > 1.0 and quotient * one < two):
        return _plain(ladder, means)
    p = (two - quotient * one) / (quotient - 1.0)
    q = rise * p * (p + one) / one
    return float((first + q / p) * one - q * np.log1p(one / p))


def error_of_mean(series: Series) -> float:
    """The standard error of the mean of correlated series: Geyer's sequence of autocorrelations over all copies.

    The variance among the means of copies is part of it. Source: geyer1992practical, vehtari2021rhat.
    """
    sweeps, copies = series.shape
    gap = series - series.mean(0)
    padded = np.fft.rfft(gap, 2 * sweeps, axis=0)
    covariance = np.fft.irfft(np.abs(padded) ** 2, axis=0)[:sweeps].mean(1) / sweeps
    within = covariance[0] * sweeps / max(sweeps - 1, 1)
    between = float(series.mean(0).var(ddof=1)) if copies > 1 else 0.0
    total = covariance[0] + between
    if not total > 0.0:
        return 0.0
    correlation = 1.0 - (within - covariance) / total
    correlation[0] = 1.0
    pairs = correlation[: sweeps - sweeps % 2].reshape(-1, 2).sum(1)
    positive = pairs[: int(np.argmax(pairs <= 0.0)) if np.any(pairs <= 0.0) else len(pairs)]
    times = max(2.0 * float(np.minimum.accumulate(positive).sum()) - 1.0, 1.0 / np.log10(max(series.size, 10)))
    return float(np.sqrt(total * times / series.size))
