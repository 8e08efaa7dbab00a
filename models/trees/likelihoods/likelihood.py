"""The density of new rows at given places of a tree: what branches and depths say of each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr

from ..fitted_tree import FittedTree
from ..shapes.branches import Branches, bridge

_LOG_TAU = float(np.log(2.0 * np.pi))


class SharedRows:
    """Rows whose columns all have the same variance, at places of a tree.

    A place with weight f between the two ends of its branch and variance S has the log density
    `-(f a + (1 - f) b - f (1 - f) c) / (2 S) - n log(2 pi S) / 2`, a and b being the squared distances of the row from
    the two ends, c that between the ends, over the n columns present: linear in a, b, c and n.

    Args:
        fitted: the tree.
        rows: (T, D) with NaN where missing.
    """

    def __init__(self, fitted: FittedTree, rows: np.ndarray) -> None:
        branches = fitted.branches
        self.branches, self.noise = branches, fitted.noise
        self.present = ~np.isnan(rows)
        self.rows = np.where(self.present, rows / fitted.scale, 0.0)
        self.log_scale = -(self.present * np.log(fitted.scale)).sum(axis=1)

    def everywhere(self, depth: np.ndarray, log_weight: np.ndarray) -> np.ndarray:
        """(T, B, F) log weight plus log density at depths (B, F) of all branches; distances by matrix products."""
        branches, present = self.branches, self.present.astype(np.float64)
        centre = branches.low_mean.mean(axis=0)  # differences of far-off numbers would lose digits
        rows, low, high = self.present * (self.rows - centre), branches.low_mean - centre, branches.high_mean - centre
        own = (rows**2).sum(axis=1)[:, None]
        from_low = own - 2.0 * rows @ low.T + present @ (low**2).T
        from_high = own - 2.0 * rows @ high.T + present @ (high**2).T
        between = present @ ((low - high) ** 2).T
        number = np.broadcast_to(present.sum(axis=1)[:, None], between.shape)
        features = [np.maximum(from_low, 0.0), np.maximum(from_high, 0.0), between, number, np.ones_like(between)]
        coefficients = np.concatenate([self._coefficients(depth), log_weight[:, None]], axis=1)
        values = np.stack(features, axis=-1).swapaxes(0, 1) @ coefficients
        return values.swapaxes(0, 1)

    def near(self, pick: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Log densities (T, K, F) as a function of depths (T, K, F) on the branches `pick` (T, K)."""
        present = self.present[:, None]
        row, low, high = self.rows[:, None], self.branches.low_mean[pick], self.branches.high_mean[pick]
        squares = [(present * (one - other) ** 2).sum(axis=-1) for one, other in ((row, low), (row, high), (low, high))]
        features = np.stack([*squares, np.broadcast_to(present.sum(axis=-1), pick.shape)], axis=-1)[..., None, :]
        return lambda depth: (features @ self._coefficients(depth, pick))[..., 0, :]

    def _coefficients(self, depth: np.ndarray, pick: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(..., 4, F) factors of the distances and of the number of columns."""
        weight, variance = (part[..., 0] for part in bridge(self.branches, depth, pick))
        variance = variance + np.exp(-depth) + self.noise
        half, rest = 0.5 / variance, 1.0 - weight
        return np.stack(
            [-weight * half, -rest * half, weight * rest * half, -0.5 * (_LOG_TAU + np.log(variance))], axis=-2
        )


class ColumnRows:
    """Rows whose columns have variances of their own, or are binary, at places of a tree: the same two functions.

    Args:
        fitted: the tree.
        rows: (T, D) with NaN where missing.
    """

    def __init__(self, fitted: FittedTree, rows: np.ndarray) -> None:
        self.branches, self.binary = fitted.branches, fitted.binary
        self.scale, self.noise = np.broadcast_to(fitted.scale, rows.shape[1]), fitted.noise
        present = ~np.isnan(rows)
        filled = np.where(present, rows, 0.0)
        self.present = present.astype(np.float64)
        self.rows = filled[:, ~self.binary] / self.scale[~self.binary]
        self.ones = filled[:, self.binary]
        self.log_scale = -(present * np.where(self.binary, 0.0, np.log(self.scale))).sum(axis=1)

    def everywhere(self, depth: np.ndarray, log_weight: np.ndarray) -> np.ndarray:
        """(T, B, F) log weight plus log density at depths (B, F) of all branches, linear in y^2, y and presence."""
        mean, variance, standard = self._gaussians(depth)
        shape = (len(self.rows), *depth.shape)
        present, known = self.present[:, ~self.binary], self.present[:, self.binary]
        centre = self.branches.low_mean[:, ~self.binary].mean(axis=0)
        rows, mean = present * (self.rows - centre), mean - centre
        precision = 1.0 / variance
        terms = [(rows**2, precision), (rows, -2.0 * mean * precision), (present, mean**2 * precision)]
        square = sum(feature @ table.reshape(depth.size, table.shape[-1]).T for feature, table in terms)
        one, zero = log_ndtr(standard), log_ndtr(-standard)
        terms = [(present, -0.5 * (_LOG_TAU + np.log(variance))), (self.ones, one - zero), (known, zero)]
        total = sum(feature @ table.reshape(depth.size, table.shape[-1]).T for feature, table in terms)
        return (total - 0.5 * np.maximum(square, 0.0)).reshape(shape) + log_weight

    def near(self, pick: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Log densities (T, K, F) as a function of depths (T, K, F) on the branches `pick` (T, K)."""
        present, known = self.present[:, None, None, ~self.binary], self.present[:, None, None, self.binary]
        row, sign = self.rows[:, None, None], 2.0 * self.ones[:, None, None] - 1.0

        def log_density(depth: np.ndarray) -> np.ndarray:
            mean, variance, standard = self._gaussians(depth, pick)
            numbers = present * ((row - mean) ** 2 / variance + np.log(variance) + _LOG_TAU)
            return (known * log_ndtr(sign * standard)).sum(axis=-1) - 0.5 * numbers.sum(axis=-1)

        return log_density

    def _gaussians(
        self, depth: np.ndarray, pick: np.ndarray | slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(..., F, columns): means and variances of the columns of numbers, standardised means of the binary ones."""
        branches: Branches = self.branches
        weight, variance = bridge(branches, depth, pick)
        mean = weight * branches.low_mean[pick][..., None, :] + (1.0 - weight) * branches.high_mean[pick][..., None, :]
        variance = np.broadcast_to(variance + np.exp(-depth)[..., None], mean.shape)
        numbers, scale = ~self.binary, self.scale[self.binary]
        noise = np.broadcast_to(self.noise, mean.shape[-1:])[numbers]
        spread = np.sqrt(1.0 + scale**2 * variance[..., self.binary])
        return mean[..., numbers], variance[..., numbers] + noise, scale * mean[..., self.binary] / spread
