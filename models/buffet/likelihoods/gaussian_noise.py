"""Real numbers about the totals of their features: what likelihoods with Gaussian noise share."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from .contract import Likelihood, Numbers, Rows
from .learned import Gamma, check_gamma, draw_precision

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

    def draw_noise(self, key: Key, rows: Rows, total: Array) -> Array:
        """The precision given what is left of the entries seen."""
        square = jnp.sum(jnp.where(rows.seen, (rows.values - total) ** 2, 0.0))
        return draw_precision(key, self.noise_precision, jnp.sum(rows.seen), square)

    def check(self, values: Array, seen: Array) -> None:
        """Any finite number."""
