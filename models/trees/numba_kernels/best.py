"""The best place for a subtree: by density where trees are binary, by mass where branch points can take more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..shapes.arrays import GAP
from .jit import called, inner
from .places import END, LANES, LOWER, OUT, REFINED, SPAN, TOP, UPPER, Y, score_lanes

# Where a branch is tried first, as parts of the time to the earlier of its end and the subtree's root.
FRACTIONS = np.array([0.03, 0.12, 0.27, 0.45, 0.63, 0.79, 0.91, 0.995])
ROUNDS = 4  # each narrows the bracket of that time to 2/9 of its width in depth
CELLS = 2 * LANES  # parts of a branch whose masses are summed
LAST = 1e-200  # 1 - time of the deepest branch points: equal leaves known exactly would part later and later
REACH = 5.0  # depth after which the last cell of an endless branch starts


@inner
def usable(b: Any) -> Any:
    """Whether a branch has room for a branch point that keeps its distance from both ends."""
    return b[END] - b[TOP] > 4.0 * GAP and b[UPPER] > 1e10 * LAST


@inner
def highest(lanes: Any) -> Any:
    """The largest of eight scores, without branches."""
    value = lanes[OUT]
    for j in range(1, LANES):
        value = lanes[OUT + j] if lanes[OUT + j] > value else value
    return value


@called
def best_by_density(s: Any, prior: Any, piece: Any, places: Any, n: Any) -> Any:
    """The branch, depth and score of the highest density: eight times on each branch, then the best few refined."""
    lanes, best = places.lanes, places.best
    for k in range(REFINED):
        best[k, 0] = -np.inf
    for i in range(n):
        b = places.branch[i]
        if not usable(b):
            continue
        span = b[SPAN]
        for j in range(len(lanes) // 6):
            lanes[j], lanes[Y + j] = FRACTIONS[j] * span, (1.0 - FRACTIONS[j]) * span
        score_lanes(s, prior, piece, places, i, 0)
        value = highest(lanes)
        if value > best[REFINED - 1, 0]:
            at = 0
            while lanes[OUT + at] < value:
                at += 1
            k = REFINED - 1
            while k > 0 and lanes[OUT + at] > best[k - 1, 0]:
                best[k, 0], best[k, 1], best[k, 2] = best[k - 1, 0], best[k - 1, 1], best[k - 1, 2]
                k -= 1
            best[k, 0], best[k, 1], best[k, 2] = lanes[OUT + at], i, at
    where, depth, top = -1, 0.0, -np.inf
    for k in range(REFINED):
        if best[k, 0] > -np.inf:
            found, value = refine(s, prior, piece, places, int(best[k, 1]), FRACTIONS[int(best[k, 2])])
            if value > top:
                where, depth, top = int(best[k, 1]), found, value
    return where, depth, top


@called
def refine(s: Any, prior: Any, piece: Any, places: Any, i: Any, fraction: Any) -> Any:
    """The best depth on branch i near a time, and its score: eight even depths in a bracket, again and again."""
    b, lanes = places.branch[i], places.lanes
    first, last = 0, LANES - 1
    for j in range(LANES):
        if FRACTIONS[j] < fraction:
            first = j
        if FRACTIONS[LANES - 1 - j] > fraction:
            last = LANES - 1 - j
    endless = b[LOWER] <= 0.0
    # The bracket, in times left: 1 - time at its upper and lower ends.
    upper = b[UPPER] * (1.0 - GAP) if fraction <= FRACTIONS[0] else b[LOWER] + (1.0 - FRACTIONS[first]) * b[SPAN]
    nearest = max(b[LOWER] * (1.0 + GAP), LAST)
    lower = b[LOWER] + (1.0 - FRACTIONS[last]) * b[SPAN]
    if fraction >= FRACTIONS[LANES - 1]:
        lower = 1e-3 * (1.0 - fraction) * b[SPAN] if endless else nearest
    lower, upper = max(lower, nearest), min(upper, b[UPPER] * (1.0 - GAP))
    rest, value = upper, -np.inf
    for _ in range(ROUNDS):
        ratio = math.exp(math.log(lower / upper) / (LANES + 1))
        place = upper
        for j in range(LANES):
            place *= ratio
            lanes[j], lanes[Y + j] = b[UPPER] - place, place - b[LOWER]
        score_lanes(s, prior, piece, places, i, 0)
        at, here = 0, highest(lanes)
        while lanes[OUT + at] < here:
            at += 1
        chosen = b[LOWER] + lanes[Y + at]
        if here > value:
            rest, value = chosen, here
        upper = min(chosen / ratio, b[UPPER] * (1.0 - GAP))
        lower = max(
            chosen * ratio * (1e-3 if endless and at == LANES - 1 and chosen * ratio <= lower else 1.0), nearest
        )
    return -math.log(rest), value


@called
def cells(s: Any, prior: Any, piece: Any, places: Any, i: Any, log_mass: Any) -> Any:
    """Log masses of the cells of branch i, by their middles; -inf where there is no room.

    Cells are equally wide in depth. Where the branch has no end, the last one starts REACH below the upper end and has
    a density proportional to 1 - time, of which the mass is twice that density in the middle.
    """
    b, lanes = places.branch[i], places.lanes
    if not usable(b):
        log_mass[:] = -np.inf
        return
    endless = b[LOWER] <= 0.0
    width = REACH / (CELLS - 1) if endless else (b[END] - b[TOP]) / CELLS
    half = math.exp(-0.5 * width)
    place = b[UPPER] * half
    for j in range(CELLS):
        if endless and j == CELLS - 1:
            place *= 0.5 / half
        lanes[j], lanes[Y + j] = b[UPPER] - place, place - b[LOWER]
        place *= half * half
    for start in range(0, CELLS, LANES):
        score_lanes(s, prior, piece, places, i, start)
    each = math.log(width)
    for j in range(CELLS):
        log_mass[j] = lanes[OUT + j] + each
    if endless:
        log_mass[CELLS - 1] += math.log(2.0) - each


@inner
def cell_of(b: Any, depth: Any) -> Any:
    """The cell that holds a depth, and the log density, in depth, of the draws from it."""
    if b[LOWER] <= 0.0:
        j = int((depth - b[TOP]) * (CELLS - 1) / REACH)
        if j >= CELLS - 1:
            return CELLS - 1, b[TOP] + REACH - depth
        return j, -math.log(REACH / (CELLS - 1))
    j = int((depth - b[TOP]) / (b[END] - b[TOP]) * CELLS)
    return max(0, min(CELLS - 1, j)), -math.log((b[END] - b[TOP]) / CELLS)


@inner
def draw_in_cell(b: Any, j: Any, u: Any) -> Any:
    """The depth in cell j that a uniform number makes."""
    if b[LOWER] <= 0.0:
        if j == CELLS - 1:
            return b[TOP] + REACH - math.log(u)
        return b[TOP] + (j + u) * REACH / (CELLS - 1)
    return b[TOP] + (j + u) * (b[END] - b[TOP]) / CELLS


@called
def masses(s: Any, prior: Any, piece: Any, places: Any, n: Any, log_mass: Any) -> Any:
    """Fill (n, CELLS + 1) log masses of cells and branch points; returns the largest."""
    largest = -np.inf
    for i in range(n):
        cells(s, prior, piece, places, i, log_mass[i, :CELLS])
        log_mass[i, CELLS] = places.point[i]
        for j in range(CELLS + 1):
            largest = max(largest, log_mass[i, j])
    return largest


@called
def best_by_mass(s: Any, prior: Any, piece: Any, places: Any, n: Any, log_mass: Any) -> Any:
    """The place of the largest mass over depth: branch, whether its branch point, and the best depth and its score.

    Densities of trees with different numbers of branch points are not comparable; masses are.
    """
    largest = masses(s, prior, piece, places, n, log_mass)
    where, joins, most, lane = -1, False, 0.0, 0
    for i in range(n):
        total, top = 0.0, 0
        for j in range(CELLS):
            if log_mass[i, j] > largest - 40.0:
                total += math.exp(log_mass[i, j] - largest)
            if log_mass[i, j] > log_mass[i, top]:
                top = j
        if total > most:
            where, joins, most, lane = i, False, total, top
        if log_mass[i, CELLS] > largest - 40.0 and math.exp(log_mass[i, CELLS] - largest) > most:
            where, joins, most = i, True, math.exp(log_mass[i, CELLS] - largest)
    if where < 0:
        return where, joins, 0.0, -np.inf
    if joins:
        return where, joins, 0.0, places.point[where]
    b = places.branch[where]
    rest = math.exp(-draw_in_cell(b, lane, 0.5))
    depth, value = refine(s, prior, piece, places, where, (b[UPPER] - rest) / b[SPAN])
    return where, joins, depth, value
