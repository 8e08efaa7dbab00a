"""Nodes for the expectation of a smooth function of a standard normal vector: a grid, or a lattice with fitted weights.

In two and three dimensions a grid is best: its error falls exponentially with its spacing. In more its nodes are too
many, and a lattice of low discrepancy is taken, each node with its opposite. Its weights are the nearest to equal ones
that average all polynomials up to fifth degree without error: what a function bends by in one direction is then not
hidden by what it does in the others. None is negative, so that averages of probabilities are probabilities.
"""

from __future__ import annotations

import functools
import itertools
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

VectorNodes: TypeAlias = tuple[Float[np.ndarray, "node dimension"], Float[np.ndarray, " node"]]  # and weights
SPACING, RADIUS = {1: 0.5, 2: 0.5, 3: 0.8}, 5.3  # of the grid; nodes beyond the radius weigh 1e-6 of the middle one
MOST = 9  # dimensions


@functools.cache
def nodes_of(dimensions: int) -> VectorNodes:
    """Places (node, dimension) and weights, which sum to one, of the rule in 1 to 9 dimensions."""
    return _grid(dimensions) if dimensions in SPACING else _lattice(dimensions, 2048 if dimensions < 7 else 4096)


def _grid(dimensions: int) -> VectorNodes:
    spacing = SPACING[dimensions]
    half = spacing * (0.5 + np.arange(np.ceil(RADIUS / spacing)))
    line = np.concatenate([-half[::-1], half])
    z = np.stack(np.meshgrid(*[line] * dimensions), axis=-1).reshape((-1, dimensions))
    z = z[np.sum(z**2, axis=1) < RADIUS**2]
    weights = np.exp(-0.5 * np.sum(z**2, axis=1))
    weights /= weights.sum()
    return z / np.sqrt(weights @ z[:, 0] ** 2), weights  # of unit variance without what lies beyond the radius


def _lattice(dimensions: int, number: int) -> VectorNodes:
    """Multiples of powers of the root of x^(d + 1) = x + 1, the golden ratio of d dimensions, as Gaussian numbers."""
    from scipy.special import ndtri  # not needed by most programs

    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    z = ndtri((0.5 + np.arange(1, number // 2 + 1)[:, None] * steps) % 1.0)
    weights = _fitted(_even_terms(z))
    z, weights = z[weights > 0.0], weights[weights > 0.0]
    return np.concatenate([z, -z]), 0.5 * np.concatenate([weights, weights])


def _fitted(terms: Float[np.ndarray, "term node"]) -> Float[np.ndarray, " node"]:
    """The weights nearest to equal ones, none negative, under which the first term has mean one and the others none.

    They are max(1 / nodes + y terms, 0), and Newton's method finds y in a few steps.
    """
    means, equal, y = np.eye(len(terms))[0], 1.0 / terms.shape[1], np.zeros(len(terms))
    weights = np.full(terms.shape[1], equal)
    for _ in range(50):
        missing = means - terms @ weights
        if np.max(np.abs(missing)) < 1e-14:
            break
        used = terms[:, weights > 0.0]
        y += np.linalg.solve(used @ used.T, missing)
        weights = np.maximum(equal + y @ terms, 0.0)
    return weights


def _even_terms(z: Float[np.ndarray, "node dimension"]) -> Float[np.ndarray, "term node"]:
    """Hermite's polynomials of degrees 0, 2 and 4, of mean zero under the standard normal but for the first, and of
    unit variance."""
    powers = [np.ones_like(z), z, (z**2 - 1.0) / np.sqrt(2.0), (z**3 - 3.0 * z) / np.sqrt(6.0)]
    powers.append((z**4 - 6.0 * z**2 + 3.0) / np.sqrt(24.0))
    found = []
    for degree in (0, 2, 4):
        for chosen in itertools.combinations_with_replacement(range(z.shape[1]), degree):
            exponents = [(axis, chosen.count(axis)) for axis in set(chosen)]
            found.append(np.prod([powers[n][:, axis] for axis, n in exponents], axis=0) * np.ones(len(z)))
    return np.array(found)
