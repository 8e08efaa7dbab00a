"""Mean field of the linear-Gaussian likelihood: every value of a feature is Gaussian by itself.

Updates ask for inner products of features alone where all cells are seen: then their cost does not grow with the
dimensions beyond two products of matrices. Where cells are missing each row has its own inner products, and each
dimension its own number of rows.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Numbers, Rows, Values
from ..likelihoods.linear_gaussian import LOG_2PI, LinearGaussian
from .beliefs import Positive, point, positive, probability
from .contract import Field, Probabilities, seen_by, some_rows


class GaussianBelief(NamedTuple):
    """About values and precisions.

    Attributes:
        mean, variance: (places, dimensions) of values.
        noise, precision: of noise, and of values.
    """

    mean: Values
    variance: Values
    noise: Positive
    precision: Positive


@dataclasses.dataclass(frozen=True)
class GaussianField(Field):
    """For `LinearGaussian`; learned precisions have gamma beliefs. Source: doshivelez2009variational."""

    likelihood: LinearGaussian

    def start(self, key: Key, rows: Rows, places: int, numbers: Numbers) -> GaussianBelief:
        size = jnp.sqrt(jnp.sum(rows.values**2) / jnp.maximum(jnp.sum(rows.seen), 1))
        keys = jax.random.split(key)
        mean = 0.5 * some_rows(keys[0], rows, places) + 0.1 * size * draws.normal(
            keys[1], (places, rows.values.shape[1])
        )
        noise, precision = point(numbers["noise_precision"]), point(numbers["value_precision"])
        return GaussianBelief(mean, jnp.full_like(mean, 0.01 * size**2), noise, precision)

    def entries(
        self, rows: Rows, probabilities: Probabilities, belief: GaussianBelief, odds: Array, power: Array, places: Array
    ) -> Probabilities:
        mean, noise = belief.mean, power * belief.noise.mean
        seen = jnp.ones((1, mean.shape[1])) if self.complete else rows.seen.astype(mean.dtype)
        shown = rows.values @ mean.T - 0.5 * seen @ (mean**2 + belief.variance).T
        gram = mean @ mean.T

        def one(i: Array, now: Probabilities) -> Probabilities:
            k = places[i]
            overlap = gram[k][None] if self.complete else seen @ (mean[k] * mean).T
            others = jnp.sum(now * overlap, axis=1) - now[:, k] * overlap[:, k]
            return jnp.asarray(now).at[:, k].set(probability(odds[k] + noise * (shown[:, k] - others)))

        return jax.lax.fori_loop(0, len(places), one, probabilities)

    def values(
        self, rows: Rows, probabilities: Probabilities, belief: GaussianBelief, power: Array, places: Array
    ) -> GaussianBelief:
        noise = power * belief.noise.mean
        shown = probabilities.T @ rows.values
        variance = 1.0 / (belief.precision.mean + noise * seen_by(probabilities, rows, self.complete))
        gram = probabilities.T @ probabilities

        def one(i: Array, now: Values) -> Values:
            k = places[i]
            shared = (
                gram[k][:, None] if self.complete else seen_by(probabilities[:, k, None] * probabilities, rows, False)
            )
            others = jnp.sum(now * shared, axis=0) - now[k] * shared[k]
            return jnp.asarray(now).at[k].set(noise * (shown[k] - others) * variance[k])

        mean = jax.lax.fori_loop(0, len(places), one, belief.mean)
        return belief._replace(mean=mean, variance=jnp.asarray(belief.variance).at[places].set(variance[places]))

    def numbers(self, rows: Rows, probabilities: Probabilities, belief: GaussianBelief, power: Array) -> GaussianBelief:
        given = self.likelihood
        cells, square = jnp.sum(rows.seen), self._square(rows, probabilities, belief)
        own = jnp.sum(belief.mean**2 + belief.variance)
        count = jnp.asarray(0.5 * belief.mean.size)
        noise = positive(given.noise_precision, 0.5 * power * cells, 0.5 * power * square)
        return belief._replace(noise=noise, precision=positive(given.value_precision, count, 0.5 * own))

    def fit(self, rows: Rows, probabilities: Probabilities, belief: GaussianBelief) -> Array:
        cells, square = jnp.sum(rows.seen), self._square(rows, probabilities, belief)
        return 0.5 * (cells * (belief.noise.log_mean - LOG_2PI) - belief.noise.mean * square)

    def divergence(self, belief: GaussianBelief) -> Array:
        square, precision = belief.mean**2 + belief.variance, belief.precision
        each = precision.mean * square - precision.log_mean - jnp.log(belief.variance) - 1.0
        return 0.5 * jnp.sum(each) + precision.divergence + belief.noise.divergence

    def reordered(self, belief: GaussianBelief, order: Array) -> GaussianBelief:
        return belief._replace(mean=belief.mean[order], variance=belief.variance[order])

    def moments(self, belief: GaussianBelief) -> tuple[Values, Values]:
        return belief.mean, jnp.sqrt(belief.variance)

    def draw(self, key: Key, belief: GaussianBelief) -> tuple[Values, Numbers]:
        keys = jax.random.split(key, 3)
        values = belief.mean + jnp.sqrt(belief.variance) * draws.normal(keys[0], belief.mean.shape)
        numbers = {"noise_precision": belief.noise.draw(keys[1]), "value_precision": belief.precision.draw(keys[2])}
        return values, numbers

    def expected(self, probabilities: Probabilities, belief: GaussianBelief) -> Array:
        return probabilities @ belief.mean

    def _square(self, rows: Rows, probabilities: Probabilities, belief: GaussianBelief) -> Array:
        """The expected sum of squares of the noise of cells that are seen."""
        off = jnp.where(rows.seen, rows.values - probabilities @ belief.mean, 0.0)
        once = seen_by(probabilities, rows, self.complete)
        twice = seen_by(probabilities**2, rows, self.complete)
        return jnp.sum(off**2) + jnp.sum(once * (belief.mean**2 + belief.variance) - twice * belief.mean**2)
