"""Updates of the hyperparameters of a tree, of latent values of binary columns and of gaps: exact, given the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from ....engine.mcmc.slice_sampling import slice_draw
from ..divergence import Divergence
from ..likelihoods.locations import Columns
from ..likelihoods.times import branch_points
from ..prior import TreePrior, tables
from ..shapes.arrays import Arrays
from .hyper import log_gamma_of_log, structure_density


def draw_rate(arrays: Arrays, prior: TreePrior, gamma: tuple[float, float], random: np.random.Generator) -> TreePrior:
    """The rate of `a(t) = rate / (1 - t)` from its conditional
    `Gamma(shape + points, rate + sum over branch points v below u of H(m - 1) (depth_v - depth_u))`.

    Source: knowles2012thesis.
    """
    points, depth = branch_points(arrays), np.asarray(arrays.depth)
    harmonic = tables(prior, len(depth) // 2).harmonic[np.asarray(arrays.count)[points] - 1]
    waited = harmonic @ (depth[points] - depth[np.asarray(arrays.parent)[points]])
    rate = random.gamma(gamma[0] + len(points)) / (gamma[1] + waited)
    return dataclasses.replace(prior, divergence=Divergence(rate=float(rate)))


def slice_coefficient(
    name: str, arrays: Arrays, prior: TreePrior, gamma: tuple[float, float], random: np.random.Generator
) -> TreePrior:
    """One coefficient of Neal's divergence function, `rate`, `constant` or `square`, by a slice in its logarithm."""

    def candidate(x: np.ndarray) -> TreePrior:
        divergence = dataclasses.replace(prior.divergence, **{name: float(np.exp(x[0]))})
        return dataclasses.replace(prior, divergence=divergence)

    def log_density(x: np.ndarray) -> np.ndarray:
        if abs(x[0]) > 300.0:
            return np.array([-np.inf])
        with np.errstate(over="ignore", invalid="ignore"):
            now = candidate(x)
            value = structure_density(arrays, now.divergence)(now) + log_gamma_of_log(x, gamma)
        return np.array([value if np.isfinite(value) else -np.inf])

    start = np.log([getattr(prior.divergence, name)])
    return candidate(slice_draw(log_density, start, random))


def slice_concentration(
    arrays: Arrays, prior: TreePrior, gamma: tuple[float, float], random: np.random.Generator
) -> TreePrior:
    """The concentration by a slice in its logarithm, under a gamma prior (shape, rate)."""
    density = structure_density(arrays, prior.divergence)

    def candidate(x: np.ndarray) -> TreePrior:
        return dataclasses.replace(prior, concentration=float(np.exp(x[0])))

    def log_density(x: np.ndarray) -> np.ndarray:
        if not -300.0 < x[0] < 50.0:  # beyond, a gamma prior has no mass that numbers show
            return np.array([-np.inf])
        return np.array([density(candidate(x)) + log_gamma_of_log(x, gamma)])

    return candidate(slice_draw(log_density, np.log([prior.concentration]), random))


def slice_discount(
    arrays: Arrays, prior: TreePrior, beta: tuple[float, float], random: np.random.Generator
) -> TreePrior:
    """The discount, between 0 and 1, by a slice in its logit, under a beta prior."""
    density = structure_density(arrays, prior.divergence)

    def candidate(x: np.ndarray) -> TreePrior:
        return dataclasses.replace(prior, discount=float(1.0 / (1.0 + np.exp(-x[0]))))

    def log_density(x: np.ndarray) -> np.ndarray:
        if not abs(x[0]) < 30.0:  # beyond, the discount rounds to 1
            return np.array([-np.inf])
        log_discount, log_rest = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
        return density(candidate(x)) + beta[0] * log_discount + beta[1] * log_rest

    start = np.log([prior.discount]) - np.log1p([-prior.discount])
    return candidate(slice_draw(log_density, start, random))


def draw_precision(
    columns: Columns, variance: np.ndarray, gamma: tuple[float, float], random: np.random.Generator
) -> np.ndarray:
    """1 / diffusion variance, one or one for each column, with all locations integrated out: where leaves are exact or
    their variances are multiples of the diffusion variance it is `Gamma(shape + known / 2, rate + Q / 2)`, Q being the
    quadratic form of the data at unit diffusion variance.

    Args:
        columns: of a sweep over leaves in units of the present `variance`.
        variance: (1,) or (D,) present diffusion variance.
    """
    known, quadratic = columns.known, columns.quadratic * variance
    if len(variance) == 1:
        known, quadratic = known.sum(keepdims=True), quadratic.sum(keepdims=True)
    return random.gamma(gamma[0] + 0.5 * known) / (gamma[1] + 0.5 * quadratic)


def slice_log_gamma(
    log_likelihood: Callable[[np.ndarray], np.ndarray],
    value: np.ndarray,
    gamma: tuple[float, float],
    random: np.random.Generator,
) -> np.ndarray:
    """Positive numbers with independent likelihoods and a gamma prior each, by slices in their logarithms."""

    def log_density(x: np.ndarray) -> np.ndarray:
        clipped = np.clip(x, -60.0, 60.0)
        found = log_likelihood(np.exp(clipped)) + gamma[0] * clipped - gamma[1] * np.exp(clipped)
        return np.where((clipped == x) & np.isfinite(found), found, -np.inf)

    return np.exp(slice_draw(log_density, np.log(value), random))


def draw_latent(signs: np.ndarray, location: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Normals of variance 1 about locations, of the sign given; of either where the sign is 0.

    Source: albert1993bayesian.
    """
    side = np.where(signs == 0.0, 1.0, signs)
    uniform = 1.0 - random.random(location.shape)
    log_mass = np.where(signs == 0.0, 0.0, log_ndtr(side * location))
    found = side * location - ndtri_exp(np.log(uniform) + log_mass)
    return side * np.where(signs == 0.0, found, np.maximum(found, np.finfo(float).tiny))
