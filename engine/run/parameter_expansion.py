"""Parameter expansion for inner products: the rotation and scaling that the data cannot see.

w.x does not change when x -> R x and w -> R^-T w, and the bound as a function of R has a closed-form optimum. One such
step per sweep replaces the hundreds of sweeps that coordinate ascent needs to trade scale and direction between the
two. luttinen2010transformations gives the idea; the solution here is of our own.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...compiler.algebra.inner_products import sides
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.graph import Plan
from ...compiler.language.nodes import Constant, Random
from ...factors.arrays import Array
from ...factors.moments import Vector
from ...factors.roles import LinearGaussian, gaussian_arguments
from ..blocks.inner_product import shared_precision


class Pair(NamedTuple):
    """Two vector variables that meet only in one inner product, with isotropic zero-mean priors of these precisions."""

    left: str
    right: str
    left_precision: float
    right_precision: float


def pairs(graph: Plan) -> tuple[Pair, ...]:
    """All pairs that a rotation serves."""
    found = []
    for block in graph.blocks:
        vectors = [side.expr for side in sides(block) or () if isinstance(side.expr, Random) and side.over is None]
        if len(vectors) < 2 or not {v.name for v in vectors} <= shared_precision(graph):
            continue
        a, b = (vector.name for vector in vectors)
        left, right = _isotropic(graph, a), _isotropic(graph, b)
        meetings = [other for other in graph.blocks if {a, b} & set(other.latent) and not other.constant]
        if left is not None and right is not None and len(meetings) == 1:
            found.append(Pair(a, b, left, right))
    return tuple(found)


def _isotropic(graph: Plan, name: str) -> float | None:
    """The precision of a zero-mean isotropic Gaussian prior, else None."""
    priors = (b for b in graph.blocks if isinstance(b, EnergyBlock) and b.constant)
    prior = next((block for block in priors if block.out is graph.latent[name]), None)
    if prior is None or not isinstance(prior.factor.role, LinearGaussian):
        return None
    centre, precision = gaussian_arguments(prior)
    if not isinstance(precision, Constant) or not isinstance(centre, Constant):
        return None
    matrix, mean = precision.value, centre.value
    scale = float(matrix.flat[0]) if matrix.ndim == 2 else 0.0
    plain = matrix.ndim == 2 and np.array_equal(matrix, scale * np.eye(len(matrix))) and not mean.any()
    return scale if plain else None


def rotation(pair: Pair, left: Vector, right: Vector) -> Float[Array, "k k"]:
    """The best R for left -> R left, right -> R^-T right, given the moments of both, (..., k) and (..., k, k).

    With A, B the sums of second moments and a, b the prior precisions the optimum P = R'R solves a P A P - (m - n) P -
    b B = 0, m and n being the numbers of elements; in coordinates where A is the identity that is a scalar quadratic
    for every eigenvalue.
    """
    second_left, second_right = _total(left), _total(right)
    difference = left.mean.size / left.mean.shape[-1] - right.mean.size / right.mean.shape[-1]
    root, back = _root(pair.left_precision * second_left)
    values, vectors = jnp.linalg.eigh(root @ (pair.right_precision * second_right) @ root)
    values = jnp.maximum(values, 0.0)
    # The positive root, in the form that does not cancel for a negative difference.
    spread = jnp.sqrt(0.25 * difference**2 + values)
    best = jnp.where(difference >= 0, 0.5 * difference + spread, values / (spread - 0.5 * difference))
    product = back @ (vectors * best) @ vectors.T @ back
    return _root(product)[0]


def _total(vector: Vector) -> Float[Array, "k k"]:
    """The sum over elements of E x x'."""
    size = vector.mean.shape[-1]
    mean, covariance = vector.mean.reshape(-1, size), vector.covariance.reshape(-1, size, size)
    return mean.T @ mean + covariance.sum(0)


def _root(matrix: Float[Array, "k k"]) -> tuple[Float[Array, "k k"], Float[Array, "k k"]]:
    """The symmetric square root of a positive definite matrix and its inverse."""
    values, vectors = jnp.linalg.eigh(0.5 * (matrix + matrix.T))
    values = jnp.sqrt(jnp.maximum(values, 1e-300))
    return (vectors * values) @ vectors.T, (vectors / values) @ vectors.T


def rotated(naturals: tuple[Array, ...], matrix: Float[Array, "k k"]) -> tuple[Array, ...]:
    """The naturals of R x from those of x, for `matrix` = R^-T."""
    return naturals[0] @ matrix.T, matrix @ naturals[1] @ matrix.T
