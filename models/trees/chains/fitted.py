"""A data set with hyperparameters as kernels see it, and a tree fitted to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..backend import Kernels, kernels
from ..likelihoods.leaves import to_leaves
from ..likelihoods.mass import log_intervals
from ..likelihoods.sites import fit_sites
from ..likelihoods.table import Data
from ..likelihoods.times import optimise_times
from ..prior import Tables, TreePrior, tables
from ..shapes.arrays import Arrays, Leaves, unpack
from ..tree import Tree
from .hyper import Hyperpriors, best_rate, best_structure, best_variance, log_gamma_of_log, structure_density

FORGET = 6  # sweeps of depths, or of subtrees, until the start is forgotten
SOME = 2  # until binary trees near it are drawn: flatter ones, by which structure is learned, take all of FORGET
SHARE_SCORED = 0.25  # of the moves of subtrees in a sweep
FEW = 5  # columns; from so many on nearly all moves of binary trees that are accepted are scored: others are left out


@dataclasses.dataclass(frozen=True, eq=False)
class Hyper:
    """Hyperparameters: the prior of trees, diffusion variances (D,) and the noise variance of continuous columns."""

    prior: TreePrior
    variance: np.ndarray
    noise: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Data, what is to be learned, and the back end: what stays the same during a search."""

    data: Data
    learn: frozenset[str]
    priors: Hyperpriors
    shared: bool
    backend: str | Kernels

    @property
    def engine(self) -> Kernels:
        """The functions of the back end."""
        return kernels(self.backend) if isinstance(self.backend, str) else self.backend

    def leaves(self, hyper: Hyper) -> tuple[Leaves, float]:
        """Leaves in kernel units, and the change of units; learning does not change the shape of their variances."""
        found, shift = to_leaves(self.data, hyper.variance, hyper.noise)
        several = not self.shared and (hyper.noise > 0.0 or "noise" in self.learn)
        if several and found.variance.shape[1] == 1:
            found = Leaves(found.mean, np.repeat(found.variance, found.mean.shape[1], axis=1))
        return found, shift

    def log_hyperprior(self, hyper: Hyper) -> float:
        """Log prior density of the logarithms (the logit, for the discount) of what is learned."""
        prior, total = hyper.prior, 0.0
        if "variance" in self.learn:
            each = hyper.variance[:1] if self.shared else hyper.variance
            total += log_gamma_of_log(-np.log(each), self.priors.precision)
        if "noise" in self.learn:
            total += log_gamma_of_log(np.array(-np.log(hyper.noise)), self.priors.noise)
        if "rate" in self.learn:
            total += log_gamma_of_log(np.array(np.log(prior.divergence.rate)), self.priors.rate)
        if "concentration" in self.learn:
            total += log_gamma_of_log(np.array(np.log(prior.concentration)), self.priors.concentration)
        if "discount" in self.learn:
            first, second = self.priors.discount
            total += first * np.log(prior.discount) + second * np.log1p(-prior.discount)
        return float(total)


@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """A tree in arrays, the leaves it was last fitted with, and the log joint density of all of it.

    `shift` is what the kernels' log joint leaves out: change of units, what sites leave out, prior of hyperparameters.
    """

    arrays: Arrays
    leaves: Leaves
    hyper: Hyper
    shift: float
    log_joint: float

    @property
    def table(self) -> Tables:
        """Tables of the tree's prior."""
        return tables(self.hyper.prior, len(self.leaves.mean))

    def tree(self, names: tuple[str, ...] = ()) -> Tree:
        """As data."""
        return unpack(self.arrays, names)


def first_state(problem: Problem, hyper: Hyper, order: np.ndarray, seed: int) -> State:
    """A tree built by adding leaves in an order, with its sites fitted."""
    leaves, shift = problem.leaves(hyper)
    arrays, log_joint = problem.engine.build(leaves, tables(hyper.prior, len(leaves.mean)), order, seed)
    state = State(arrays, leaves, hyper, shift + problem.log_hyperprior(hyper), float(log_joint) + shift)
    return refitted(problem, state, sweeps=30)


def refitted(problem: Problem, state: State, sweeps: int = 4) -> State:
    """The same tree with its sites fitted to it, and its log joint density."""
    data, hyper = problem.data, state.hyper
    shift = problem.leaves(hyper)[1] + problem.log_hyperprior(hyper)
    leaves = state.leaves
    if data.binary.any():
        sites = fit_sites(state.arrays, data, leaves, hyper.variance, sweeps=sweeps, sweep=problem.engine.sweep)
        leaves, shift = sites.leaves, shift + sites.correction
    log_joint = float(problem.engine.joint_gradient(state.arrays, leaves, state.table)[0])
    return State(state.arrays, leaves, hyper, shift, log_joint + shift)


def settled(
    problem: Problem, state: State, random: np.random.Generator, tolerance: float = 1e-2, *, again: bool = False
) -> State:
    """The same structure with its times, hyperparameters and sites improved, each given the others.

    `again` is whether hyperparameters are near where they should be, or will be learned again soon: those of binary
    trees are then learned in less time.
    """
    state = _timed(problem, state, tolerance)
    if not problem.learn:
        return state
    forget = SOME if again and state.hyper.prior.binary else FORGET
    return _timed(problem, refitted(problem, _learned(problem, state, random, forget)), tolerance)


def _timed(problem: Problem, state: State, tolerance: float) -> State:
    times = optimise_times(state.arrays, state.leaves, state.table, backend=problem.engine, tolerance=tolerance)
    return refitted(problem, dataclasses.replace(state, arrays=times.arrays))


def _learned(problem: Problem, state: State, random: np.random.Generator, forget: int) -> State:
    """New hyperparameters, by trees and depths drawn, not by the best ones. At a joint maximum short branches call for
    a high rate and a high rate for short branches, without end; the best structure has fewer branch points than most,
    which calls for a larger discount; and the best times have a smaller variance than most."""
    hyper, learn = state.hyper, problem.learn
    prior, variance, noise = hyper.prior, hyper.variance, hyper.noise
    drawn = next(tree_draws(problem, state, random, 1, forget))
    arrays, leaves = drawn.arrays, drawn.leaves
    if learn & {"rate", "concentration", "discount"} and len(leaves.mean) > 1:
        depth = np.mean([each.depth for each in depth_draws(problem, drawn, random, FORGET)], axis=0)
        mean = arrays._replace(depth=depth)
        if "rate" in learn:
            prior = best_rate(mean, prior, problem.priors.rate)
        if learn & {"concentration", "discount"}:
            prior = best_structure(mean, prior, problem.priors, learn)
    if "variance" in learn:
        new = best_variance(
            arrays, leaves, state.table, variance, problem.priors.precision, problem.engine, shared=problem.shared
        )
        ratio = np.sqrt(variance / new)
        leaves, variance = Leaves(leaves.mean * ratio, leaves.variance * _like(leaves, ratio**2)), new
    if "noise" in learn:
        noise = _best_noise(problem, drawn, Hyper(prior, variance, noise), leaves)
        leaves = with_noise(problem, leaves, Hyper(prior, variance, noise))
    return dataclasses.replace(state, leaves=leaves, hyper=Hyper(prior, variance, noise))


def tree_draws(
    problem: Problem, state: State, random: np.random.Generator, draws: int, forget: int = FORGET
) -> Iterator[State]:
    """Trees of a short chain over structures and depths that starts from one, hyperparameters fixed; the first few,
    `forget`, are left out."""
    arrays, (rows, columns) = state.arrays, state.leaves.mean.shape
    scored = state.hyper.prior.binary and columns >= FEW
    moves, share = (-(-rows // 4), 1.0) if scored else (rows, SHARE_SCORED)
    for sweep in range(forget + draws):
        seeds = random.integers(2**31, size=2)
        if rows > 1:
            arrays, _, _ = problem.engine.subtree_moves(arrays, state.leaves, state.table, int(seeds[0]), moves, share)
            arrays = problem.engine.depth_moves(arrays, state.leaves, state.table, int(seeds[1]))
        if sweep >= forget:
            yield refitted(problem, dataclasses.replace(state, arrays=Arrays(*(np.asarray(part) for part in arrays))))


def depth_draws(problem: Problem, state: State, random: np.random.Generator, draws: int) -> Iterator[Arrays]:
    """Trees of the same structure with depths drawn, all else fixed; the first few draws are left out."""
    arrays = state.arrays
    for sweep in range(FORGET + draws):
        seed = int(random.integers(2**31))
        arrays = problem.engine.depth_moves(arrays, state.leaves, state.table, seed)
        if sweep >= FORGET:
            yield Arrays(*(np.asarray(part) for part in arrays))


def log_mass(problem: Problem, state: State, random: np.random.Generator, draws: int = 24) -> float:
    """The log joint density with depths integrated out, about: what structures of different sizes, and trees with
    different hyperparameters, are compared by.

    At any depths, the mass is the joint density over the density of the depths given structure and data. For that one
    the product of each depth's density given the others is taken, at the mean of draws of the depths: a maximum would
    not do, as it has branches of no length, and depths between two of them have no room; single draws scatter, by some
    nats for a hundred leaves. Exact for one branch point; too low by about .2 nats for each further one, as depths
    depend on one another.
    """
    if len(state.leaves.mean) < 2:
        return state.log_joint
    depth = np.mean([each.depth for each in depth_draws(problem, state, random, draws)], axis=0)
    arrays = state.arrays._replace(depth=depth)
    messages = problem.engine.sweep(arrays, state.leaves)
    density = structure_density(arrays, state.hyper.prior.divergence)(state.hyper.prior)
    room = float(log_intervals(arrays, messages, state.table).sum())
    return float(messages.log_evidence) + density + room + state.shift


def with_noise(problem: Problem, leaves: Leaves, hyper: Hyper) -> Leaves:
    """The leaves with the noise of continuous columns changed and sites of binary ones kept."""
    fresh = problem.leaves(hyper)[0]
    if not problem.data.binary.any():
        return fresh
    return Leaves(leaves.mean, np.where(problem.data.binary, leaves.variance, fresh.variance))


def _best_noise(problem: Problem, state: State, hyper: Hyper, leaves: Leaves) -> float:
    """The noise variance of the largest evidence times prior: a bounded search in its logarithm."""

    def value(step: float) -> float:
        trial = dataclasses.replace(hyper, noise=hyper.noise * float(np.exp(step)))
        messages = problem.engine.sweep(state.arrays, with_noise(problem, leaves, trial))
        return -float(messages.log_evidence) - log_gamma_of_log(np.array(-np.log(trial.noise)), problem.priors.noise)

    found: Any = minimize_scalar(value, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 0.02})
    return hyper.noise * float(np.exp(found.x))


def _like(leaves: Leaves, ratio: np.ndarray) -> np.ndarray:
    return ratio[:1] if leaves.variance.shape[1] == 1 else ratio
