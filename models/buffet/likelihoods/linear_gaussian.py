"""Real numbers: Gaussian values of features that add up, and Gaussian noise."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.families.matrices import cholesky, solve_root
from .contract import Active, Numbers, Point, Table, Values, shares
from .gaussian_noise import LOG_2PI, GaussianValues


class OfValues(NamedTuple):
    """The posterior of values given which rows have them: Gaussian, of the same precision for all dimensions.

    Attributes:
        root: (places, places) lower Cholesky factor L of the precision.
        whitened: (places, dimensions) such that the mean is `L^-T whitened`, and `L^-T (whitened + noise)` a draw.
    """

    root: Array
    whitened: Array

    def draw(self, key: Key) -> Values:
        """The values, by one solve of mean and noise."""
        noise = draws.normal(key, self.whitened.shape)
        return solve_root(self.root, self.whitened + noise, transposed=True)

    def mean(self) -> Values:
        """(places, dimensions)."""
        return solve_root(self.root, self.whitened, transposed=True)


@dataclasses.dataclass(frozen=True)
class LinearGaussian(GaussianValues):
    """`x_nd ~ N(sum_k z_nk a_kd, 1 / noise_precision)` and `a_kd ~ N(0, 1 / value_precision)`.

    Entries are about zero: take column means off before. Missing entries are drawn in each sweep, given which the
    values of all dimensions have one covariance.

    Args:
        noise_precision: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        value_precision: the same for the values of features.

    Raises:
        ModelError: numbers that are not positive.

    Source: griffiths2011indian.
    """

    by_sums: ClassVar[bool] = True  # but for entries to fill in: `parallel.synchronous`

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys = jax.random.split(key, 4)
        point = point._replace(numbers=self.numbers_given(keys[0], keys[1], rows, point))
        values = of_values(self.filled(keys[2], rows, point), shares(point), point.numbers).draw(keys[3])
        return point._replace(values=values)


class Sums(NamedTuple):
    """All that filled data tell of the values of given features.

    Attributes:
        gram: (places, places), how many rows have both of two features.
        cross: (places, dimensions), sums of the entries of the rows that have a feature.
    """

    gram: Array
    cross: Array

    def moved(self, z: Array, value: Array, sign: float) -> Sums:
        """With (1) or without (-1) a row of these features and entries."""
        signed = sign * jnp.asarray(z)[:, None]
        return Sums(self.gram + signed * z, self.cross + signed * value)


def sums_of(values: Array, active: Active) -> Sums:
    """Of entries (rows, dimensions), all of them seen."""
    z = active.astype(values.dtype)
    return Sums(z.T @ z, z.T @ values)


def of_values(values: Array, active: Active, numbers: Numbers) -> OfValues:
    """The posterior of values given the active features and entries, all of them seen."""
    return of_values_given(sums_of(values, active), numbers)


def of_values_given(sums: Sums, numbers: Numbers) -> OfValues:
    """The same from sums over rows."""
    noise = numbers["noise_precision"]
    precision = noise * sums.gram + numbers["value_precision"] * jnp.eye(len(sums.gram))
    root = cholesky(precision)
    return OfValues(root, solve_root(root, noise * sums.cross))


def log_marginal(values: Array, active: Active, numbers: Numbers) -> Array:
    """Log density of entries given which features rows have, the values of features integrated out.

    `sum_d log N(x_d; 0, I / noise_precision + Z Z^T / value_precision)` over columns x_d, from the sums of the rows of
    each feature alone. Places that no row has change nothing.

    Args:
        values: (rows, dimensions), all of them seen.
        active: (rows, places) booleans.
        numbers: "noise_precision" and "value_precision".

    Source: griffiths2011indian.
    """
    return log_marginal_given(sums_of(values, active), jnp.sum(values**2), values.shape[0], numbers)


def log_marginal_given(
    sums: Sums, square: Array, rows: int, numbers: Numbers, columns: Array | None = None
) -> Array:  # fmt: skip
    """The same from sums over rows, and the sum of the squares of all entries; or of those (dimensions,) columns only,
    up to a constant, as the squares are those of all."""
    noise, own = numbers["noise_precision"], numbers["value_precision"]
    places, dimensions = sums.cross.shape
    found = of_values_given(sums, numbers)
    whitened = found.whitened if columns is None else jnp.where(columns, found.whitened, 0.0)
    number = dimensions if columns is None else jnp.sum(columns)
    volume = 0.5 * places * jnp.log(own) - jnp.sum(jnp.log(jnp.diagonal(found.root)))
    flat = number * (0.5 * rows * (jnp.log(noise) - LOG_2PI) + volume)
    return flat - 0.5 * noise * square + 0.5 * jnp.sum(whitened**2)
