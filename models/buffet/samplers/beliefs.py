"""What is believed of the values of features given rows: one Gaussian, from sums over the rows."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ....factors.arrays import Array
from ....factors.families.matrices import cholesky, solve_root
from ..likelihoods.contract import Numbers
from ..likelihoods.linear_gaussian import Sums

TOLERANCE = 1e-9  # drift at which covariance and mean are computed anew


class Beliefs(NamedTuple):
    """The posterior of values given rows: Gaussian, of one covariance for all dimensions.

    Attributes:
        sums: over the rows, of which precision and precision times mean are made.
        covariance: (places, places).
        mean: (places, dimensions).
    """

    sums: Sums
    covariance: Array
    mean: Array


def beliefs_of(sums: Sums, numbers: Numbers) -> Beliefs:
    """Computed from sums, mean and covariance by the same solves."""
    noise, places = numbers["noise_precision"], len(sums.gram)
    root = cholesky(precision_of(sums, numbers))
    both = jnp.concatenate([jnp.eye(places), noise * sums.cross], axis=1)
    half = solve_root(root, both)
    solved = solve_root(root, half, transposed=True)
    return Beliefs(sums, solved[:, :places], solved[:, places:])


def precision_of(sums: Sums, numbers: Numbers) -> Array:
    """(places, places), of values given rows of these sums."""
    return numbers["noise_precision"] * sums.gram + numbers["value_precision"] * jnp.eye(len(sums.gram))
