"""Which features of draws are the same, as chains give them no names: those that the same rows have."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from .chains import Draw

LEAST = 0.3  # of the rows that have one of two features, the share that has both, for these to be the same


@dataclasses.dataclass(frozen=True)
class Matched:
    """Features of one draw, and where they are in others.

    Attributes:
        values, deviation: (K, dimensions) means and standard deviations over the draws that have the feature.
        probability: (rows, K) that a row has it, over all draws.
        presence: (K,) share of the draws that have it.
        places: for each draw (K,) the number of its feature, or -1.
    """

    values: np.ndarray
    deviation: np.ndarray
    probability: np.ndarray
    presence: np.ndarray
    places: list[np.ndarray]


def match(reference: np.ndarray, active: np.ndarray) -> np.ndarray:
    """(K,) for each feature of the reference the one of another matrix that the same rows have, -1 where none does.

    Args:
        reference, active: (rows, features) booleans.

    Returns:
        Places in `active`, each at most once, with the largest sum of overlaps: rows that have both over rows that have
        one of the two, at least .3.
    """
    one, other = reference.astype(float), active.astype(float)
    both = one.T @ other
    overlap = both / np.maximum(one.sum(axis=0)[:, None] + other.sum(axis=0) - both, 1.0)
    places = np.full(reference.shape[1], -1)
    row, column = linear_sum_assignment(overlap, maximize=True)
    good = overlap[row, column] >= LEAST
    places[row[good]] = column[good]
    return places


def matched(draws: Sequence[Draw], reference: int) -> Matched:
    """The features of the draw of this number, in the order of how many rows have them, over all draws."""
    first = draws[reference].active
    first = first[:, np.argsort(-first.sum(axis=0), kind="stable")]
    places = [match(first, draw.active) for draw in draws]
    rows, count, dimensions = *first.shape, draws[0].values.shape[1]
    total, square = np.zeros((count, dimensions)), np.zeros((count, dimensions))
    probability, number = np.zeros((rows, count)), np.zeros(count)
    for draw, at in zip(draws, places, strict=True):
        there = at >= 0
        total[there] += draw.values[at[there]]
        square[there] += draw.values[at[there]] ** 2
        probability[:, there] += draw.active[:, at[there]]
        number += there
    mean = total / np.maximum(number, 1.0)[:, None]
    deviation = np.sqrt(np.maximum(square / np.maximum(number, 1.0)[:, None] - mean**2, 0.0))
    return Matched(mean, deviation, probability / len(draws), number / len(draws), places)
