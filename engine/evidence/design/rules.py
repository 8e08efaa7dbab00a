"""Rules for expectations under a standard normal of several dimensions: points and weights.

Both have mean 0 and covariance 1 exactly, so that a normal density is integrated exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# Columns of a Hadamard matrix of which no product of up to four is constant: the corners of a cube among which every
# pair of coordinates has all four signs equally often, whatever another pair has (box1957multifactor).
_COLUMNS = (1, 2, 4, 8, 15, 16, 32, 51, 64, 85, 106, 128)
MOST = len(_COLUMNS)  # dimensions


class Rule(NamedTuple):
    """Points (K, d) and their positive weights (K,), which sum to one."""

    points: Float[np.ndarray, "K d"]
    weights: Float[np.ndarray, " K"]


def composite(d: int) -> Rule:
    """A central composite design: some corners of a cube, both ends of every axis, and the centre.

    All but the centre lie at the distance sqrt(d + 2), where moments up to the fifth are those of the normal. Source:
    box1957multifactor, rue2009inla.
    """
    signs = _corners(d)
    points = np.concatenate([np.zeros((1, d)), np.sqrt(1.0 + 2.0 / d) * signs, np.sqrt(d + 2.0) * _ends(d)])
    corner, end = d**2 / len(signs), 1.0
    weights = np.concatenate([[2.0 * (d + 2)], np.full(len(signs), corner), np.full(2 * d, end)])
    return Rule(points, weights / (d + 2.0) ** 2)


def spread(d: int, number: int) -> Rule:
    """So many points (an even number), spread evenly: a Sobol sequence through the quantiles of the normal.

    Every point comes with its mirror image, and all are whitened.
    """
    import scipy.stats  # here: it takes long to import, and few answers need it

    cube = scipy.stats.qmc.Sobol(d, scramble=True, rng=np.random.default_rng(0)).random(number // 2)
    half = scipy.stats.norm.ppf(np.clip(cube, 1e-9, 1.0 - 1e-9))
    both = np.concatenate([half, -half])
    root = np.linalg.cholesky(both.T @ both / len(both))
    return Rule(np.linalg.solve(root, both.T).T, np.full(len(both), 1.0 / len(both)))


def _ends(d: int) -> Float[np.ndarray, "2*d d"]:
    return np.concatenate([np.eye(d), -np.eye(d)])


def _corners(d: int) -> Float[np.ndarray, "K d"]:
    columns = np.array(_COLUMNS[:d])
    rows = np.arange(2 ** int(columns.max()).bit_length())
    return 1.0 - 2.0 * (np.bitwise_count(rows[:, None] & columns) % 2)
