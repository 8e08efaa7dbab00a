"""Moments: what a factor may know of an argument under variational message passing, one tuple per domain.

A family gives the moments of its distribution, an observed value gives those of a point, a deterministic expression
maps the moments of its arguments to its own. A message is the gradient of the factor's expected log density in them.
"""

from typing import NamedTuple

from .arrays import Array


class Real(NamedTuple):
    """E x and Var x."""

    mean: Array
    variance: Array


class Sparse(NamedTuple):
    """P(x is not zero), E x and Var x."""

    probability: Array
    mean: Array
    variance: Array


class Positive(NamedTuple):
    """E x and E log x."""

    mean: Array
    log: Array


class Unit(NamedTuple):
    """E log p and E log(1 - p)."""

    log: Array
    log_complement: Array


class Boolean(NamedTuple):
    """P(x is true)."""

    probability: Array


class Category(NamedTuple):
    """Class probabilities, last axis."""

    probability: Array


class Simplex(NamedTuple):
    """E log p, last axis."""

    log: Array


class Vector(NamedTuple):
    """E x and Cov x."""

    mean: Array
    covariance: Array


class PosDef(NamedTuple):
    """E X and E log det X."""

    mean: Array
    log_det: Array


class Count(NamedTuple):
    """E x and E log x!."""

    mean: Array
    log_factorial: Array


BY_KIND = {
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
}
