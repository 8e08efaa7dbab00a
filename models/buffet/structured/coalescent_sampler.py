"""The posterior of features with a genealogy: a likelihood whose weights are those of related features.

Each row has its own amount of each feature, and amounts of related features are alike: Gaussian, with the covariance of
what diffuses along the genealogy. Samplers draw which rows have which features as for any other likelihood with
weights; this one draws the weights, and the genealogy given them. The genealogy is of a fixed number of features.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.sampling.conditionals.slices import slice_step
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError, UnsupportedError
from ....factors.families.matrices import cholesky, solve_root
from ..likelihoods.contract import Numbers, Point, Rows, Table, Weights, shares, totals
from ..likelihoods.gaussian_noise import GaussianValues
from ..likelihoods.linear_gaussian import of_values

TIMES = 3  # in a sweep: from a meeting at random on the genealogy is grown anew


@dataclasses.dataclass(frozen=True)
class RelatedFactors(GaussianValues):
    """`x_nd ~ N(sum_k z_nk s_nk a_kd, 1 / noise_precision)`, `s_n ~ N(0, first_variance + rate shared_time)` for the
    genealogy of `CoalescentWeights`, and `a_kd ~ N(0, 1 / value_precision)`.

    For `Law(features=)` of as many features. Numbers of a draw have the genealogy as `pairs` and `ages`, its fields.

    Args:
        noise_precision: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        value_precision: the same for the values of features.
        relatives: how many features, at least 2.
        first_variance: of weights at the features' last common ancestor, a positive number given.
        rate: variance for each unit of time since, a positive number given.

    Raises:
        ModelError: numbers that are not positive, or fewer than two features.

    Source: rai2008infinite, kingman1982coalescent.
    """

    weighted: ClassVar[bool] = True
    apart: ClassVar[bool] = False
    relatives: int = 2
    first_variance: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = isinstance(self.relatives, (int, np.integer)) and not isinstance(self.relatives, bool)
        if not whole or self.relatives < 2:
            raise ModelError(
                f"RelatedFactors(relatives=) is a whole number of features from 2; found {self.relatives!r}."
            )
        for name in ("first_variance", "rate"):
            if isinstance(getattr(self, name), tuple):
                raise ModelError(f"RelatedFactors({name}=) is a number given; found {getattr(self, name)!r}.")

    def draw_numbers(self, key: Key) -> Numbers:
        keys = jax.random.split(key)
        none = jnp.zeros((self.relatives - 1, 2), int), jnp.zeros(self.relatives - 1)
        pairs, ages = grown(keys[1], *none, jnp.zeros((), int))
        return {**super().draw_numbers(keys[0]), "pairs": pairs, "ages": ages}

    def first_numbers(self, rows: Rows) -> Numbers:
        several = np.arange(self.relatives, 1, -1)
        rest = np.arange(self.relatives - 1)
        pairs = np.stack([np.append(0, self.relatives + rest[:-1]), rest + 1], axis=1)  # one after the other
        ages = np.cumsum(2.0 / (several * (several - 1.0)))
        return {**super().first_numbers(rows), "pairs": jnp.asarray(pairs), "ages": jnp.asarray(ages)}

    def draw_weights(self, key: Key, numbers: Numbers, shape: tuple[int, int]) -> Weights:
        if shape[0] != self.relatives:
            raise UnsupportedError(
                f"The genealogy of RelatedFactors(relatives={self.relatives}) is of as many features; the law of the "
                f"matrix has places for {shape[0]}. Use Law(features={self.relatives})."
            )
        return cholesky(self.covariance(numbers)) @ draws.normal(key, shape)

    def covariance(self, numbers: Numbers) -> Array:
        """(features, features) of a row's weights given the genealogy."""
        return self.first_variance + self.rate * time_together(numbers["pairs"], numbers["ages"])

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys = jax.random.split(key, 6)
        point = self.draw_weights_given(keys[0], rows, point)
        numbers = {**point.numbers, **self.numbers_given(keys[1], keys[2], rows, point)}
        numbers = self.draw_genealogy(keys[3], numbers, point.weights)
        full = self.filled(keys[4], rows, point._replace(numbers=numbers))
        values = of_values(full, shares(point), numbers).draw(keys[5])
        return point._replace(values=values, numbers=numbers)

    def draw_weights_given(self, key: Key, rows: Table, point: Point) -> Point:
        """The weights of one feature given those of all others, of all rows at once: both the prior's conditional and
        what the entries tell are Gaussian. Weights of features that a row has not are drawn given those that it has."""
        noise, values = point.numbers["noise_precision"], point.values
        root = cholesky(self.covariance(point.numbers))
        whitened = solve_root(root, jnp.eye(self.relatives))
        precision, normal = whitened.T @ whitened, draws.normal(key, point.weights.T.shape)

        def one(place: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            weights, total = carry
            has, own, now = point.active[:, place], values[place], weights[:, place]
            without = total - jnp.outer(has * now, own)
            shift = noise * has * (jnp.where(rows.seen, rows.values - without, 0.0) @ own)
            related = weights @ precision[place] - precision[place, place] * now
            power = precision[place, place] + noise * has * (rows.seen @ own**2)
            drawn = (shift - related) / power + normal[place] / jnp.sqrt(power)
            return jnp.asarray(weights).at[:, place].set(drawn), without + jnp.outer(has * drawn, own)

        weights, _ = jax.lax.fori_loop(0, self.relatives, one, (point.weights, totals(point)))
        return point._replace(weights=weights)

    def draw_genealogy(self, key: Key, numbers: Numbers, weights: Weights) -> Numbers:
        """Grown anew from a meeting at random on, accepted by the density of the weights; then each time between two
        meetings by a slice."""
        scatter, count = weights.T @ weights, weights.shape[0]
        several = jnp.arange(self.relatives, 1, -1)

        def log_density(pairs: Array, ages: Array) -> Array:
            root = cholesky(self.covariance({"pairs": pairs, "ages": ages}))
            half = solve_root(root, scatter)
            square = jnp.trace(solve_root(root, half.T))
            return -0.5 * square - count * jnp.sum(jnp.log(jnp.diagonal(root)))

        def again(i: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            keys = jax.random.split(jax.random.fold_in(key, i), 3)
            first = (draws.uniform(keys[0]) * (self.relatives - 1)).astype(int)
            other = grown(keys[1], *now, first)
            accepted = jnp.log(draws.uniform(keys[2])) < log_density(*other) - log_density(*now)
            pairs, ages = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), other, now)
            return pairs, ages

        def span(i: Array, ages: Array) -> Array:
            apart = jnp.diff(ages, prepend=0.0)
            rate = 0.5 * several[i] * (several[i] - 1.0)

            def at(z: Array) -> Array:
                moved = ages + jnp.where(jnp.arange(len(ages)) >= i, jnp.exp(z) - apart[i], 0.0)
                return log_density(pairs, moved) - rate * jnp.exp(z) + z

            z, _ = slice_step(jax.random.fold_in(key, TIMES + i), at, jnp.log(apart[i]), jnp.ones(()))
            return ages + jnp.where(jnp.arange(len(ages)) >= i, jnp.exp(z) - apart[i], 0.0)

        pairs, ages = jax.lax.fori_loop(0, TIMES, again, (numbers["pairs"], numbers["ages"]))
        ages = jax.lax.fori_loop(0, self.relatives - 1, span, ages)
        return {**numbers, "pairs": pairs, "ages": ages}


def grown(key: Key, pairs: Array, ages: Array, first: Array) -> tuple[Array, Array]:
    """Kingman's coalescent from meeting `first` on, given those before: pairs and ages as of `Genealogy`."""
    meetings = len(ages)
    leaves = meetings + 1
    keys = jax.random.split(key)
    u, times = draws.uniform(keys[0], (meetings, 2)), draws.exponential(keys[1], (meetings,))

    def one(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        alive, pairs, ages = carry
        number = leaves - i
        rank = jnp.cumsum(alive) - 1
        low = (u[i, 0] * number).astype(int)
        high = (u[i, 1] * (number - 1)).astype(int)
        two = jnp.stack([low, high + (high >= low)])
        drawn = jnp.sort(jnp.argmax(alive & (rank == two[:, None]), axis=1))
        before = jnp.where(i > 0, ages[i - 1], 0.0)
        age = before + times[i] / (0.5 * number * (number - 1.0))
        pair, age = jnp.where(i >= first, drawn, pairs[i]), jnp.where(i >= first, age, ages[i])
        alive = jnp.asarray(alive).at[pair].set(False).at[leaves + i].set(True)
        return alive, jnp.asarray(pairs).at[i].set(pair), jnp.asarray(ages).at[i].set(age)

    alive = jnp.arange(2 * leaves - 1) < leaves
    _, pairs, ages = jax.lax.fori_loop(0, meetings, one, (alive, jnp.asarray(pairs), jnp.asarray(ages)))
    return pairs, ages


def time_together(pairs: Array, ages: Array) -> Array:
    """(leaves, leaves), as `shared_time`."""
    leaves = len(ages) + 1

    def one(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        below, age = carry
        left, right = below[pairs[i, 0]], below[pairs[i, 1]]
        meet = (left[:, None] & right[None, :]) | (right[:, None] & left[None, :])
        return jnp.asarray(below).at[leaves + i].set(left | right), jnp.where(meet, ages[i], age)

    below = jnp.zeros((2 * leaves - 1, leaves), bool).at[:leaves].set(jnp.eye(leaves, dtype=bool))
    _, age = jax.lax.fori_loop(0, leaves - 1, one, (below, jnp.zeros((leaves, leaves))))
    return ages[-1] - age
