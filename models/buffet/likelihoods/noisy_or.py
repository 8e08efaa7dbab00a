"""Booleans: each feature that a row has is one more reason for an entry to be one, by a leaky noisy-or."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import DataError
from .binary_values import update_binary
from .contract import Likelihood, Numbers, Point, Rows, Values, totals
from .learned import Beta, beta_given, check_beta, draw_beta, first_beta, slice_beta


@dataclasses.dataclass(frozen=True)
class NoisyOr(Likelihood):
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

    def __post_init__(self) -> None:
        for name in ("quiet", "attenuation", "share"):
            check_beta(f"NoisyOr({name}=)", getattr(self, name))

    def draw_numbers(self, key: Key) -> Numbers:
        keys = jax.random.split(key, 3)
        return {name: draw_beta(own, given) for own, (name, given) in zip(keys, self._given().items(), strict=True)}

    def first_numbers(self, rows: Rows) -> Numbers:
        return {name: first_beta(given) for name, given in self._given().items()}

    def draw_values(self, key: Key, numbers: Numbers, places: int, dimensions: int) -> Values:
        return (draws.uniform(key, (places, dimensions)) < numbers["share"]).astype(float)

    def log_entry(self, value: Array, total: Array, numbers: Numbers) -> Array:
        log_zero = jnp.log(numbers["quiet"]) + total * jnp.log(numbers["attenuation"])
        return jnp.where(value > 0.5, jnp.log(-jnp.expm1(log_zero)), log_zero)

    def draw_entry(self, key: Key, total: Array, numbers: Numbers) -> Array:
        return (draws.uniform(key, total.shape) < self.mean_entry(total, numbers)).astype(float)

    def mean_entry(self, total: Array, numbers: Numbers) -> Array:
        return 1.0 - numbers["quiet"] * numbers["attenuation"] ** total

    def update(self, key: Key, rows: Rows, point: Point) -> Point:
        keys = jax.random.split(key, 4)
        used = jnp.any(point.active, axis=0)[:, None]
        ones = jnp.sum(jnp.where(used, point.values, 0.0))
        share = beta_given(keys[0], self.share, ones, jnp.sum(used) * point.values.shape[1] - ones)
        numbers = {**point.numbers, "share": share}
        mean = totals(point)
        for own, name in zip(keys[1:3], ("quiet", "attenuation"), strict=True):

            def log_likelihood(value: Array, name: str = name, numbers: Numbers = numbers) -> Array:
                return jnp.sum(self.log_entry(rows.values, mean, {**numbers, name: value}), where=rows.seen)

            numbers = {**numbers, name: slice_beta(own, self._given()[name], numbers[name], log_likelihood)}
        return update_binary(keys[3], self, rows, point._replace(numbers=numbers), numbers["share"])

    def check(self, values: Array, seen: Array) -> None:
        wrong = values[seen & (values != 0.0) & (values != 1.0)]
        if wrong.size:
            raise DataError(f"NoisyOr is of entries 0 and 1; found {wrong[0]}.")

    def _given(self) -> dict[str, Beta]:
        return {"quiet": self.quiet, "attenuation": self.attenuation, "share": self.share}
