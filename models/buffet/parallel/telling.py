"""What shards tell of their rows: sums whose features have names, since places differ from shard to shard.

A feature's name is a number that no other feature ever has: the n-th that shard p of P makes is `n P + p`. Sums of
several shards are added name by name, so that no two features are taken for one, whenever who heard of which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..likelihoods.linear_gaussian import Sums


class Told(NamedTuple):
    """Sums over rows of some shards.

    Attributes:
        names: (features,) of features that some of these rows have, increasing.
        gram: (features, features), how many rows have both of two.
        cross: (features, dimensions), sums of the entries of the rows that have a feature.
        square: the sum of the squares of all entries.
    """

    names: np.ndarray
    gram: np.ndarray
    cross: np.ndarray
    square: float

    @property
    def size(self) -> int:
        """How many numbers travel."""
        return self.names.size + self.gram.size + self.cross.size + 1


def nothing(dimensions: int) -> Told:
    """Of no rows."""
    return Told(np.zeros(0, int), np.zeros((0, 0)), np.zeros((0, dimensions)), 0.0)


def together(every: Sequence[Told], dimensions: int) -> Told:
    """All sums added, name by name; of `dimensions` columns, should there be none."""
    names = np.unique(np.concatenate([np.zeros(0, int), *(each.names for each in every)]))
    gram, cross = np.zeros((len(names), len(names))), np.zeros((len(names), dimensions))
    for each in every:
        at = np.searchsorted(names, each.names)
        gram[np.ix_(at, at)] += each.gram
        cross[at] += each.cross
    return Told(names, gram, cross, float(sum(each.square for each in every)))


def told_of(names: np.ndarray, sums: Sums, square: float) -> Told:
    """Of places with these names, those that no row has left out."""
    used = np.flatnonzero(np.diagonal(sums.gram)[: len(names)] > 0)
    used = used[np.argsort(names[used])]
    return Told(names[used], np.asarray(sums.gram)[np.ix_(used, used)], np.asarray(sums.cross)[used], float(square))


def in_places(told: Told, names: np.ndarray, places: int) -> Sums:
    """The sums in places of which the first have these names; all that was told of must be among them."""
    order = np.argsort(names)
    at = order[np.searchsorted(names[order], told.names)] if told.names.size else np.zeros(0, int)
    gram, cross = np.zeros((places, places)), np.zeros((places, told.cross.shape[1]))
    gram[np.ix_(at, at)] = told.gram
    cross[at] = told.cross
    return Sums(gram, cross)
