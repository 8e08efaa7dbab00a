"""Designs: where the density of a few continuous scalars is looked at, dearest first.

An adaptive grid is right to many digits, and needs thousands of inferences where there are three scalars. A coarse one
in coordinates that are bent after the skewness of the density needs hundreds. From four scalars on no grid is small;
there points spread evenly are reweighted, or, with fewest inferences, those of a central composite design.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Protocol, TypeAlias

import numpy as np
from jaxtyping import Float

from . import rules
from .grid import BEST, COARSE, GOOD, STEPS, Accuracy, Grid, explore
from .peak import LogDensity
from .weighted_points import weighted_points

Places: TypeAlias = Float[np.ndarray, "... d"]  # one or several

ON_GRID = max(STEPS[False])  # continuous scalars that a grid can hold
MOST = rules.MOST  # that any design can
SPREADS = (1024, 512, 256)  # points
WIDE = 4  # times as many as there are of each wider normal
NEGLIGIBLE = 1e-7


class Design(Protocol):
    """A way to look at a density of `d` dimensions; `title` is what it is called."""

    @property
    def title(self) -> str: ...

    @property
    def rank(self) -> int:
        """How coarse it is: lower is more accurate."""
        ...

    @property
    def negligible(self) -> float:
        """The probability of points that are left out of a mixture, together."""
        ...

    def inferences(self, d: int, direct: bool) -> int:
        """How many are expected, where one pass is exact (`direct`) and where they iterate: the search included."""
        ...

    def found(self, log_density: LogDensity, starts: Places, scales: Places, first: int | None = None) -> Grid | None:
        """What it finds from one of `starts` on its scale; None where it finds nothing. Arguments as of `explore`."""
        ...


@dataclasses.dataclass(frozen=True)
class OnGrid:
    """A grid, of up to three dimensions."""

    accuracy: Accuracy

    @property
    def title(self) -> str:
        return "a coarse grid" if self.accuracy.coarse else "a grid"

    @property
    def rank(self) -> int:
        return int(self.accuracy.coarse)

    @property
    def negligible(self) -> float:
        return self.accuracy.negligible

    def inferences(self, d: int, direct: bool) -> int:
        return _ON_GRID[self.accuracy.coarse or direct, self.accuracy.coarse][d]

    def found(self, log_density: LogDensity, starts: Places, scales: Places, first: int | None = None) -> Grid | None:
        return explore(log_density, starts, scales, self.accuracy, first)


# Where one pass is exact, far cells are looked at together; by design and number of dimensions, none included.
_ON_GRID = {
    (True, False): {0: 1, 1: 200, 2: 1500, 3: 10_000},
    (False, False): {0: 1, 1: 100, 2: 700, 3: 4500},
    (True, True): {0: 1, 1: 36, 2: 150, 3: 400},
}


@dataclasses.dataclass(frozen=True)
class Weighted:
    """So many points spread evenly, reweighted; those of a central composite design where `number` is zero."""

    number: int

    @property
    def title(self) -> str:
        return "a weighted design" if self.number else "a central composite design"

    @property
    def rank(self) -> int:
        return 1 if self.number else 2

    @property
    def negligible(self) -> float:
        return NEGLIGIBLE

    def inferences(self, d: int, direct: bool) -> int:
        search = 6 * (1 + d + d**2) + 4 * d + (256 if direct else 32)
        return search + (self.number + 2 * (self.number // WIDE) or len(rules.composite(d).points))

    def found(self, log_density: LogDensity, starts: Places, scales: Places, first: int | None = None) -> Grid | None:
        d = np.shape(starts)[-1]
        rule = rules.spread(d, self.number) if self.number else rules.composite(d)
        wide = rules.spread(d, self.number // WIDE) if self.number else None
        return weighted_points(log_density, starts, scales, rule, wide)


def affordable(d: int) -> Iterator[Design]:
    """The designs for `d` scalars of an integration that has to be affordable, dearest first."""
    if d <= ON_GRID:
        yield OnGrid(GOOD)
        yield OnGrid(COARSE)
    else:
        yield from (Weighted(number) for number in SPREADS if number > len(rules.composite(d).points))
    if d > 1:
        yield Weighted(0)


def finest(d: int) -> Design:
    """The design for `d` scalars at any price."""
    return OnGrid(BEST) if d <= ON_GRID else Weighted(4 * SPREADS[0])
