"""Metropolis-Hastings moves of subtrees: proposals from the prior, and from the scores of all places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..prior import Tables
from ..shapes.arrays import FARTHEST, GAP, Arrays, Leaves
from .best import CELLS, cell_of, draw_in_cell, masses
from .jit import called, inner, kernel, uniform
from .messages import cavity, renew
from .places import END, LOWER, TOP, UPPER, describe, evidence_at, piece_of, score_one, scratch, survey
from .prior import cumulative, discount_of, intensity, prior_of
from .search import log_joint, random_subtree
from .state import attach, detach, exact, load, store, whole

TRIES = 100  # of a path that parts before the subtree's root
FLOOR = 40.0  # cells so many nats below the best are proposed as if they were no further below


@called
def inverse(prior: Any, wanted: Any) -> Any:
    """The depth at which the integral of the divergence function has a value."""
    if prior.constant == 0.0 and prior.square == 0.0:
        return wanted / prior.rate
    low, high = 0.0, math.inf
    if prior.rate > 0.0:
        high = wanted / prior.rate
    if prior.square > 0.0:
        high = min(high, math.log1p(wanted / prior.square))
    depth = 0.5 * high
    for _ in range(80):  # Newton's step where it stays inside the bracket, halving where it does not
        rest = math.exp(-depth)
        error = cumulative(prior, depth, rest) - wanted
        if error < 0.0:
            low = depth
        else:
            high = depth
        new = depth - error / intensity(prior, rest)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - depth) <= 1e-15 * depth:
            return new
        depth = new
    return depth


@called
def walk(s: Any, prior: Any, discount: Any, random: Any) -> Any:
    """Where the path of one more leaf leaves the tree: a node, whether at it or on its branch, and the depth."""
    u, v = len(s.parent) - 1, s.child[len(s.parent) - 1]
    while True:
        m = s.count[v]
        rate = math.exp(prior.follow[m] - prior.total[m + 1])
        reach = cumulative(prior, s.depth[u], s.rest[u]) - math.log(uniform(random)) / rate
        if s.child[v] < 0 or reach < cumulative(prior, s.depth[v], s.rest[v]):
            return v, False, inverse(prior, reach)
        new = math.exp(prior.new[s.degree[v] + 1])
        left = uniform(random) * (m + new - s.degree[v] * discount) - new
        if left < 0.0:
            return v, True, s.depth[v]
        u, v = v, s.child[v]
        while s.next[v] >= 0:
            left -= s.count[v] - discount
            if left < 0.0:
                break
            v = s.next[v]


@called
def excess(s: Any, prior: Any, v: Any, joins: Any, depth: Any, m: Any) -> Any:
    """What the log prior of attaching m leaves at a place exceeds that of one leaf's path to it, up to a constant.

    The walk proposes as if the subtree were one leaf. The acceptance has to mend that: likelihoods alone would do for
    leaves only.
    """
    if m == 1:
        return 0.0
    here, below = cumulative(prior, depth, math.exp(-depth)), s.count[v]
    total = prior.harmonic[m - 1] * here
    if joins:
        u = v
    else:
        u = s.parent[v]
        above = cumulative(prior, s.depth[u], s.rest[u])
        total += (above - here) * (prior.harmonic[below + m - 1] - prior.harmonic[below])
        total -= prior.total[below + m] - prior.total[below + 1]
        if u != len(s.parent) - 1:  # it has followed the branch of v
            total += prior.follow[below + m] - prior.follow[below + 1]
    while u != len(s.parent) - 1:
        over, k = s.parent[u], s.count[u]
        passed = cumulative(prior, s.depth[over], s.rest[over]) - cumulative(prior, s.depth[u], s.rest[u])
        total += passed * (prior.harmonic[k + m - 1] - prior.harmonic[k])
        total -= prior.total[k + m] - prior.total[k + 1]
        if over != len(s.parent) - 1:
            total += prior.follow[k + m] - prior.follow[k + 1]
        u = over
    return total


@called
def evidence_on_path(s: Any, prior: Any, piece: Any, places: Any, v: Any, joins: Any, depth: Any) -> Any:
    """The evidence of a piece at one place: downward messages along the path to it only."""
    n, w = 0, v
    while w != len(s.parent) - 1:
        places.stack[n] = w
        n += 1
        w = s.parent[w]
    for k in range(n - 1, -1, -1):
        w = places.stack[k]
        cavity(s, places.mean, places.variance, s.parent[w], w, w)
    describe(s, prior, piece, places, s.parent[v], v, v, 0)
    if joins:
        return evidence_at(s, piece, places, 0, s.length[v], 0.0)
    rest, b = math.exp(-depth), places.branch[0]
    return evidence_at(s, piece, places, 0, b[UPPER] - rest, rest - b[LOWER])


@inner
def keeps_distance(top: Any, end: Any, depth: Any) -> Any:
    """Whether a branch point would keep its distance from both ends of a branch."""
    return depth >= top + GAP and depth <= end - GAP


@called
def cut(s: Any, v: Any) -> Any:
    """Detach v with renewed messages; returns its place, and the change of the log evidence outside it."""
    norm = s.norm[s.parent[v]]
    where, joined, low = detach(s, v)
    change = renew(s, low)
    return where, joined, change if joined else change - norm


@inner
def eligible(s: Any, joins: Any) -> Any:
    """How many subtrees there are to choose from once the detached one is attached: all but the top."""
    return len(s.parent) - 2 - s.free[0] + (0 if joins else 1)


@called
def prior_move(s: Any, prior: Any, v: Any, places: Any, discount: Any, random: Any, corrected: Any) -> Any:
    """One move of v with the prior's proposal; returns whether it was accepted."""
    before = s.depth[s.parent[v]]
    old, joined, change = cut(s, v)
    piece = piece_of(s, v)
    new, joins, depth = walk(s, prior, discount, random)
    tries = 1
    while depth > piece.depth - GAP and tries < TRIES:
        new, joins, depth = walk(s, prior, discount, random)
        tries += 1
    top, end = s.depth[s.parent[new]], min(s.depth[new], piece.depth)
    possible = depth <= min(piece.depth - GAP, FARTHEST) and (joins or keeps_distance(top, end, depth))
    gain = -math.inf
    if possible:
        gain = evidence_on_path(s, prior, piece, places, new, joins, depth) + change
        gain += math.log(eligible(s, joined) / eligible(s, joins))
        if corrected:
            gain += excess(s, prior, new, joins, depth, piece.count)
            gain -= excess(s, prior, old, joined, before, piece.count)
    accepted = math.log(uniform(random)) < gain
    if not accepted:
        new, joins, depth = old, joined, before
    renew(s, attach(s, v, new, joins, depth))
    return accepted


@called
def draw(log_mass: Any, n: Any, largest: Any, random: Any) -> Any:
    """A row and a cell, drawn in proportion to masses."""
    total, least = 0.0, math.exp(-FLOOR)
    for i in range(n):
        for j in range(CELLS + 1):
            if log_mass[i, j] > -math.inf:
                mass = math.exp(log_mass[i, j] - largest) if log_mass[i, j] > largest - FLOOR else least
                log_mass[i, j] = max(log_mass[i, j], largest - FLOOR)
                total += mass
    left = uniform(random) * total
    row, cell = 0, 0
    for i in range(n):
        for j in range(CELLS + 1):
            if log_mass[i, j] > -math.inf:
                row, cell = i, j
                left -= math.exp(log_mass[i, j] - largest) if log_mass[i, j] > largest - FLOOR else least
                if left < 0.0:
                    return row, cell
    return row, cell


@called
def scored_move(s: Any, prior: Any, v: Any, places: Any, log_mass: Any, random: Any) -> Any:
    """One move of v with a proposal in proportion to the scores of all places; returns whether it was accepted."""
    before = s.depth[s.parent[v]]
    old, joined, _ = cut(s, v)
    piece = piece_of(s, v)
    n = survey(s, prior, piece, places, False)
    largest = masses(s, prior, piece, places, n, log_mass)
    row = 0
    while places.node[row] != old:
        row += 1
    to, cell = draw(log_mass, n, largest, random)
    joins, depth, possible = cell == CELLS, 0.0, True
    # Densities over proposals' densities; a branch point's mass is proposed exactly.
    gain = math.log(eligible(s, joined) / eligible(s, joins))
    if not joins:
        b = places.branch[to]
        depth = draw_in_cell(b, cell, uniform(random))
        possible = keeps_distance(b[TOP], b[END], depth)
        if possible:
            cell, density = cell_of(b, depth)
            gain += score_one(s, prior, piece, places, to, depth) - log_mass[to, cell] - density
    else:
        depth = s.depth[places.node[to]]
        gain += places.point[to] - log_mass[to, CELLS]
    if joined:
        gain -= places.point[row] - log_mass[row, CELLS]
    else:
        cell, density = cell_of(places.branch[row], before)
        gain -= score_one(s, prior, piece, places, row, before) - log_mass[row, cell] - density
    accepted = possible and depth <= FARTHEST and math.log(uniform(random)) < gain
    if accepted:
        renew(s, attach(s, v, places.node[to], joins, depth))
    else:
        renew(s, attach(s, v, old, joined, before))
    return accepted


@kernel
def run_moves(arrays: Any, leaves: Any, prior: Any, seed: Any, steps: Any, share_scored: Any, corrected: Any) -> Any:
    """`subtree_moves`; without `corrected` the prior's proposal is accepted by likelihoods alone, which is wrong."""
    s = load(arrays, leaves)
    rows, columns = s.mean.shape
    log_joint(s, prior)
    places, log_mass = scratch(rows, columns, s.variance.shape[1]), np.zeros((rows, CELLS + 1))
    random = np.full(1, seed, np.uint64)
    accepted, proposed = np.zeros(2, np.int64), np.zeros(2, np.int64)
    discount = discount_of(prior) if rows > 2 else 0.0
    for _ in range(steps if rows > 2 else 0):
        v, scored = random_subtree(s, random), uniform(random) < share_scored
        if s.depth[s.parent[v]] > FARTHEST:
            done = False
        elif scored:
            done = scored_move(s, prior, v, places, log_mass, random)
        else:
            done = prior_move(s, prior, v, places, discount, random, corrected)
        kind = 1 if scored else 0
        proposed[kind] += 1
        accepted[kind] += 1 if done else 0
    return store(s), accepted, proposed


def subtree_moves(
    arrays: Arrays, leaves: Leaves, tables: Tables, seed: int, steps: int, share_scored: float
) -> tuple[Arrays, np.ndarray, np.ndarray]:
    """Metropolis-Hastings moves of random subtrees, which leave the posterior of tree and divergence times unchanged.

    A subtree is detached and attached elsewhere. Its new place is drawn either from the path that one more leaf would
    take (cheap: messages change along two paths only), accepted by the ratio of evidences and of what the prior says
    of a whole subtree beyond a leaf; or from the scores of all places, by cells, accepted by what a place's score
    differs from its cell's. Proposals depend on the detached subtree and the rest only.

    Args:
        arrays: the tree to start from.
        leaves: Gaussians of the leaves, in units where the diffusion variance is 1.
        tables: of the prior.
        seed: of all draws.
        steps: how many moves.
        share_scored: probability of the second kind of proposal.

    Returns:
        The tree; (2,) accepted and (2,) proposed moves of the first and of the second kind.

    Source: knowles2012thesis.
    """
    share = float(share_scored)
    return run_moves(whole(arrays), exact(leaves), prior_of(tables), int(seed), int(steps), share, True)
