"""What a climb of a log density came to: a maximum, one at an edge, a ridge, or a way that rises without end.

At a maximum inside of the space Newton's steps shrink faster and faster. Towards an edge or infinity, where the density
has a limit, each step is as long as the last one; and where the density has no bound the slope stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiler.language.nodes import Random
from ...factors.factor import Term
from ...factors.switches import double_precision
from ..density.log_density import LogDensity
from .mode import ARRIVED, End, Hessian, Slope, Vector

NEARLY = 1e-4  # nats that another step may gain at a maximum, where rounding lets it gain none
SLOWER = 0.1  # of what Newton's step gained the next one gains less, where there is a maximum
ROUNDED = 1e-14  # nats, times the height: a gain below is rounding
STEEP = 1e-3  # nats for a step of one: a slope that stays
SHARE = 0.1  # of the longest step or the largest slope: the coordinates that it is about
WIDE, OUT = 1e3, 12.0  # standard deviations, and distances from the middle, that coordinates with an edge have there
ON = 100.0  # steps further on

INSIDE, EDGE, FLAT, UNREACHED, FAR, UNBOUNDED = "inside", "edge", "level", "unreached", "far", "unbounded"


class Judged(NamedTuple):
    """A climb's end: the place and its height, what it is, and the variables that make it other than a maximum."""

    place: Vector
    height: float
    kind: str
    names: tuple[str, ...] = ()

    @property
    def endless(self) -> bool:
        """Whether the density rises without end from there, to a limit or beyond any."""
        return self.kind in (FAR, UNBOUNDED)


def judged(density: LogDensity, slope: Slope, hessian: Hessian, end: End) -> Judged:
    """What the end of a climb is; a density that is infinite there has no bound."""
    if end.height == np.inf:
        edges = _has_edges(density)
        out = edges & (np.abs(end.place) > OUT)
        return Judged(end.place, end.height, UNBOUNDED, _named(density, 1.0 * (out if out.any() else edges)))
    if end.proper and end.gain < NEARLY:
        return _arrived(density, slope, hessian, end)
    steep = np.abs(end.slope)
    out = _has_edges(density) & (np.abs(end.place) > OUT) & (steep > STEEP)
    if out.any() and _rises(slope, end, np.where(out, np.sign(end.slope), 0.0)):
        return Judged(end.place, end.height, UNBOUNDED, _named(density, 1.0 * out))
    if steep.max() > STEEP:
        ways = np.where(steep > SHARE * steep.max(), np.sign(end.slope), 0.0)
        rising = _rises(slope, end, ways)
        return Judged(end.place, end.height, UNBOUNDED if rising else UNREACHED, _named(density, ways))
    return _flat(density, hessian, end)


def _arrived(density: LogDensity, slope: Slope, hessian: Hessian, end: End) -> Judged:
    """An end where Newton's method gains little: a maximum, or the way to an edge or to infinity."""
    step = end.covariance @ end.slope
    height, gradient = (np.asarray(part) for part in slope(end.place + step))
    last = end if height < end.height else end._replace(place=end.place + step, height=float(height), slope=gradient)
    gain = float(gradient @ end.covariance @ gradient)
    edges = np.sqrt(np.diagonal(end.covariance)) * _has_edges(density) > WIDE
    shrinks = gain <= SLOWER * end.gain or gain <= ROUNDED * max(1.0, abs(end.height))
    if not edges.any() and (shrinks or end.gain > ARRIVED):
        return Judged(last.place, last.height, INSIDE)
    ways = step / max(np.abs(step).max(), 1e-300)
    ways = np.where((np.abs(ways) > SHARE) | edges, ways, 0.0)
    return Judged(last.place, last.height, FAR if _grows(density, end, ways) else EDGE, _named(density, ways))


def _flat(density: LogDensity, hessian: Hessian, end: End) -> Judged:
    """An end without a slope where minus the Hessian is singular, or a saddle that was not left."""
    found = hessian(end.place)
    if not np.isfinite(found).all():
        return Judged(end.place, end.height, UNREACHED, density.names)
    values, vectors = np.linalg.eigh(0.5 * (found + found.T))
    level = 1e-10 * max(np.abs(values).max(), 1e-300)
    kind = UNREACHED if values[-1] > level else FLAT
    ways = np.abs(vectors[:, values > -level]).max(axis=1, initial=0.0)
    ways = np.where(ways > SHARE, ways, 0.0)
    if kind == FLAT and np.all(ways == 0.0) | np.all((ways == 0.0) | (_has_edges(density) & (np.abs(end.place) > OUT))):
        kind = EDGE
    return Judged(end.place, end.height, kind, _named(density, ways))


def _rises(slope: Slope, end: End, ways: Vector) -> bool:
    """Whether one step and two further on are each about as much higher as the slope says."""
    rise = float(end.slope @ ways)
    first, second = (float(slope(end.place + size * ways)[0]) - end.height for size in (1.0, 2.0))
    return first > 0.5 * rise and second > rise


def _grows(density: LogDensity, end: End, ways: Vector) -> bool:
    """Whether the values grow without end that way, rather than come to an edge."""
    with double_precision():
        here, there = density.constrain(end.place), density.constrain(end.place + ON * ways)
    moved = [name for name in density.names if np.any(ways[density.slices[name]])]
    return any(np.max(np.abs(there[name])) > 2.0 * np.max(np.abs(here[name])) + ROUNDED for name in moved)


def _has_edges(density: LogDensity) -> np.ndarray:
    """(coordinates,) whether each is of a variable that does not take all numbers."""
    found = np.zeros(density.dimension, bool)
    for name, part in density.slices.items():
        found[part] = has_edge(density.model.randoms[name])
    return found


def has_edge(node: Random) -> bool:
    """Whether a variable does not take all numbers."""
    bounded = isinstance(node.term, Term) and node.term.factor.support is not None
    return bounded or node.domain.kind not in ("real", "vector")


def _named(density: LogDensity, ways: Vector) -> tuple[str, ...]:
    return tuple(name for name, part in density.slices.items() if np.any(ways[part]))
