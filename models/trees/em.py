"""Message passing in EM: locations, variance and rate by messages, divergence times by maximising the bound.

The published algorithm, kept to be compared with: `times.optimise_times` climbs the evidence itself, with its exact
gradient, and needs tens of sweeps where EM needs hundreds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from ...factors.errors import DataError, UnsupportedError
from .backend import Kernels, kernels
from .likelihoods.leaves import to_leaves
from .likelihoods.sites import fit_sites
from .likelihoods.table import Data
from .prior import MEASURES, TreePrior, log_structure, tables
from .shapes.arrays import Leaves, Messages, pack
from .tree import ORIGIN, Tree

HISTORY = 10  # differences that L-BFGS remembers
INNER = 50  # steps of L-BFGS in one M-step


class Gamma(NamedTuple):
    """A gamma distribution: shape and rate."""

    shape: float
    rate: float

    @property
    def mean(self) -> float:
        """E x."""
        return self.shape / self.rate

    @property
    def mean_log(self) -> float:
        """E log x."""
        return float(digamma(self.shape) - np.log(self.rate))

    def divergence(self, other: Gamma) -> float:
        """KL(self || other)."""
        return float(
            (self.shape - other.shape) * digamma(self.shape)
            - gammaln(self.shape)
            + gammaln(other.shape)
            + other.shape * np.log(self.rate / other.rate)
            + self.shape * (other.rate - self.rate) / self.rate
        )


class EM(NamedTuple):
    """What `em_times` found.

    Attributes:
        tree: with its divergence times.
        precision: posterior of one over the diffusion variance.
        rate: posterior of the rate c of the divergence function.
        bound: the bound on the log evidence after every iteration; with Gaussian leaves it never falls.
        converged: whether the last iteration gained less than the tolerance.
    """

    tree: Tree
    precision: Gamma
    rate: Gamma
    bound: np.ndarray
    converged: bool


def em_times(
    tree: Tree,
    data: Data,
    prior: TreePrior | None = None,
    *,
    precision: tuple[float, float] = (1.0, 1.0),
    rate: tuple[float, float] = (1.0, 1.0),
    noise: float = 0.0,
    measure: str = "depth",
    iterations: int = 500,
    tolerance: float = 1e-6,
    backend: str | Kernels = "jax",
) -> EM:
    """Divergence times of a tree by variational EM, with posteriors of the diffusion variance and of the rate.

    E step: locations by exact messages given E precision (binary leaves by their EP sites); the precision tau receives
    Gamma(D / 2 + 1, E |x_v - x_u|^2 / (2 length_v)) from every branch, the rate c
    Gamma(2, - J_v log(1 - t_v)) from every branch point, J_v = H(m_v - 1) - sum_k H(n_k - 1). M step: L-BFGS on the
    log odds of all times, of
    `sum_v (E c J_v - s) log(1 - t_v) - D / 2 log(length_v) - E tau E |x_v - x_u|^2 / (2 length_v)`, s = 1 for the
    density with respect to times and 0 for that with respect to depths. The bound is
    `log Z(E tau) + D n (E log tau - log E tau) / 2 - KL(tau) + sum_v (E log c + (E c J_v - s) log(1 - t_v)) - KL(c)
    + log_structure`, over n branches.

    Args:
        tree: structure and first times.
        data: the table, in one unit: the diffusion variance is shared by its columns.
        prior: structure parameters; its divergence function is that of the learned rate.
        precision: Gamma prior of one over the diffusion variance (shape, rate).
        rate: Gamma prior of the rate.
        noise: variance of the noise of continuous columns.
        measure: "depth" or "time", which the paper has and which is degenerate for noisy and binary leaves.
        iterations: at most so many.
        tolerance: stop when an iteration gains less, in nats.
        backend: of the kernels.

    Returns:
        `EM`.

    Raises:
        DataError: another measure, or data of another number of rows.
        UnsupportedError: a divergence function other than c / (1 - t).

    Source: knowles2011trees, with the factor two of its equation for the precision corrected.
    """
    prior = prior or TreePrior()
    check(tree, data, prior, measure)
    engine = kernels(backend) if isinstance(backend, str) else backend
    exponent = _Exponent(exponents(tree, prior), 1.0 if measure == "time" else 0.0)
    return _iterated(tree, data, prior, exponent, Gamma(*precision), Gamma(*rate), noise, engine, iterations, tolerance)


class _Exponent(NamedTuple):
    """J_v and s of every branch point: with rate c its time has density c (1 - t)^(c J - s) up to a constant."""

    j: np.ndarray
    shift: float

    def at(self, c: float) -> np.ndarray:
        """(branch points,) c J - s."""
        return c * self.j - self.shift


def _iterated(
    tree: Tree,
    data: Data,
    prior: TreePrior,
    exponent: _Exponent,
    precision_prior: Gamma,
    rate_prior: Gamma,
    noise: float,
    engine: Kernels,
    iterations: int,
    tolerance: float,
) -> EM:
    """E steps and M steps until the bound gains less than the tolerance."""
    tau, c = _first_precision(data, precision_prior), rate_prior
    leaf_count, columns = data.shape
    points = np.arange(leaf_count, tree.n_nodes)
    branches = columns * tree.n_nodes
    bound: list[float] = []
    sites = None
    while True:
        messages, evidence, sites = _locations(tree, data, tau, noise, engine, sites)
        depth = tree.depth[points]
        log_times = len(points) * c.mean_log - float(exponent.at(c.mean) @ depth)
        spread = 0.5 * branches * (tau.mean_log - np.log(tau.mean)) - tau.divergence(precision_prior)
        bound.append(evidence + spread + log_times - c.divergence(rate_prior) + log_structure(tree, prior))
        converged = len(bound) > 1 and bound[-1] - bound[-2] < tolerance
        if converged or len(bound) > iterations:
            return EM(tree, tau, c, np.array(bound), converged)
        square = squares(tree, messages) / tau.mean  # E |x_v - x_u|^2 in units of the data
        tau = Gamma(
            precision_prior.shape + 0.5 * branches, precision_prior.rate + 0.5 * float((square / tree.length).sum())
        )
        c = Gamma(rate_prior.shape + len(points), rate_prior.rate + float(exponent.j @ depth))
        tree = _with_best_times(tree, exponent.at(c.mean), columns, tau.mean * square)


class _Sites(NamedTuple):
    """Leaves whose binary entries hold EP sites, and the precision of the diffusion in whose units they are."""

    leaves: Leaves
    precision: float


def _locations(
    tree: Tree, data: Data, tau: Gamma, noise: float, engine: Kernels, sites: _Sites | None
) -> tuple[Messages, float, _Sites | None]:
    """The E step over locations given E precision: their messages, log evidence, and the sites to go on from."""
    leaves, jacobian = to_leaves(data, 1.0 / tau.mean, noise)
    if sites is not None:  # sites stay what they are in units of the data
        scale = np.sqrt(tau.mean / sites.precision)
        leaves.mean[:, data.binary] = sites.leaves.mean[:, data.binary] * scale
        leaves.variance[:, data.binary] = sites.leaves.variance[:, data.binary] * scale**2
    found = fit_sites(pack(tree), data, leaves, 1.0 / tau.mean, sweep=engine.sweep)
    evidence = float(found.messages.log_evidence) + found.correction + jacobian
    return found.messages, evidence, _Sites(found.leaves, tau.mean) if data.binary.any() else None


def exponents(tree: Tree, prior: TreePrior) -> np.ndarray:
    """(branch points,) J_v = H(m - 1) - sum over children H(n_k - 1): times have density prod c (1 - t)^(c J - 1)."""
    harmonic = tables(prior, tree.n_leaves).harmonic
    return np.array(
        [
            harmonic[tree.count[v] - 1] - harmonic[tree.count[list(tree.children[v])] - 1].sum()
            for v in range(tree.n_leaves, tree.n_nodes)
        ]
    )


def squares(tree: Tree, messages: Messages) -> np.ndarray:
    """(nodes,) E |x_v - x_u|^2 along the branch above each node, in units where the diffusion variance is 1.

    The step d along a branch is N(0, length), and the messages from its ends see it as N(up - down mean; d, V), V the
    sum of their variances; where one sends none it keeps its prior.
    """
    rows = slice(tree.n_nodes)
    step = np.asarray(messages.up_mean)[rows] - np.asarray(messages.down_mean)[rows]
    length = tree.length[:, None]
    outside = np.asarray(messages.up_variance)[rows] + np.asarray(messages.down_variance)[rows]
    gain = length / (length + outside)
    own = np.broadcast_to(length * (1.0 - gain), step.shape)
    return (own + (gain * step) ** 2).sum(axis=1)


def check(tree: Tree, data: Data, prior: TreePrior, measure: str) -> None:
    if measure not in MEASURES:
        raise DataError(f"The measure of the times is one of {', '.join(MEASURES)}; found {measure!r}.")
    if data.shape[0] != tree.n_leaves:
        raise DataError(f"The tree has {tree.n_leaves} leaves, the data have {data.shape[0]} rows: they are the same.")
    if prior.divergence.constant or prior.divergence.square:
        raise UnsupportedError(
            "EM learns the rate of a(t) = c / (1 - t), whose messages are gamma; this prior has further terms. Use "
            "optimise_times, which takes any divergence function."
        )


def _first_precision(data: Data, prior: Gamma) -> Gamma:
    """A precision of the data's own size: the mean square of a column at time 1 is the diffusion variance."""
    numbers = data.values[:, ~data.binary]
    scale = float(np.nanmean(numbers**2)) if numbers.size else prior.rate / prior.shape
    return Gamma(prior.shape + 1.0, (prior.shape + 1.0) * scale)


def _with_best_times(tree: Tree, exponent: np.ndarray, columns: int, square: np.ndarray) -> Tree:
    """The M step: the objective has a pole at every branch of length zero, beyond which it counts as minus infinity."""
    points = np.arange(tree.n_leaves, tree.n_nodes)
    inner = tree.parent != ORIGIN

    def value(logit: np.ndarray) -> tuple[float, np.ndarray]:
        depth = tree.depth.copy()
        depth[points] = np.logaddexp(0.0, logit)
        above = np.where(inner, depth[tree.parent], 0.0)
        if np.any(depth <= above):
            return -np.inf, logit
        length = np.exp(-above) * -np.expm1(above - depth)
        total = -(exponent @ depth[points]) - 0.5 * (columns * np.log(length) + square / length).sum()
        slope = 0.5 * (square / length - columns) / length  # in the length
        gradient = slope * np.exp(-depth)
        np.subtract.at(gradient, tree.parent[inner], (slope * np.exp(-above))[inner])
        return float(total), (gradient[points] - exponent) * -np.expm1(-depth[points])

    depth = tree.depth.copy()
    depth[points] = np.logaddexp(0.0, climb(value, np.log(np.expm1(tree.depth[points])), INNER))
    return Tree(tree.parent, depth, tree.names)


def climb(value: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, steps: int) -> np.ndarray:
    """Maximises by L-BFGS with halved steps; `value` is minus infinity where a point is not allowed. Never descends."""
    x, (best, gradient) = start, value(start)
    moves: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(steps):
        direction = _newton(gradient, moves)
        if gradient @ direction <= 0.0:
            moves, direction = [], gradient
        size = 1.0 if moves else min(1.0, 1.0 / max(1e-300, np.abs(gradient).max()))
        slope = gradient @ direction
        while size > 1e-12:
            there = x + size * direction
            level, steepness = value(there)
            if level >= best + 1e-4 * size * slope:
                break
            size *= 0.5
        else:
            return x
        move, turn = there - x, gradient - steepness
        if move @ turn > 1e-12 * np.linalg.norm(move) * np.linalg.norm(turn):
            moves = [*moves[1 - HISTORY :], (move, turn)]
        gained, x, best, gradient = level - best, there, level, steepness
        if gained < 1e-10 * max(1.0, abs(best)):
            return x
    return x


def _newton(gradient: np.ndarray, moves: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The direction of L-BFGS, by its two loops."""
    direction, weights = gradient.copy(), []
    for move, turn in reversed(moves):
        weights.append((move @ direction) / (move @ turn))
        direction = direction - weights[-1] * turn
    if moves:
        move, turn = moves[-1]
        direction = direction * (move @ turn) / (turn @ turn)
    for (move, turn), weight in zip(moves, reversed(weights), strict=True):
        direction = direction + move * (weight - (turn @ direction) / (move @ turn))
    return direction
