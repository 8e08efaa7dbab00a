"""Real numbers: each row has its own amount, of a Laplace law, of each feature, whose values are Gaussian.

Infinite independent components: the matrix says which sources are silent in a row, the weights how loud the others are.
A Laplace number is Gaussian given its precision, a random number in its own right.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from .contract import Numbers, Point, Table, Weights, shares, totals
from .gaussian_noise import GaussianValues
from .linear_gaussian import of_values


@dataclasses.dataclass(frozen=True)
class LaplaceICA(GaussianValues):
    """`x_nd ~ N(sum_k z_nk s_nk a_kd, 1 / noise_precision)`, `s_nk ~ Laplace(0, 1)`, `a_kd ~ N(0, 1 /
    value_precision)`.

    The scale of the weights is one: that of the values does its work. Weights of features that a row has not are of
    their prior. Entries are about zero: take column means off before.

    Args:
        noise_precision: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        value_precision: the same for the values of features.

    Raises:
        ModelError: numbers that are not positive.

    Source: knowles2007infinite, park2008bayesian.
    """

    weighted: ClassVar[bool] = True
    square_of_weights: ClassVar[float] = 2.0

    def draw_weights(self, key: Key, numbers: Numbers, shape: tuple[int, int]) -> Weights:
        side = 2.0 * draws.uniform(key, shape) - 1.0
        return -jnp.sign(side) * jnp.log1p(-jnp.abs(side))

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys = jax.random.split(key, 5)
        point = self.draw_weights_given(keys[0], rows, point)
        numbers = self.numbers_given(keys[1], keys[2], rows, point)
        full = self.filled(keys[3], rows, point._replace(numbers=numbers))
        values = of_values(full, shares(point), numbers).draw(keys[4])
        return point._replace(values=values, numbers=numbers)

    def draw_weights_given(self, key: Key, rows: Table, point: Point) -> Point:
        """The weights of one feature given those of all others, of all rows at once.

        Given its precision w, drawn first, a weight is Gaussian: of precision `w + noise_precision sum_d a_kd^2`.
        """
        keys = jax.random.split(key, 3)
        noise, before = point.numbers["noise_precision"], point.weights.T
        precision = draws.inverse_gaussian(keys[0], jnp.abs(before))
        count, places = point.weights.shape
        prior = self.draw_weights(keys[1], point.numbers, (places, count))
        normal = draws.normal(keys[2], before.shape)

        def one(place: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            weights, total = carry
            has, values = point.active[:, place], point.values[place]
            without = total - jnp.outer(has * weights[place], values)
            shift = noise * (jnp.where(rows.seen, rows.values - without, 0.0) @ values)
            power = noise * (rows.seen @ values**2) + precision[place]
            drawn = jnp.where(has, shift / power + normal[place] / jnp.sqrt(power), prior[place])
            return jnp.asarray(weights).at[place].set(drawn), without + jnp.outer(has * drawn, values)

        weights, _ = jax.lax.fori_loop(0, before.shape[0], one, (before, totals(point)))
        return point._replace(weights=weights.T)
