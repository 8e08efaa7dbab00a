"""The prior of a tree, as kernels read it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..prior import Tables
from .jit import called, inner, log

SMALLEST = 1e-300  # 1 - time of depths beyond which it would be zero: terms with a factor zero stay zero


class Prior(NamedTuple):
    """`Tables` with their numbers apart: coefficients of the divergence function, tables, log Gamma(1 - discount)."""

    constant: Any
    rate: Any
    square: Any
    harmonic: Any
    follow: Any
    total: Any
    new: Any
    unit: Any


def prior_of(tables: Tables) -> Prior:
    """Tables as the kernels are compiled for them."""
    constant, rate, square = (float(value) for value in np.asarray(tables.coefficients))
    arrays = (tables.harmonic, tables.log_follow, tables.log_total, tables.log_new)
    harmonic, follow, total, new = (np.require(part, np.float64, ["C", "W"]) for part in arrays)
    return Prior(constant, rate, square, harmonic, follow, total, new, float(tables.log_unit))


@inner
def cumulative(prior: Any, depth: Any, rest: Any) -> Any:
    """Integral of the divergence function up to a finite depth; `rest` is exp(-depth)."""
    return prior.rate * depth + prior.constant * (1.0 - rest) + prior.square * (1.0 / max(rest, SMALLEST) - 1.0)


@inner
def intensity(prior: Any, rest: Any) -> Any:
    """The divergence function per unit of depth."""
    return prior.rate + prior.constant * rest + prior.square / max(rest, SMALLEST)


@called
def log_prior(s: Any, prior: Any) -> Any:
    """Log density of structure and divergence times with respect to depths."""
    total, leaves = 0.0, len(s.parent) // 2
    for v in range(leaves, len(s.parent) - 1):
        if s.degree[v] > 0:
            u, m = s.parent[v], s.count[v]
            passed = cumulative(prior, s.depth[u], s.rest[u]) - cumulative(prior, s.depth[v], s.rest[v])
            total += log(intensity(prior, s.rest[v])) + passed * prior.harmonic[m - 1]
            total -= prior.total[m] + (s.degree[v] - 1) * prior.unit
            for k in range(3, s.degree[v] + 1):
                total += prior.new[k]
            below = s.child[v]
            while below >= 0:
                total += prior.follow[s.count[below]]
                below = s.next[below]
    return total


@called
def add_prior_gradient(s: Any, prior: Any, gradient: Any) -> Any:
    """Add the derivatives of the log prior in the depths of the branch points."""
    leaves = len(s.parent) // 2
    for v in range(leaves, len(s.parent) - 1):
        if s.degree[v] > 0:
            speed = intensity(prior, s.rest[v])
            slope = (prior.square / max(s.rest[v], SMALLEST) - prior.constant * s.rest[v]) / speed
            slope -= prior.harmonic[s.count[v] - 1] * speed
            below = s.child[v]
            while below >= 0:
                slope += prior.harmonic[s.count[below] - 1] * speed
                below = s.next[below]
            gradient[v] += slope


@inner
def discount_of(prior: Any) -> Any:
    """The discount, which the tables hold only inside log Gamma."""
    return 1.0 - math.exp(prior.follow[2] - prior.follow[1])
