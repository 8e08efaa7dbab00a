"""The best place for a subtree in the rest of a tree."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from ..shapes.arrays import GAP, Arrays
from .edit import Place
from .score import Arrival, Branches, Scored, density_

GRID = np.array([-3.5, -1.8, -0.1, 1.6, 3.3, 5.0, 6.7, 8.4])  # logits of the fraction of a branch's time
FRACTIONS = expit(GRID)
REACH = 5.0  # how far beyond them, in logits, the best place may be
KEPT = 4  # branches on which it is refined
SHARES = np.arange(1.0, 9.0)[:, None] / 9.0  # places in a bracket that are scored together
ROUNDS = 3  # each narrows the bracket to 2/9 of its width: what is left, the next optimisation of all times finds
DEEPEST = 50.0  # depth up to which branch points are put: identical leaves would send them to infinity
POINTS = np.linspace(-1.0, 1.0, 33)[:, None]  # of the integral over a branch


class Candidates(NamedTuple):
    """Branches, the depths between which a branch point may be put on them, and what arrives there."""

    branches: Branches
    first: Any
    last: Any
    arrival: Arrival


class Found(NamedTuple):
    """A place on each of some branches: logits of the fractions of their times, depths and scores."""

    logit: np.ndarray
    depth: np.ndarray
    score: np.ndarray


def best(scored: Scored, arrays: Arrays, root: int, old: Place | None, binary: bool) -> tuple[Place, float]:
    """The best place, and by how much its score exceeds that of the old place.

    Where all trees are binary, it has the greatest density, and is no worse than the old one. Otherwise it is the
    branch point of greatest mass, or the branch with the greatest integral of the density over depth, and on it the
    depth of greatest density: places with and without a divergence time of their own do not compare by density.

    Args:
        scored: at FRACTIONS.
        arrays: the rest of the tree.
        root: of the subtree.
        old: the place that it was taken from; None where it comes from nowhere.
        binary: whether all trees are.
    """
    end = np.minimum(arrays.depth, arrays.depth[root])
    pool = Candidates(
        scored.branches,
        arrays.depth[np.maximum(arrays.parent, 0)] + GAP,
        np.minimum(end - GAP, DEEPEST),
        scored.arrival,
    )
    depth = _depth(pool, GRID[:, None])
    coarse = np.where(_allowed(pool, depth), scored.branch.T, -np.inf)
    rank: Any = coarse.max(axis=0) if binary else logsumexp(coarse + _log_slope(pool, GRID[:, None]), axis=0)
    rows = np.argsort(-rank, kind="stable")[:KEPT]
    kept = _some(pool, rows)
    found = _refined(kept, coarse[:, rows], depth[:, rows])
    mass = found.score if binary else _log_mass(kept, found.logit)
    choice, joint = int(np.argmax(mass)), int(np.argmax(scored.point))
    place, gain = Place(int(rows[choice]), float(found.depth[choice]), False), float(found.score[choice])
    if scored.point[joint] > mass[choice]:
        place, gain = Place(joint, float(arrays.depth[joint]), True), float(scored.point[joint])
    if old is None:
        return place, gain
    worth = score_of(scored, old)
    comparable = not old.joins and not place.joins and (binary or place.node == old.node)
    return (old, 0.0) if comparable and worth >= gain else (place, gain - worth)


def score_of(scored: Scored, place: Place) -> float:
    """The score of one place."""
    if place.joins:
        return float(scored.point[place.node])
    own = Branches(*(part[place.node] for part in scored.branches))
    after = math.exp(-place.depth) - own.remaining
    return float(_density(own, scored.arrival, (own.span - after) / own.span, after / own.span))


def _density(branches: Branches, arrival: Arrival, fraction: Any, rest: Any) -> Any:
    with np.errstate(invalid="ignore", divide="ignore"):  # of what nothing is known of, and of rows without a branch
        return density_(branches, arrival, fraction, rest)


def _some(pool: Candidates, rows: np.ndarray) -> Candidates:
    """Some of the branches."""
    branches = Branches(*(part[rows] for part in pool.branches))
    return Candidates(branches, pool.first[rows], pool.last[rows], pool.arrival)


def _depth(pool: Candidates, logit: np.ndarray) -> np.ndarray:
    """Depths at logits of the fraction of each branch's time."""
    left = pool.branches.remaining + expit(-logit) * pool.branches.span
    return -np.log(np.where(left > 0.0, left, 1.0))


def _allowed(pool: Candidates, depth: np.ndarray) -> np.ndarray:
    return (pool.branches.prior > -np.inf) & (depth >= pool.first) & (depth <= pool.last)


def _score(pool: Candidates, logit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores and depths of places at logits of the fraction of each branch's time."""
    depth = _depth(pool, logit)
    value = _density(pool.branches, pool.arrival, expit(logit), expit(-logit))
    return np.where(_allowed(pool, depth), value, -np.inf), depth


def _log_slope(pool: Candidates, logit: np.ndarray) -> np.ndarray:
    """Log of the derivative of depth in the logit."""
    fraction, rest, span = expit(logit), expit(-logit), pool.branches.span
    safe = np.where(span > 0.0, pool.branches.remaining + rest * span, 1.0)
    return np.log(np.where(span > 0.0, span * fraction * rest / safe, 1.0))


def _refined(kept: Candidates, coarse: np.ndarray, depth: np.ndarray) -> Found:
    """The place of the greatest score on each branch, from the scores on the grid: a bracket is narrowed about it."""
    at, column = coarse.argmax(axis=0), np.arange(coarse.shape[1])
    found = Found(GRID[at], depth[at, column], coarse[at, column])
    low = np.where(at == 0, GRID[0] - REACH, GRID[np.maximum(at - 1, 0)])
    high = np.where(at == len(GRID) - 1, GRID[-1] + REACH, GRID[np.minimum(at + 1, len(GRID) - 1)])
    for _ in range(ROUNDS):
        logit = low + (high - low) * SHARES
        score, depth = _score(kept, logit)
        at = score.argmax(axis=0)
        now = Found(logit[at, column], depth[at, column], score[at, column])
        better = now.score >= found.score  # else a density with two peaks, or one cut off
        found = Found(*(np.where(better, new, old) for new, old in zip(now, found, strict=True)))
        step = (high - low) / (len(SHARES) + 1)
        low, high = now.logit - step, now.logit + step
    return found


def _log_mass(kept: Candidates, logit: np.ndarray) -> np.ndarray:
    """Log integrals over depth of the densities of branches, by the trapezoidal rule in logits around their maxima."""

    def log_density(at: np.ndarray) -> np.ndarray:
        return _score(kept, at)[0] + _log_slope(kept, at)

    step = 0.05
    below, middle, above = log_density(logit + step * np.arange(-1.0, 2.0)[:, None])
    with np.errstate(invalid="ignore"):
        curvature = (2.0 * middle - below - above) / step**2
        width = np.where(curvature < np.inf, 5.0 / np.sqrt(np.clip(curvature, 0.2, 1e6)), 0.1)
    return logsumexp(log_density(logit + width * POINTS), axis=0) + np.log(2.0 * width / (len(POINTS) - 1))
