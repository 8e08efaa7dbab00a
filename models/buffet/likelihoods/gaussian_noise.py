"""Real numbers about the totals of their features: what likelihoods with Gaussian noise share."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from .contract import Likelihood, Numbers, Point, Rows, Table, Values, WholeRows, totals
from .learned import Gamma, check_gamma, draw_gamma, draw_precision, first_precision, mean_square

LOG_2PI = 1.8378770664093453


@dataclasses.dataclass(frozen=True)
class GaussianNoise(Likelihood):
    """`x_nd ~ N(t_nd, 1 / noise_precision)`; abstract: what the totals are made of is for others to say.

    Args:
        noise_precision: a positive number, or (shape, rate) of the gamma prior under which it is learned.

    Raises:
        ModelError: numbers that are not positive.
    """

    noise_precision: Gamma = (1.0, 1.0)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_gamma(f"{type(self).__name__}({field.name}=)", getattr(self, field.name))

    def log_entry(self, value: Array, total: Array, numbers: Numbers) -> Array:
        noise = numbers["noise_precision"]
        return 0.5 * (jnp.log(noise) - LOG_2PI - noise * (value - total) ** 2)

    def draw_entry(self, key: Key, total: Array, numbers: Numbers) -> Array:
        return total + draws.normal(key, total.shape) / jnp.sqrt(numbers["noise_precision"])

    def mean_entry(self, total: Array, numbers: Numbers) -> Array:
        return total

    def draw_noise(self, key: Key, rows: Table, total: Array) -> Array:
        """The precision given what is left of the entries seen."""
        square = jnp.sum(rows.total(jnp.where(rows.seen, (rows.values - total) ** 2, 0.0)))
        return draw_precision(key, self.noise_precision, jnp.sum(rows.total(rows.seen)), square)

    def check(self, values: Array, seen: Array) -> None:
        """Any finite number."""


@dataclasses.dataclass(frozen=True)
class GaussianValues(GaussianNoise):
    """The same with values `a_kd ~ N(0, 1 / value_precision)`; abstract.

    Args:
        noise_precision: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        value_precision: the same for the values of features.

    Raises:
        ModelError: numbers that are not positive.
    """

    square_of_weights: ClassVar[float] = 1.0  # the expected one, by which the first values are smaller
    value_precision: Gamma = (1.0, 1.0)

    def draw_numbers(self, key: Key) -> Numbers:
        keys = jax.random.split(key)
        return {
            "noise_precision": draw_gamma(keys[0], self.noise_precision),
            "value_precision": draw_gamma(keys[1], self.value_precision),
        }

    def first_numbers(self, rows: Rows) -> Numbers:
        return self.numbers_of_size(mean_square(rows))

    def numbers_of_size(self, square: float) -> Numbers:
        """Where chains begin for entries of this mean square."""
        return {
            "noise_precision": first_precision(self.noise_precision, square, 4.0),
            "value_precision": first_precision(self.value_precision, square, self.square_of_weights),
        }

    def draw_values(self, key: Key, numbers: Numbers, places: int, dimensions: int) -> Values:
        return draws.normal(key, (places, dimensions)) / jnp.sqrt(numbers["value_precision"])

    def numbers_given(self, noise_key: Key, value_key: Key, rows: Table, point: Point) -> Numbers:
        """Both precisions given the matrix and the values of features, and the entries that are seen."""
        mean, used = totals(point), rows.total(point.active) > 0
        own = jnp.sum(jnp.where(used[:, None], point.values**2, 0.0))
        return {
            "noise_precision": self.draw_noise(noise_key, rows, mean),
            "value_precision": draw_precision(value_key, self.value_precision, jnp.sum(used) * mean.shape[1], own),
        }

    def filled(self, key: Key, rows: Table, point: Point) -> Array:
        """(rows, dimensions), the entries, those that are not seen drawn given all else."""

        values = jnp.asarray(rows.values, float)
        if isinstance(rows, WholeRows):
            return values

        def drawn() -> Array:
            return jnp.where(rows.seen, values, self.draw_entry(key, totals(point), point.numbers))

        return jax.lax.cond(jnp.all(rows.seen), lambda: values, drawn)
