"""The hybrid of EP and variational messages over locations, divergence times, diffusion variance and rate.

The published algorithm, for posteriors of the times of a given tree. For every branch v below u the length
`d = t_v - t_u` and the variance `w = s d` are variables of their own; the posterior is a product of Gaussians for
locations, t, d, w and s, the diffusion variance, and a gamma for the rate c. Each factor has its divergence:

* `N(x_v; x_u, w)`, EP: locations see the mean of w, w sees all columns, by quadrature;
* `w = s d`, variational: w gets mean and variance of the product, s and d get what the other factors say of w;
* `d = t_v - t_u`, EP: sums of Gaussians;
* `0 < d < 1`, EP: a truncated Gaussian;
* `c (1 - t)^(c J - 1)`, EP on t with c at its mean: by a beta distribution of the same mean and variance;
  variational on c.

A Gaussian message is kept as (shift, precision), its precision may be negative. No fixed point is guaranteed: with
many columns use `em_times` or `optimise_times`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from ...factors.errors import DataError
from ...factors.quadrature.truncation import between
from .em import Gamma, check, exponents
from .hybrid_factors import (
    LOG_2PI,
    beta_times,
    gaussian_sweep,
    improper_integral,
    log_integral,
    log_integral_or_zero,
    moments,
    naturals_of,
    proper,
    tilted_variances,
)
from .likelihoods.table import Data
from .prior import TreePrior, log_structure, tables
from .tree import ORIGIN, Tree

_between = jax.jit(between)


class Hybrid(NamedTuple):
    """What `hybrid` found.

    Attributes:
        tree: with the posterior means of its times.
        time_mean, time_sd: (nodes,) of the Gaussian posterior of each time; 1 and 0 for leaves.
        variance: mean and sd of the diffusion variance.
        rate: posterior of the rate.
        log_evidence: after every iteration, by the same formula at and away from fixed points; NaN where a message
            had no finite integral.
        converged: whether evidence and times have stopped moving.
        skipped: updates that the last iteration left out, since their cavities were improper.
        diagnosis: a sentence.
    """

    tree: Tree
    time_mean: np.ndarray
    time_sd: np.ndarray
    variance: tuple[float, float]
    rate: Gamma
    log_evidence: np.ndarray
    converged: bool
    skipped: int
    diagnosis: str


def hybrid(
    tree: Tree,
    data: Data,
    prior: TreePrior | None = None,
    *,
    variance: tuple[float, float] = (1.0, 1.0),
    rate: tuple[float, float] = (1.0, 1.0),
    noise: float = 0.0,
    damping: float = 0.7,
    iterations: int = 300,
    tolerance: float = 1e-7,
) -> Hybrid:
    """Posterior of the divergence times of a tree, and its log evidence (structure included, times integrated).

    An iteration is one sweep up and down the locations, one across to the lengths and the variance, one up and down
    the times, and one back. Before the first, the messages to the times spread them evenly between their neighbours,
    since those of the prior are improper on their own, and the times alone are iterated.

    Args:
        tree: the structure; its times are not used.
        data: a table of continuous columns, gaps allowed.
        prior: structure parameters; its divergence function is that of the learned rate.
        variance: Gaussian prior of the diffusion variance (mean, variance).
        rate: Gamma prior of the rate (shape, rate).
        noise: variance of the noise.
        damping: share of each message that is new.
        iterations: at most so many.
        tolerance: stop when evidence and times move less.

    Returns:
        `Hybrid`, also where it did not converge: `diagnosis` says what happened.

    Raises:
        DataError: binary columns, numbers out of range.
        UnsupportedError: a divergence function other than c / (1 - t).

    Source: knowles2011trees, minka2005divergence.
    """
    prior = prior or TreePrior()
    check(tree, data, prior, "time")
    if data.binary.any() or tree.n_leaves < 2:
        raise DataError("The hybrid takes two or more rows of continuous columns. For binary ones use em_times.")
    if min(*variance, *rate) <= 0.0 or not 0.0 < damping <= 1.0 or noise < 0.0:
        raise DataError("Priors take positive numbers, the noise a non-negative one, damping lies in (0, 1].")
    state = _State(tree, data, noise, damping, variance, Gamma(*rate), prior)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # such messages are left out
        trace, converged = _iterated(state, log_structure(tree, prior), iterations, tolerance)
    return _result(tree, state, np.array(trace), converged)


def _iterated(state: _State, structure: float, iterations: int, tolerance: float) -> tuple[list[float], bool]:
    """The log evidence after every iteration, that of the structure included, and whether they converged."""
    trace: list[float] = []
    converged = False
    for _ in range(20):
        state.sweep_times()
    state.sweep_back(1.0)
    while len(trace) < iterations and not converged:
        before = state.time_mean
        trace.append(state.iterate() + structure)
        moved = np.abs(state.time_mean - before).max()
        if not np.isfinite(moved):
            break
        near = tolerance * max(1.0, abs(trace[-1]))
        converged = len(trace) > 1 and bool(moved < tolerance and abs(trace[-1] - trace[-2]) < near)
    return trace, converged


def _result(tree: Tree, state: _State, trace: np.ndarray, converged: bool) -> Hybrid:
    points = state.points
    mean, sd = np.ones(tree.n_nodes), np.zeros(tree.n_nodes)
    with np.errstate(invalid="ignore"):
        mean[points], sd[points] = state.total_t[0] / state.total_t[1], 1.0 / np.sqrt(state.total_t[1])
        total_s = state.total_s
        s = float(total_s[0] / total_s[1]), float(1.0 / np.sqrt(total_s[1]))
    if converged:
        diagnosis = f"Converged in {len(trace)} iterations."
    elif not np.isfinite(mean).all():
        diagnosis = f"Diverged in {len(trace)} iterations: a time lost its variance. Damp more, or use em_times."
    else:
        last = trace[-10:]
        moves = f"moves by {np.ptp(last):.2g} in the last {len(last)}" if np.isfinite(last).all() else "is not finite"
        diagnosis = (
            f"Not converged in {len(trace)} iterations: the log evidence {moves}, {state.skipped} messages are left "
            f"out as improper. Damp more (damping={0.5 * state.damping:.2g}), or use em_times, which converges."
        )
    return Hybrid(_ordered(tree, mean), mean, sd, s, state.rate, trace, converged, state.skipped, diagnosis)


def _ordered(tree: Tree, time: np.ndarray) -> Tree:
    """The tree at these times; where a mean is out of order, just below its parent's."""
    depth = tree.depth.copy()
    for node in tree.order[::-1]:
        if node >= tree.n_leaves:
            above = 0.0 if tree.parent[node] == ORIGIN else depth[tree.parent[node]]
            wanted = -np.log1p(-min(max(time[node], 0.0), 1.0 - 1e-12)) if np.isfinite(time[node]) else above
            depth[node] = max(wanted, above + 1e-9)
    return Tree(tree.parent, depth, tree.names)


class _State:
    """All messages; arrays over branches are numbered by the node below, those over times by branch point."""

    def __init__(self, tree, data, noise, damping, variance, rate, prior) -> None:
        self.tree, self.data, self.noise, self.damping = tree, data, noise, damping
        self.rate_prior = self.rate = rate
        self.exponent, self.variance = exponents(tree, prior), variance
        nodes, self.leaves = tree.n_nodes, tree.n_leaves
        self.points = np.arange(self.leaves, nodes)
        self.order = tree.order
        self.above = np.where(tree.parent == ORIGIN, -1, tree.parent - self.leaves)[self.points]
        self.harmonic = tables(prior, self.leaves).harmonic[tree.count[self.points] - 1]
        self.skipped = 0
        self.branch_variance = np.ones(nodes)

        self.w_from_normal, self.w_from_product, self.s_from_product = np.zeros((3, 2, nodes))
        self.d_from_product, self.d_from_limits, self.d_from_times = np.zeros((3, 2, nodes))
        self.up, self.down = np.zeros((2, 2, nodes))  # of `d = t_v - t_u`: to t_u and to t_v
        self.s_prior = np.array([variance[0] / variance[1], 1.0 / variance[1]])
        first = _evenly(tree)[self.leaves :]
        self.t_from_prior = np.array([first * 400.0, np.full(len(first), 400.0)])  # sd 0.05

    # beliefs ----------------------------------------------------------------------------------------------------------

    @property
    def total_t(self) -> np.ndarray:
        """(2, branch points)."""
        total = self.t_from_prior + self.down[:, self.leaves :]
        inner = self.tree.parent != ORIGIN
        for row in range(2):
            np.add.at(total[row], self.tree.parent[inner] - self.leaves, self.up[row, inner])
        return total

    @property
    def time_mean(self) -> np.ndarray:
        """(branch points,)."""
        return self.total_t[0] / self.total_t[1]

    @property
    def total_d(self) -> np.ndarray:
        """(2, nodes)."""
        return self.d_from_product + self.d_from_limits + self.d_from_times

    @property
    def total_s(self) -> np.ndarray:
        """(2,)."""
        return self.s_prior + self.s_from_product.sum(axis=1)

    # the schedule -----------------------------------------------------------------------------------------------------

    def iterate(self) -> float:
        """One iteration, and the log evidence after it."""
        self.skipped = 0
        self.sweep_locations()
        self.sweep_across()
        self.sweep_times()
        self.sweep_back()
        return self.log_evidence()

    def sweep_locations(self) -> None:
        """Up and down the tree of locations, every branch with the mean of its variance."""
        self.messages = gaussian_sweep(self.tree, self.data.values, self.noise, self.branch_variance)

    def sweep_across(self) -> None:
        """From locations by variances to lengths and to the diffusion variance."""
        found = self.tilted_w = tilted_variances(self.messages, self.w_from_product)
        self.w_from_normal = self._damped(self.w_from_normal, found.naturals - self.w_from_product)
        s, d = moments(self.total_s), moments(self.total_d)
        back = self.w_from_normal
        self.d_from_product = np.stack([s[0] * back[0], (s[0] ** 2 + s[1]) * back[1]])
        new = np.stack([d[0] * back[0], (d[0] ** 2 + d[1]) * back[1]])
        old, self.s_from_product = self.s_from_product, self._damped(self.s_from_product, new)
        if self.total_s[1] <= 0.0:
            self.s_from_product, self.skipped = old, self.skipped + 1

    def sweep_times(self) -> None:
        """Up and down the tree of times, then the limits of lengths, the prior of times and the rate."""
        seen = self.d_from_product + self.d_from_limits
        for node in self.order:
            self._up(node, seen[:, node])
        for node in self.order[::-1]:
            self._down(node, seen[:, node])
        t = self.total_t
        for node in self.order:
            self._across(node, t)
        self._limits()
        self._prior()

    def sweep_back(self, damping: float | None = None) -> None:
        """From lengths and the diffusion variance to the variances of branches."""
        s, d = moments(self.total_s), moments(self.total_d)
        mean, spread = s[0] * d[0], (s[0] ** 2 + s[1]) * (d[0] ** 2 + d[1]) - (s[0] * d[0]) ** 2
        good = (spread > 0.0) & (mean > 0.0)
        new = np.where(
            good, [mean / np.where(good, spread, 1.0), 1.0 / np.where(good, spread, 1.0)], self.w_from_product
        )
        self.skipped += int((~good).sum())
        self.w_from_product = self._damped(self.w_from_product, new, damping)
        self.branch_variance = np.maximum(self.w_from_product[0] / self.w_from_product[1], 1e-12)

    def _damped(self, old: np.ndarray, new: np.ndarray, damping: float | None = None) -> np.ndarray:
        share = self.damping if damping is None else damping
        return np.where(np.isfinite(new), old + share * (new - old), old)

    # factors ----------------------------------------------------------------------------------------------------------

    def _time(self, node: int, without: np.ndarray, t: np.ndarray) -> tuple[float, float] | None:
        """Mean and variance of a node's time without one message; leaves and the origin are known."""
        if node == ORIGIN:
            return 0.0, 0.0
        if node < self.leaves:
            return 1.0, 0.0
        return proper(t[:, node - self.leaves] - without)

    def _up(self, node: int, seen: np.ndarray) -> None:
        above, d = self.tree.parent[node], proper(seen)
        own = self._time(node, self.down[:, node], self.total_t)
        if above != ORIGIN and own and d:
            self.up[:, node] = naturals_of(own[0] - d[0], own[1] + d[1])

    def _down(self, node: int, seen: np.ndarray) -> None:
        above, d = self._time(self.tree.parent[node], self.up[:, node], self.total_t), proper(seen)
        if node >= self.leaves and above and d:
            self.down[:, node] = naturals_of(above[0] + d[0], above[1] + d[1])

    def _across(self, node: int, t: np.ndarray) -> None:
        own, above = self._time(node, self.down[:, node], t), self._time(self.tree.parent[node], self.up[:, node], t)
        if own and above:
            self.d_from_times[:, node] = naturals_of(own[0] - above[0], max(own[1] + above[1], 1e-12))
        else:
            self.skipped += 1

    def _limits(self) -> None:
        cavity = self.d_from_product + self.d_from_times
        good = cavity[1] > 0.0
        mean, variance = moments(np.where(good, cavity, [[0.0], [1.0]]))
        sd = np.sqrt(variance)
        with jax.enable_x64(True):
            found = [np.asarray(part) for part in _between(-mean / sd, (1.0 - mean) / sd)]
        self.log_mass = np.where(good, found[0], 0.0)
        precision = 1.0 / (variance * found[2])
        new = np.stack([(mean + sd * found[1]) * precision, precision]) - cavity
        self.d_from_limits = self._damped(self.d_from_limits, np.where(good, new, self.d_from_limits))
        self.skipped += int((~good).sum())

    def _prior(self) -> None:
        """Exponents c J - 1 of 1 - t multiply a beta distribution with the moments of the cavity."""
        cavity = self.total_t - self.t_from_prior
        more = self.rate.mean * self.exponent - 1.0
        found = beta_times(cavity, more)
        self.log_prior = found.log_mass
        self.t_from_prior = self._damped(self.t_from_prior, found.naturals - cavity)
        minus_log = found.minus_log
        above = np.where(self.above < 0, 0.0, minus_log[self.above])
        waiting = self.harmonic @ np.maximum(minus_log - above, 0.0)  # - sum J log(1 - t) where times are in order
        self.rate = Gamma(self.rate_prior.shape + len(self.points), self.rate_prior.rate + float(waiting))

    # evidence ---------------------------------------------------------------------------------------------------------

    def log_evidence(self) -> float:
        """Integrals of the beliefs and scales of the factors; see the module for each factor's divergence."""
        return float(
            self._of_locations() + self._of_product() + self._of_lengths() + self._of_times() + self._of_rate()
        )

    def _of_locations(self) -> float:
        """Normal factors: exact in the locations, by quadrature in the variance of each branch."""
        messages, tilted = self.messages, self.tilted_w
        scale = log_integral(tilted.cavity) - log_integral(tilted.cavity + self.w_from_normal)
        return messages.log_evidence + float(np.sum(tilted.log_mass - messages.log_density + scale))

    def _of_product(self) -> float:
        s, d = moments(self.total_s), moments(self.total_d)
        square_s, square_d = s[0] ** 2 + s[1], d[0] ** 2 + d[1]

        def expected(message, mean, square):
            return message[0] * mean - 0.5 * message[1] * square

        of_w = expected(self.w_from_normal, s[0] * d[0], square_s * square_d)
        of_d = expected(self.d_from_product, d[0], square_d)
        of_s = expected(self.s_from_product, s[0], square_s)
        prior = 0.5 * self.variance[0] ** 2 / self.variance[1] + 0.5 * np.log(2.0 * np.pi * self.variance[1])
        return float(np.sum(of_w - of_d - of_s)) + float(log_integral(self.total_s)) - prior

    def _of_lengths(self) -> float:
        total = self.total_d
        limits = self.log_mass + log_integral(total - self.d_from_limits) - log_integral(total)
        return float(np.sum(log_integral(total) + limits))

    def _of_times(self) -> float:
        t, total_d = self.total_t, self.total_d
        value = float(np.sum(log_integral(t)))
        value += float(np.sum(self.log_prior + log_integral_or_zero(t - self.t_from_prior) - log_integral(t)))
        for node in range(self.tree.n_nodes):
            above, d = self.tree.parent[node], total_d[:, node]
            ends, spread = np.zeros(2), 0.0
            for place, message, sign in ((node, self.down, 1.0), (above, self.up, -1.0)):
                known = self._time(place, message[:, node], t)
                if known is None:
                    return np.nan
                ends, spread = ends + sign * np.array([known[0], 0.0]), spread + known[1]
                if place >= self.leaves:
                    own = t[:, place - self.leaves]
                    value += float(log_integral(own - message[:, node]) - log_integral(own))
            cavity = d - self.d_from_times[:, node]
            if cavity[1] > 0.0:
                mean, width = moments(cavity)
                value += float(log_integral(cavity) - log_integral(d))
                value += -0.5 * (LOG_2PI + np.log(width + spread) + (mean - ends[0]) ** 2 / (width + spread))
            else:
                value += improper_integral(cavity, ends[0], spread) - float(log_integral(d))
        return value

    def _of_rate(self) -> float:
        return len(self.exponent) * self.rate.mean_log - self.rate.divergence(self.rate_prior)


def _evenly(tree: Tree) -> np.ndarray:
    """(nodes,) times spread evenly between the origin and the leaves below."""
    below = np.zeros(tree.n_nodes)
    for node in tree.order:
        below[node] = 1.0 + max((below[child] for child in tree.children[node]), default=-1.0)
    time = np.ones(tree.n_nodes)
    for node in tree.order[::-1]:
        above = 0.0 if tree.parent[node] == ORIGIN else time[tree.parent[node]]
        time[node] = above + (1.0 - above) / (below[node] + 1.0)
    return time
