"""The best place for a subtree in the rest of a tree."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import native
from ..shapes.arrays import GAP, Messages, Subtree
from .edit import Place
from .plan import Links, Queue
from .score import Arrival, Branches, branches_on, density_

GRID = (-3.5, -1.8, -0.1, 1.6, 3.3, 5.0, 6.7, 8.4)  # logits of the fraction of a branch's time: more near its end
REACH = 5.0  # how far beyond them, in logits, the best place may be
KEPT = 4  # branches on which it is refined
STEPS = 18  # of golden section
DEEPEST = 50.0  # depth up to which branch points are put: identical leaves would send them to infinity
POINTS = 33  # of the integral over a branch
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


class Candidates(NamedTuple):
    """Branches, the depths between which a branch point may be put on them, and what arrives there."""

    branches: Branches
    first: Any
    last: Any
    arrival: Arrival


def best_(
    links: Links, queue: Queue, arrays: Any, messages: Messages, subtree: Subtree, tables: Any, old: Place
) -> tuple[Place, Any]:
    """The best place, and by how much its score exceeds that of the old place.

    Where all trees are binary, it has the greatest density, and is no worse than the old one. Otherwise it is the
    branch point of greatest mass, or the branch with the greatest integral of the density over depth, and on it the
    depth of greatest density: places with and without a divergence time of their own do not compare by density.

    Args:
        old: the place that the subtree was taken from; row -1 where it comes from nowhere.
    """
    branches, arrival, joins = branches_on(links, queue, arrays, messages, subtree, tables)
    first = arrays.depth[jnp.maximum(arrays.parent, 0)] + GAP
    last = jnp.minimum(jnp.minimum(arrays.depth, subtree.depth) - GAP, DEEPEST)
    pool = Candidates(branches, first, last, arrival)
    grid = jnp.asarray(GRID)
    coarse, coarse_depth = _score(pool, grid[:, None])
    binary = tables.log_new[min(3, tables.log_new.shape[0] - 1)] == -jnp.inf
    rank = lax.cond(
        binary,
        lambda: coarse.max(0),
        lambda: _log_sum(coarse + _log_slope(pool, grid[:, None])) + math.log(GRID[1] - GRID[0]),
    )
    picks = []
    for _ in range(KEPT):
        picks.append(jnp.argmax(rank))
        rank = jnp.where(jnp.arange(rank.shape[0]) == picks[-1], -jnp.inf, rank)
    rows = jnp.stack(picks)
    kept = _pick(pool, rows)
    start = jnp.argmax(coarse[:, rows], 0)
    low = jnp.where(start == 0, grid[0] - REACH, grid[jnp.maximum(start - 1, 0)])
    high = jnp.where(start == len(GRID) - 1, grid[-1] + REACH, grid[jnp.minimum(start + 1, len(GRID) - 1)])
    logit = _golden(kept, low, high)
    density, depth = _score(kept, logit)
    rough, rough_depth = coarse[start, rows], coarse_depth[start, rows]
    better = density >= rough  # a density with two peaks, or one cut off
    logit, density = jnp.where(better, logit, grid[start]), jnp.where(better, density, rough)
    depth = jnp.where(better, depth, rough_depth)

    came, at = old.node >= 0, jnp.maximum(old.node, 0)
    old_density = _at_depth(branches, arrival, at, old.depth)
    worth = jnp.where(came, jnp.where(old.joins, joins[at], old_density), -jnp.inf)
    joint = jnp.argmax(joins)
    mass = lax.cond(binary, lambda: density, lambda: _mass(kept, logit))
    choice = jnp.argmax(mass)
    found = Place(rows[choice].astype(jnp.int32), depth[choice], joins[joint] > mass[choice])
    gain = density[choice]
    stays = came & ~old.joins & (old_density >= gain) & (binary | (found.node == at) & ~found.joins)
    at_point = Place(joint.astype(jnp.int32), arrays.depth[joint], True)
    found = jax.tree.map(lambda *options: jnp.where(found.joins, *options), at_point, found)
    gain = jnp.where(found.joins, joins[joint], gain)
    found = jax.tree.map(lambda *options: jnp.where(stays, *options), old, found)
    return found, jnp.where(stays, 0.0, gain - jnp.where(came, worth, 0.0))


def _pick(pool: Candidates, index: Any) -> Candidates:
    """Some of the branches."""
    branches, first, last = jax.tree.map(lambda part: part[index], pool[:3])
    return Candidates(branches, first, last, pool.arrival)


def _score(kept: Candidates, logit: Any) -> tuple[Any, Any]:
    """Scores and depths of places at a logit of the fraction of each branch's time."""
    rest = jax.nn.sigmoid(-logit)
    depth = -jnp.log(kept.branches.remaining + rest * kept.branches.span)
    allowed = (kept.branches.prior > -jnp.inf) & (depth >= kept.first) & (depth <= kept.last)
    value = density_(kept.branches, kept.arrival, jax.nn.sigmoid(logit), rest)
    return jnp.where(allowed, value, -jnp.inf), depth


def _log_slope(kept: Candidates, logit: Any) -> Any:
    """Log of the derivative of depth in the logit."""
    fraction, rest = jax.nn.sigmoid(logit), jax.nn.sigmoid(-logit)
    span = kept.branches.span
    return jnp.log(jnp.where(span > 0.0, span * fraction * rest / (kept.branches.remaining + rest * span), 1.0))


@native
def _golden(kept: Candidates, low: Any, high: Any) -> Any:
    """Logits of the greatest scores between two, one for each branch."""

    def body(turn: Any, carry: Any) -> Any:
        low, high, one, two, score_one, score_two = carry
        left = score_one >= score_two  # the maximum is left of two
        starting = turn < 2  # the two first places are scored
        low_, high_ = jnp.where(left, low, one), jnp.where(left, two, high)
        new = jnp.where(left, high_ - _GOLDEN * (high_ - low_), low_ + _GOLDEN * (high_ - low_))
        at = jnp.where(turn == 0, one, jnp.where(turn == 1, two, new))
        score, _ = _score(kept, at)
        kept_place, kept_score = jnp.where(left, one, two), jnp.where(left, score_one, score_two)
        first = low, high, one, two, jnp.where(turn == 0, score, score_one), jnp.where(turn == 1, score, score_two)
        then = (
            low_,
            high_,
            jnp.where(left, new, kept_place),
            jnp.where(left, kept_place, new),
            jnp.where(left, score, kept_score),
            jnp.where(left, kept_score, score),
        )
        return jax.tree.map(lambda one, two: jnp.where(starting, one, two), first, then)

    one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    unknown = jnp.full_like(one, -jnp.inf)
    start = low, high, one, two, unknown, unknown
    _, _, one, two, score_one, score_two = lax.fori_loop(0, STEPS + 2, body, start)
    return jnp.where(score_one >= score_two, one, two)


def _mass(kept: Candidates, logit: Any) -> Any:
    """Log integrals over depth of the densities of branches, by the trapezoidal rule in logits around their maxima."""

    def log_density(at: Any) -> Any:
        return _score(kept, at)[0] + _log_slope(kept, at)

    step = 0.05
    near = log_density(logit + step * jnp.arange(-1.0, 2.0)[:, None])
    curvature = (2.0 * near[1] - near[0] - near[2]) / step**2
    width = jnp.where(curvature < jnp.inf, 5.0 / jnp.sqrt(jnp.clip(curvature, 0.2, 1e6)), 0.1)
    spacing = 2.0 * width / (POINTS - 1)
    return _log_sum(log_density(logit + width * jnp.linspace(-1.0, 1.0, POINTS)[:, None])) + jnp.log(spacing)


def _at_depth(branches: Branches, arrival: Arrival, at: Any, depth: Any) -> Any:
    """The score of a place on the branch `at`, at a depth."""
    own = jax.tree.map(lambda part: part[at], branches)
    after = jnp.exp(-depth) - own.remaining
    return density_(own, arrival, (own.span - after) / own.span, after / own.span)


def _log_sum(values: Any) -> Any:
    top = values.max(0)
    safe = jnp.where(top > -jnp.inf, top, 0.0)
    return jnp.log(jnp.exp(values - safe).sum(0)) + safe
