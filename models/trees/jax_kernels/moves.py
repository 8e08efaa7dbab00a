"""Metropolis-Hastings moves of subtrees, proposed from the scores of all attachments.

A move detaches a random subtree S, which leaves the rest R, and attaches it elsewhere. The proposal depends on R and S
only, so that the move back has the same normaliser: docs/trees-mcmc.md has the acceptance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ....engine.support.machine_code import resident
from ....factors.errors import UnsupportedError
from ..prior import Tables
from ..shapes.arrays import FARTHEST, GAP, Arrays, Leaves
from .edit import Place, attach, detach
from .place import score_of
from .score import Scored, scored
from .search import subtrees

CELLS = 8  # of equal length in time on every branch: the proposal is uniform in each
MIDDLES = (np.arange(CELLS) + 0.5) / CELLS


class Cells(NamedTuple):
    """A piecewise uniform approximation of the conditional distribution of a subtree's place.

    Attributes:
        scored: at MIDDLES.
        start, span: (2N,) depth at which a branch starts, and the share of the time left there that it takes.
        per_time: (2N, CELLS) log density with respect to that share.
    """

    scored: Scored
    start: np.ndarray
    span: np.ndarray
    per_time: np.ndarray

    def draw(self, random: np.random.Generator, arrays: Arrays) -> Place:
        """A place: a cell has the mass of the density at its middle times its length, a branch point its own."""
        with np.errstate(divide="ignore"):
            cells = self.per_time + np.log(self.span)[:, None] - math.log(CELLS)
        masses = np.where(self.scored.branch > -np.inf, cells, -np.inf)
        masses = np.concatenate([masses, self.scored.point[:, None]], axis=1)
        chances = np.cumsum(np.exp(masses - masses.max()))
        chosen, uniform = np.searchsorted(chances, chances[-1] * random.random(), side="right"), random.random()
        node, cell = divmod(int(chosen), CELLS + 1)
        if cell == CELLS:
            return Place(node, float(arrays.depth[node]), True)
        return Place(node, float(self.start[node] - math.log1p(-(cell + uniform) / CELLS * self.span[node])), False)

    def excess(self, place: Place) -> float:
        """Log density of the place over that with which it is proposed, per unit of depth, up to a constant."""
        if place.joins:
            return 0.0
        node, start = place.node, float(self.start[place.node])
        fraction = -math.expm1(start - place.depth) / self.span[node]
        cell = min(max(int(fraction * CELLS), 0), CELLS - 1)
        # Uniform in time: its density per unit of depth falls as 1 - t does.
        return score_of(self.scored, place) - float(self.per_time[node, cell]) - start + place.depth


def subtree_moves(
    arrays: Arrays, leaves: Leaves, tables: Tables, seed: int, steps: int, share_scored: float
) -> tuple[Arrays, np.ndarray, np.ndarray]:
    """Moves of random subtrees: of `steps` a share `share_scored`, the others are left out.

    Others would be proposed from the prior. Here they cost a fifth to a tenth of a scored one and are accepted far more
    rarely: they are made by the numba kernels, where they cost next to nothing.

    Returns:
        the tree, and how many moves were accepted and proposed, (prior, scored) each.

    Raises:
        UnsupportedError: a share of zero, with which no tree would ever move.

    Source: neal2003density, knowles2012thesis.
    """
    if not share_scored > 0.0:
        raise UnsupportedError(
            f"The JAX kernels move subtrees by scores alone, and share_scored={share_scored!r} asks for none: the tree "
            "would stay as it is. Take a positive share, or backend='numba' (the extra cavity[numba])."
        )
    random, given = np.random.default_rng(seed), resident((leaves, tables))
    accepted, proposed = np.zeros(2, np.int64), np.zeros(2, np.int64)
    for _ in range(random.binomial(steps, share_scored)):
        movable = subtrees(arrays)
        if not len(movable):
            break
        root = movable[random.integers(len(movable))]
        rest, old = detach(arrays, root)
        cells = _cells(scored(rest, given[0], root, given[1], MIDDLES), rest, root)
        new = cells.draw(random, rest)
        # Of so many subtrees one was chosen; it is one of so many after the move.
        ratio = math.log(len(movable)) - math.log(len(movable) + old.joins - new.joins)
        accept = _possible(rest, root, new) and old.depth <= FARTHEST
        if accept:
            accept = math.log1p(-random.random()) < cells.excess(new) - cells.excess(old) + ratio
        arrays = attach(rest, root, new if accept else old)
        accepted[1] += accept
        proposed[1] += 1
    return arrays, accepted, proposed


def _cells(found: Scored, rest: Arrays, root: int) -> Cells:
    start = np.where(rest.parent >= 0, rest.depth[np.maximum(rest.parent, 0)], 0.0)
    span = -np.expm1(np.minimum(start - np.minimum(rest.depth, rest.depth[root]), 0.0))
    return Cells(found, start, span, found.branch - np.log1p(-MIDDLES * span[:, None]))


def _possible(rest: Arrays, root: int, place: Place) -> bool:
    """Whether depths differ enough above and below a place."""
    start, end = rest.depth[rest.parent[place.node]], rest.depth[place.node]
    inside = place.joins or start + GAP <= place.depth <= end - GAP
    return bool(inside and place.depth <= min(rest.depth[root] - GAP, FARTHEST))
