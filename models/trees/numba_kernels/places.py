"""Where a subtree can be attached, and what every place is worth: the one primitive of building, search and moves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..prior import Tables
from ..shapes.arrays import Arrays, Leaves, Messages, Subtree
from .jit import HUGE, LOG_2PI, called, flat_or, inner, kernel, log
from .messages import cavity
from .prior import SMALLEST, cumulative, intensity, prior_of
from .state import load, whole

REFINED = 4  # branches on which the best time is sought, after a first look at all
LANES = 8  # places on one branch that are scored together, as one vector
Y, OUT = 2 * LANES, 4 * LANES  # where the parts of `Places.lanes` start
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
        lanes: (48,) times from the upper and the lower ends of a branch, and scores, 16 each.
        best: (4, 3) score, row and lane of the best branches so far.
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
    best: Any


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
        np.zeros(6 * LANES),
        np.zeros((REFINED, 3)),
    )


@inner
def piece_of(s: Any, v: Any) -> Any:
    """The subtree below v as a piece."""
    return Piece(s.mean[v], s.variance[v], s.depth[v], s.rest[v], s.count[v])


@called
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
            describe(s, prior, piece, places, u, v, row, n)
            n += 1
            if s.child[v] >= 0 and s.depth[v] < piece.depth:
                places.stack[waiting], places.row[waiting] = v, row
                waiting += 1
                free += 1
            v = s.next[v]
    return n


@inner
def describe(s: Any, prior: Any, piece: Any, places: Any, u: Any, v: Any, row: Any, i: Any) -> Any:
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


@inner
def evidence_at(s: Any, piece: Any, places: Any, i: Any, x: Any, y: Any) -> Any:
    """Log density of the subtree's message at times x and y from the two ends of branch i."""
    b, columns = places.branch[i], s.mean.shape[1]
    if s.variance.shape[1] == 1:
        below, to_root = b[BELOW] + b[TO_NODE], b[TO_ROOT] + piece.variance[0]
        return _evidence(b[ABOVE], below, to_root, b[SUB_BELOW], b[SUB_ABOVE], b[APART], columns, x, y)
    v, total = places.node[i], 0.0
    for d in range(columns):
        above, below, to_root = places.variance[v, d], s.variance[v, d] + b[TO_NODE], b[TO_ROOT] + piece.variance[d]
        total += _column(above, below, to_root, places.mean[v, d], s.mean[v, d], piece.mean[d], x, y)
    return -0.5 * total


@inner
def _column(above: Any, below: Any, to_root: Any, high: Any, low: Any, root: Any, x: Any, y: Any) -> Any:
    """-2 times one column's part of the evidence, where columns have their own variances."""
    p, q = above + x, below + y
    share = p / (p + q)
    spread = share * q + to_root + y
    return flat_or(spread, log(spread) + LOG_2PI + (root - high - share * (low - high)) ** 2 / spread)


@inner
def _evidence(
    above: Any, below: Any, to_root: Any, one: Any, two: Any, three: Any, columns: Any, x: Any, y: Any
) -> Any:
    """The evidence where all columns share their variances: three squared distances say all of the means.

    `below` includes the time to the node, `to_root` the variance of the subtree's message.
    """
    p, q = above + x, below + y
    inverse = 1.0 / (p + q)
    share = p * inverse
    spread = share * q + to_root + y
    square = share * one + (1.0 - share) * two - share * (1.0 - share) * three
    return flat_or(spread, -0.5 * (columns * (log(spread) + LOG_2PI) + square / spread))


@inner
def prior_at(prior: Any, constant: Any, slope: Any, rest: Any) -> Any:
    """Log prior of diverging on a branch where 1 - time is `rest`."""
    rest = max(rest, SMALLEST)
    passed = prior.constant * (1.0 - rest) + prior.square * (1.0 / rest - 1.0) - prior.rate * log(rest)
    return constant + slope * passed + log(intensity(prior, rest))


@inner
def score_lanes(s: Any, prior: Any, piece: Any, places: Any, i: Any, start: Any) -> Any:
    """Scores of branch i at the times in lanes start .. start + 7.

    What the loops read is taken out of the arrays first: the compiler must not fear that the scores overwrite it.
    """
    b, lanes = places.branch[i], places.lanes
    lower, slope, constant = b[LOWER], b[SLOPE], b[CONSTANT]
    columns, many = s.mean.shape[1], len(lanes) // 6  # LANES; as a constant it has the loops unrolled, not vectorised
    if prior.constant == 0.0 and prior.square == 0.0:
        constant += math.log(prior.rate)
        slope *= -prior.rate
        for j in range(many):
            lanes[OUT + start + j] = constant + slope * log(lower + lanes[Y + start + j])
    else:
        for j in range(many):
            lanes[OUT + start + j] = prior_at(prior, constant, slope, lower + lanes[Y + start + j])
    if s.variance.shape[1] == 1:
        above, below, to_root = b[ABOVE], b[BELOW] + b[TO_NODE], b[TO_ROOT] + piece.variance[0]
        one, two, three = b[SUB_BELOW], b[SUB_ABOVE], b[APART]
        for j in range(many):
            lanes[OUT + start + j] += _evidence(
                above, below, to_root, one, two, three, columns, lanes[start + j], lanes[Y + start + j]
            )
        return
    v = places.node[i]
    for d in range(columns):
        above, below, to_root = places.variance[v, d], s.variance[v, d] + b[TO_NODE], b[TO_ROOT] + piece.variance[d]
        high, low, root = places.mean[v, d], s.mean[v, d], piece.mean[d]
        for j in range(many):
            lanes[OUT + start + j] -= 0.5 * _column(
                above, below, to_root, high, low, root, lanes[start + j], lanes[Y + start + j]
            )


@called
def score_one(s: Any, prior: Any, piece: Any, places: Any, i: Any, depth: Any) -> Any:
    """Score of branch i at a depth."""
    b, rest = places.branch[i], math.exp(-depth)
    return prior_at(prior, b[CONSTANT], b[SLOPE], rest) + evidence_at(
        s, piece, places, i, b[UPPER] - rest, rest - b[LOWER]
    )


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
                places.lanes[j], places.lanes[Y + j] = f * span, (1.0 - f) * span
            score_lanes(s, prior, piece, places, i, 0)
            for j in range(many):
                branch[v, k + j] = places.lanes[OUT + j]
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
