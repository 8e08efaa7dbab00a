"""Where a subtree can be attached, and what every place is worth: the one primitive of building, search and moves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Arrays, Leaves, Messages, Subtree
from ..prior import Tables
from .jit import HUGE, LOG_2PI, flat_or, kernel, log
from .messages import cavity
from .prior import cumulative, intensity, prior_of
from .state import load, whole

LANES = 8  # places on one branch that are scored together, as one vector
# Columns of `Places.branch`: 1 - time at the upper end, and at the lower end of what is possible; the time between;
# times from there to the branch's own lower end and to the subtree's root; variances of the messages from below and
# above; squared distances subtree-below, subtree-above, below-above; the prior's slope in the integral of the
# divergence function, and its constant; depths of the two ends.
UPPER, LOWER, SPAN, TO_NODE, TO_ROOT, BELOW, ABOVE, SUB_BELOW, SUB_ABOVE, APART, SLOPE, CONSTANT, TOP, END = range(14)


class Piece(NamedTuple):
    """A detached subtree: its message (D,), (P,), depth, 1 - time, leaves."""

    mean: Any
    variance: Any
    depth: Any
    rest: Any
    count: Any


class Places(NamedTuple):
    """Scratch of a survey; the first rows are in use.

    Attributes:
        node: (2N,) the nodes whose branches can take the subtree.
        branch: (2N, 14) what scoring needs of each.
        point: (2N,) score of joining each of these nodes, -inf where that is impossible.
        mean, variance: (2N, D), (2N, P) downward messages.
        stack, row: (2N,) nodes still to be visited, and their rows in `mean`.
        passed: (2N,) log prior of having come down to a node and going on below it.
        lanes: (3, 16) times from the two ends of a branch, and scores.
    """

    node: Any
    branch: Any
    point: Any
    mean: Any
    variance: Any
    stack: Any
    row: Any
    passed: Any
    lanes: Any


@kernel
def scratch(rows: Any, columns: Any, parts: Any) -> Any:
    """Room for surveys."""
    return Places(
        np.zeros(rows, np.int64),
        np.zeros((rows, 14)),
        np.zeros(rows),
        np.zeros((rows, columns)),
        np.zeros((rows, parts)),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows),
        np.zeros((3, 2 * LANES)),
    )


@kernel
def piece_of(s: Any, v: Any) -> Any:
    """The subtree below v as a piece."""
    return Piece(s.mean[v], s.variance[v], s.depth[v], s.rest[v], s.count[v])


@kernel
def survey(s: Any, prior: Any, piece: Any, places: Any, known: Any) -> Any:
    """List the branches that start before the subtree's root, with what scoring needs; returns how many.

    Downward messages are computed on the way, in a stack of rows, so that they stay in the cache; where they are
    `known`, or differ between columns (then scoring reads them), they are in the rows of their nodes.
    """
    origin = len(s.parent) - 1
    keep = known or s.variance.shape[1] > 1
    places.stack[0], places.row[0] = origin, origin if keep else 0
    waiting, n = 1, 0
    while waiting > 0:
        waiting -= 1
        u, above = places.stack[waiting], places.row[waiting]
        free = above + 1
        v = s.child[u]
        while v >= 0:
            row = v if keep else free
            if not known:
                cavity(s, places.mean, places.variance, above, v, row)
            _describe(s, prior, piece, places, u, v, row, n)
            n += 1
            if s.child[v] >= 0 and s.depth[v] < piece.depth:
                places.stack[waiting], places.row[waiting] = v, row
                waiting += 1
                free += 1
            v = s.next[v]
    return n


@kernel
def _describe(s: Any, prior: Any, piece: Any, places: Any, u: Any, v: Any, row: Any, i: Any) -> Any:
    """Write row i of the places: the branch from u down to v, and the branch point v."""
    b, m, below = places.branch[i], piece.count, s.count[v]
    places.node[i] = v
    ends = s.depth[v] <= piece.depth
    b[UPPER], b[TOP] = s.rest[u], s.depth[u]
    if ends:
        b[LOWER], b[END], b[SPAN] = s.rest[v], s.depth[v], s.length[v]
        b[TO_NODE], b[TO_ROOT] = 0.0, s.rest[v] * -math.expm1(s.depth[v] - piece.depth)
        if math.isinf(s.depth[v]):
            b[TO_ROOT] = 0.0
    else:
        b[LOWER], b[END], b[SPAN] = piece.rest, piece.depth, s.rest[u] * -math.expm1(s.depth[u] - piece.depth)
        b[TO_NODE], b[TO_ROOT] = piece.rest * -math.expm1(piece.depth - s.depth[v]), 0.0
    if s.variance.shape[1] == 1:
        one, two, three = 0.0, 0.0, 0.0
        for d in range(s.mean.shape[1]):
            here, there, middle = piece.mean[d], s.mean[v, d], places.mean[row, d]
            one += (here - there) ** 2
            two += (here - middle) ** 2
            three += (there - middle) ** 2
        b[BELOW], b[ABOVE] = s.variance[v, 0], places.variance[row, 0]
        b[SUB_BELOW], b[SUB_ABOVE], b[APART] = one, two, three
    # The prior: what changes above the branch, on it, and below it.
    total = cumulative(prior, s.depth[u], s.rest[u])
    taken = 0.0 if u == len(s.parent) - 1 else places.passed[u] + prior.follow[below + m] - prior.follow[below]
    gain = prior.harmonic[below + m - 1] - prior.harmonic[below - 1]
    inside = prior.harmonic[m - 1]
    start = prior.follow[m] - prior.unit
    if m > 1:
        start -= inside * cumulative(prior, piece.depth, piece.rest)
    b[SLOPE] = inside - gain
    b[CONSTANT] = taken + gain * total + prior.follow[below] - prior.total[below + m] + start
    places.point[i] = -np.inf
    if ends and s.child[v] >= 0:
        here = cumulative(prior, s.depth[v], s.rest[v])
        taken += (total - here) * gain - prior.total[below + m] + prior.total[below]
        places.passed[v] = taken
        if prior.new[s.degree[v] + 1] > -np.inf and s.depth[v] < piece.depth:
            evidence = evidence_at(s, piece, places, i, s.length[v], 0.0)
            places.point[i] = taken + prior.new[s.degree[v] + 1] + start + inside * here + evidence


@kernel
def evidence_at(s: Any, piece: Any, places: Any, i: Any, x: Any, y: Any) -> Any:
    """Log density of the subtree's message at times x and y from the two ends of branch i."""
    b = places.branch[i]
    if s.variance.shape[1] == 1:
        return _evidence(b, piece.variance[0], float(s.mean.shape[1]), x, y)
    v, total = places.node[i], 0.0
    for d in range(s.mean.shape[1]):
        total += _column(s, piece, places, v, d, b[TO_NODE], b[TO_ROOT], x, y)
    return -0.5 * total


@kernel
def _column(s: Any, piece: Any, places: Any, v: Any, d: Any, to_node: Any, to_root: Any, x: Any, y: Any) -> Any:
    """-2 times one column's part of the evidence, where columns have their own variances."""
    p, q = places.variance[v, d] + x, s.variance[v, d] + y + to_node
    share = p / (p + q)
    spread = share * q + piece.variance[d] + y + to_root
    middle = places.mean[v, d] + share * (s.mean[v, d] - places.mean[v, d])
    return flat_or(spread, log(spread) + LOG_2PI + (piece.mean[d] - middle) ** 2 / spread)


@kernel
def _evidence(b: Any, variance: Any, columns: Any, x: Any, y: Any) -> Any:
    """The evidence where all columns share their variances: three squared distances say all of the means."""
    p, q = b[ABOVE] + x, b[BELOW] + y + b[TO_NODE]
    share = p / (p + q)
    spread = share * q + variance + y + b[TO_ROOT]
    square = share * b[SUB_BELOW] + (1.0 - share) * b[SUB_ABOVE] - share * (1.0 - share) * b[APART]
    return flat_or(spread, -0.5 * (columns * (log(spread) + LOG_2PI) + square / spread))


@kernel
def prior_at(prior: Any, b: Any, y: Any) -> Any:
    """Log prior of diverging on a branch, a time y before the end of what is possible."""
    rest = b[LOWER] + y
    passed = prior.constant * (1.0 - rest) + prior.square * (1.0 / rest - 1.0) - prior.rate * log(rest)
    return b[CONSTANT] + b[SLOPE] * passed + log(intensity(prior, rest))


@kernel
def score_lanes(s: Any, prior: Any, piece: Any, places: Any, i: Any, start: Any) -> Any:
    """Scores of branch i at the times in lanes start .. start + 7."""
    b, lanes = places.branch[i], places.lanes
    x, y, out = lanes[0, start : start + LANES], lanes[1, start : start + LANES], lanes[2, start : start + LANES]
    if prior.constant == 0.0 and prior.square == 0.0:
        base, slope = b[CONSTANT] + math.log(prior.rate), -prior.rate * b[SLOPE]
        for j in range(LANES):
            out[j] = base + slope * log(b[LOWER] + y[j])
    else:
        for j in range(LANES):
            out[j] = prior_at(prior, b, y[j])
    if s.variance.shape[1] == 1:
        variance, columns = piece.variance[0], float(s.mean.shape[1])
        for j in range(LANES):
            out[j] += _evidence(b, variance, columns, x[j], y[j])
    else:
        v, to_node, to_root = places.node[i], b[TO_NODE], b[TO_ROOT]
        for d in range(s.mean.shape[1]):
            for j in range(LANES):
                out[j] -= 0.5 * _column(s, piece, places, v, d, to_node, to_root, x[j], y[j])


@kernel
def score_one(s: Any, prior: Any, piece: Any, places: Any, i: Any, depth: Any) -> Any:
    """Score of branch i at a depth."""
    b, rest = places.branch[i], math.exp(-depth)
    return prior_at(prior, b, rest - b[LOWER]) + evidence_at(s, piece, places, i, b[UPPER] - rest, rest - b[LOWER])


@kernel
def _score_all(
    arrays: Any, leaves: Any, down_mean: Any, down_variance: Any, piece: Any, prior: Any, fractions: Any
) -> Any:
    s = load(arrays, leaves[0])
    rows = len(s.parent)
    s.mean[:], s.variance[:] = leaves[1], leaves[2]
    places = scratch(rows, s.mean.shape[1], s.variance.shape[1])
    places.mean[:], places.variance[:] = down_mean, down_variance
    n = survey(s, prior, piece, places, True)
    branch, point = np.full((rows, len(fractions)), -np.inf), np.full(rows, -np.inf)
    for i in range(n):
        v, span = places.node[i], places.branch[i, SPAN]
        point[v] = places.point[i]
        for k in range(0, len(fractions), LANES):
            if not span > 0.0:
                break
            many = min(LANES, len(fractions) - k)
            for j in range(LANES):
                f = fractions[min(k + j, len(fractions) - 1)]
                places.lanes[0, j], places.lanes[1, j] = f * span, (1.0 - f) * span
            score_lanes(s, prior, piece, places, i, 0)
            for j in range(many):
                branch[v, k + j] = places.lanes[2, j]
    return branch, point


def score(
    arrays: Arrays, messages: Messages, subtree: Subtree, tables: Tables, fractions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gains in log joint density when a subtree is attached, at several places on every branch and at every point.

    Exact given the other divergence times, from one upward and one downward sweep: the message at a place on a branch
    is the product of the messages from its two ends.

    Args:
        arrays: the tree without the subtree.
        messages: of that tree, from `sweep`.
        subtree: what is attached.
        tables: of the prior, for at least all leaves together.
        fractions: (F,) in (0, 1): of the time between the upper end of a branch and the earlier of its lower end and
            the subtree's root.

    Returns:
        (2N, F) density per unit of depth, log; (2N,) mass at branch points, log. Minus infinity where impossible.

    Source: knowles2015pitman.
    """
    ups, downs = (np.minimum(part, HUGE) for part in (messages.up_variance, messages.down_variance))
    parts = [np.require(part, np.float64, ["C", "W"]) for part in (messages.up_mean, ups, messages.down_mean, downs)]
    arrays, n = whole(arrays), len(arrays.parent) // 2
    variance = np.minimum(np.require(subtree.variance, np.float64, ["C", "W"]), HUGE)
    depth = float(subtree.depth)
    mean = np.require(subtree.mean, np.float64, ["C", "W"])
    piece = Piece(mean, variance, depth, math.exp(-depth), int(subtree.count))
    leaves = (Leaves(parts[0][:n].copy(), parts[1][:n].copy()), parts[0], parts[1])
    fractions = np.require(np.atleast_1d(fractions), np.float64, ["C", "W"])
    return _score_all(arrays, leaves, parts[2], parts[3], piece, prior_of(tables), fractions)
