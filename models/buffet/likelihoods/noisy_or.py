"""Booleans: each feature that a row has is one more reason for an entry to be one, by a leaky noisy-or."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from .binary_values import BinaryValues, update_binary
from .contract import Numbers, Point, Table, totals
from .learned import Beta, slice_beta


@dataclasses.dataclass(frozen=True)
class NoisyOr(BinaryValues):
    """`P(x_nd = 0) = quiet attenuation^(sum_k z_nk a_kd)` and `a_kd ~ Bernoulli(share)`.

    Args:
        quiet: the probability of a zero without any reason, between 0 and 1; or the parameters of the beta prior under
            which it is learned.
        attenuation: what each reason multiplies the probability of a zero with; the same.
        share: the probability that a feature is a reason for an entry; the same.

    Raises:
        ModelError: numbers out of range.

    Source: wood2006nonparametric.
    """

    quiet: Beta = 0.95
    attenuation: Beta = 0.2
    share: Beta = (1.0, 1.0)

    def log_entry(self, value: Array, total: Array, numbers: Numbers) -> Array:
        log_zero = jnp.log(numbers["quiet"]) + total * jnp.log(numbers["attenuation"])
        return jnp.where(value > 0.5, jnp.log(-jnp.expm1(log_zero)), log_zero)

    def mean_entry(self, total: Array, numbers: Numbers) -> Array:
        return 1.0 - numbers["quiet"] * numbers["attenuation"] ** total

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys = jax.random.split(key, 4)
        total = totals(point)

        def log_likelihood(numbers: Numbers) -> Array:
            return jnp.sum(rows.total(jnp.where(rows.seen, self.log_entry(rows.values, total, numbers), 0.0)))

        used = rows.total(point.active) > 0
        numbers = self.numbers_given(keys, used, point.values, point.numbers, log_likelihood)
        return update_binary(keys[3], self, rows, point._replace(numbers=numbers), numbers["share"])

    def numbers_given(
        self,
        keys: Key,
        used: Array,
        values: Array,
        numbers: Numbers,
        log_likelihood: Callable[[Numbers], Array],
    ) -> Numbers:
        """All three drawn given the density of the data at any of them, by the first three of the keys."""
        numbers = {**numbers, "share": self.share_given(keys[0], used, values)}
        for own, name in zip(keys[1:3], ("quiet", "attenuation"), strict=True):

            def at(value: Array, name: str = name, numbers: Numbers = numbers) -> Array:
                return log_likelihood({**numbers, name: value})

            numbers = {**numbers, name: slice_beta(own, self.given()[name], numbers[name], at)}
        return numbers
