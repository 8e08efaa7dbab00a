"""Expressions of integrated scalars alone: between the points of a grid their values are computed, not guessed.

Every point stands for the numbers around it: draws of a Gaussian whose covariance is a share of that of all points, the
points being drawn together so that the whole keeps its mean and covariance. Source: liu2001combined.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import Let
from ...factors.arrays import Array
from ...factors.families import Family
from ...factors.switches import double_precision
from ..data.missing_and_sparse import Arrays
from ..distributions.mixed_over_grid import FROM_REAL, OnGrid
from ..distributions.tabulated import Tabulated
from ..expressions.shapes import tabled
from ..values.evaluate import known, value
from ..values.instances import count
from ..values.plated import spread
from ..values.scope import Scope
from .at_points import Mixture

DRAWS = 40_000
CELLS = 4_000_000  # values held at once
WIDEST = 0.5  # share of the covariance of all points that one stands for


def table_between(
    node: Let, mixture: Mixture, arrays: Arrays, sizes: dict[str, int], family: Family
) -> Tabulated | None:
    """The distribution of an expression over all that the points stand for; None where it reads other variables.

    `family` has its mean and its variance.
    """
    scope = Scope(sizes, {**arrays, **mixture.values}, {})
    if node.domain.kind not in ("real", "positive", "unit") or not known(node, scope):
        return None
    size = count(node, sizes)
    each = max(1, min(DRAWS, CELLS // size) // len(mixture.weights))
    drawn = _around(mixture, each)

    def one(scalars: Mapping[str, Array]) -> Array:
        return spread(value(node, Scope(sizes, {**arrays, **scalars}, {})), node.plates, sizes)

    with double_precision():
        values = jnp.asarray(jax.vmap(one)(drawn), float).reshape((-1, size)).T
        table = np.asarray(tabled(values, jnp.asarray(np.repeat(mixture.weights, each))))
    shape = [sizes[plate.name] for plate in node.plates]
    return Tabulated(table.reshape((*shape, -1)), family, f" of {values.shape[1]} points")


def _around(mixture: Mixture, each: int) -> dict[str, np.ndarray]:
    """So many values of the scalars around each point, those of the first point first."""
    found = {name: np.repeat(values, each, axis=0) for name, values in mixture.values.items()}
    grids = {name: family for name, family in mixture.families.items() if isinstance(family, OnGrid)}
    if not grids:
        return found
    if len(mixture.values) == 1:  # whose distribution is known between the points: no draws are needed
        [(name, family)] = grids.items()
        return {name: _by_weights(family, mixture.weights, each)}
    points = np.stack([np.asarray(grid.coordinates) for grid in grids.values()], axis=1)
    weights = mixture.weights
    mean = weights @ points
    covariance = (points - mean).T @ ((points - mean) * weights[:, None])
    widths = np.array([float(grid.width) for grid in grids.values()])
    share = min(float(np.mean(widths**2 / np.diag(covariance))), WIDEST)
    scale, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(scale, 0.0))
    noise = np.random.default_rng(0).normal(size=(len(weights) * each, len(grids)))
    centres = mean + np.sqrt(1.0 - share) * (points - mean)
    coordinates = np.repeat(centres, each, axis=0) + np.sqrt(share) * noise @ root.T
    with double_precision():
        for column, (name, grid) in zip(coordinates.T, grids.items(), strict=True):
            found[name] = np.asarray(FROM_REAL[grid.kind](column))
    return found


def _by_weights(family: OnGrid, weights: np.ndarray, each: int) -> np.ndarray:
    """So many values for each weight, in the order of the weights: quantiles at levels that share these evenly."""
    ends = np.concatenate([[0.0], np.cumsum(weights)])
    inside = (np.arange(each) + 0.5) / each
    levels = ends[:-1, None] + inside * np.diff(ends)[:, None]
    return np.asarray(family.quantile(np.clip(levels.ravel(), 1e-12, 1.0 - 1e-12)))
