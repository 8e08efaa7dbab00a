"""Real numbers: values of features that are not negative and add up, and Gaussian noise.

Features cannot cancel each other, so that there are fewer modes than with Gaussian values; but nothing of it can be
integrated out.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from ....engine.sampling.augmented import normal_above
from ....factors import draws
from ....factors.arrays import Array, Key
from .contract import Numbers, Point, Rows, Table, Values, shares, totals
from .gaussian_noise import GaussianNoise
from .learned import Gamma, draw_gamma, first_precision, gamma_given, mean_square


@dataclasses.dataclass(frozen=True)
class ExponentialGaussian(GaussianNoise):
    """`x_nd ~ N(sum_k z_nk a_kd, 1 / noise_precision)` and `a_kd ~ Exp(rate)`, whose mean is 1 / rate.

    Given all else `a_kd` is normal of precision `p = noise_precision m` and mean `(noise_precision sum_n z_nk r_nd -
    rate) / p`, cut off below zero; m is how many entries seen have the feature, and r what others leave of them.

    Args:
        noise_precision: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        rate: of the values of features; the same.

    Raises:
        ModelError: numbers that are not positive.

    Source: doshivelez2009correlated.
    """

    by_sums: ClassVar[bool] = True
    rate: Gamma = (1.0, 1.0)

    def draw_numbers(self, key: Key) -> Numbers:
        keys = jax.random.split(key)
        return {
            "noise_precision": draw_gamma(keys[0], self.noise_precision),
            "rate": draw_gamma(keys[1], self.rate),
        }

    def first_numbers(self, rows: Rows) -> Numbers:
        square = mean_square(rows)
        rate = first_precision(self.rate, square, 1.0)
        return {
            "noise_precision": first_precision(self.noise_precision, square, 4.0),
            "rate": jnp.sqrt(rate) if isinstance(self.rate, tuple) else rate,
        }

    def draw_values(self, key: Key, numbers: Numbers, places: int, dimensions: int) -> Values:
        return draws.exponential(key, (places, dimensions)) / numbers["rate"]

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys = jax.random.split(key, 3)
        used = rows.total(point.active) > 0
        sizes = jnp.sum(jnp.where(used[:, None], point.values, 0.0))
        numbers = {
            "noise_precision": self.draw_noise(keys[0], rows, totals(point)),
            "rate": gamma_given(keys[1], self.rate, jnp.sum(used) * point.values.shape[1], sizes),
        }
        return self.draw_values_given(keys[2], rows, point._replace(numbers=numbers))

    def draw_values_given(self, key: Key, rows: Table, point: Point) -> Point:
        """The values of one feature given those of all others, of all dimensions at once."""
        keys = jax.random.split(key)
        noise, rate = point.numbers["noise_precision"], point.numbers["rate"]
        prior, had = self.draw_values(keys[0], point.numbers, *point.values.shape), shares(point)

        def one(place: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            values, total = carry
            has = had[:, place][:, None]
            without = total - has * values[place]
            shift = noise * rows.total(jnp.where(rows.seen, has * (rows.values - without), 0.0)) - rate
            number = rows.total(jnp.where(rows.seen, has**2, 0.0))
            root = jnp.sqrt(noise * jnp.maximum(number, 1.0))
            drawn = (shift / root + normal_above(jax.random.fold_in(keys[1], place), -shift / root)) / root
            drawn = jnp.where(number > 0, jnp.maximum(drawn, 0.0), prior[place])
            return jnp.asarray(values).at[place].set(drawn), without + has * drawn

        values, _ = jax.lax.fori_loop(0, point.values.shape[0], one, (point.values, totals(point)))
        return point._replace(values=values)
