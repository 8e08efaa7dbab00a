"""Moments: what a factor may know of an argument under variational message passing, one tuple per domain.

A family gives the moments of its distribution, an observed value gives those of a point, a deterministic expression
maps the moments of its arguments to its own. A message is the gradient of the factor's expected log density in them.
"""

from typing import NamedTuple, TypeAlias

from jaxtyping import Float

from .arrays import Array


class Real(NamedTuple):
    """E x and Var x."""

    mean: Float[Array, "*plates"]
    variance: Float[Array, "*plates"]


class Sparse(NamedTuple):
    """P(x is not zero), E x and Var x."""

    probability: Float[Array, "*plates"]
    mean: Float[Array, "*plates"]
    variance: Float[Array, "*plates"]


class Positive(NamedTuple):
    """E x and E log x."""

    mean: Float[Array, "*plates"]
    log: Float[Array, "*plates"]


class Unit(NamedTuple):
    """E log p and E log(1 - p)."""

    log: Float[Array, "*plates"]
    log_complement: Float[Array, "*plates"]


class Boolean(NamedTuple):
    """P(x is true)."""

    probability: Float[Array, "*plates"]


class Category(NamedTuple):
    """Class probabilities, last axis."""

    probability: Float[Array, "*plates class"]


class Simplex(NamedTuple):
    """E log p, last axis."""

    log: Float[Array, "*plates class"]


class Vector(NamedTuple):
    """E x and Cov x."""

    mean: Float[Array, "*plates dim"]
    covariance: Float[Array, "*plates dim dim"]


class PosDef(NamedTuple):
    """E X and E log det X."""

    mean: Float[Array, "*plates dim dim"]
    log_det: Float[Array, "*plates"]


class Count(NamedTuple):
    """E x and E log x!."""

    mean: Float[Array, "*plates"]
    log_factorial: Float[Array, "*plates"]


class RealWithPrecision(NamedTuple):
    """E t x, E t x^2, E t and E log t of a number x and a positive one t that its precision is a multiple of."""

    shift: Float[Array, "*plates"]
    square: Float[Array, "*plates"]
    precision: Float[Array, "*plates"]
    log: Float[Array, "*plates"]


class VectorWithPrecision(NamedTuple):
    """E P x, E x' P x, E P and E log det P of a vector x and a matrix P that its precision is a multiple of."""

    shift: Float[Array, "*plates dim"]
    square: Float[Array, "*plates"]
    precision: Float[Array, "*plates dim dim"]
    log_det: Float[Array, "*plates"]


POINT_VARIANCE = 1e-200  # in place of none: its inverse, and that times a mean, are still finite
Moments: TypeAlias = (
    Real
    | Sparse
    | Positive
    | Unit
    | Boolean
    | Category
    | Simplex
    | Vector
    | PosDef
    | Count
    | RealWithPrecision
    | VectorWithPrecision
)
BY_KIND: dict[str, type[Moments]] = {
    "real": Real,
    "sparse": Sparse,
    "positive": Positive,
    "unit": Unit,
    "boolean": Boolean,
    "category": Category,
    "simplex": Simplex,
    "vector": Vector,
    "posdef": PosDef,
    "count": Count,
    "normal_gamma": RealWithPrecision,
    "normal_wishart": VectorWithPrecision,
}
