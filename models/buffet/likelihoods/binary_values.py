"""Values that are 0 or 1: each drawn given all others, those of one feature at once."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import DataError
from .contract import Likelihood, Numbers, Point, Rows, Table, Values, shares, totals
from .learned import Beta, beta_given, check_beta, draw_beta, first_beta


def update_binary(key: Key, likelihood: Likelihood, rows: Table, point: Point, share: Array) -> Point:
    """The point with all values drawn anew, of prior probability `share`; a feature's given those of all others.

    Given the others, the entries of dimension d depend on a_kd alone, so that all dimensions are drawn together.
    """
    u = draws.uniform(key, point.values.shape)
    threshold, had = jnp.log(u) - jnp.log1p(-u), shares(point)

    def one(place: Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        values, total = carry
        has = had[:, place][:, None]
        without = total - has * values[place]
        gain = likelihood.log_entry(rows.values, without + has, point.numbers) - likelihood.log_entry(
            rows.values, without, point.numbers
        )
        odds = jnp.log(share) - jnp.log1p(-share) + rows.total(jnp.where(rows.seen & (has > 0.0), gain, 0.0))
        drawn = (threshold[place] < odds).astype(values.dtype)
        return values.at[place].set(drawn), without + has * drawn

    values, _ = jax.lax.fori_loop(0, point.values.shape[0], one, (point.values, totals(point)))
    return point._replace(values=values)


@dataclasses.dataclass(frozen=True)
class BinaryValues(Likelihood):
    """Entries 0 and 1 by probabilities that are learned, and values `a_kd ~ Bernoulli(share)`; abstract.

    Every field is a probability, or the two parameters of the beta prior under which it is learned.
    """

    by_sums: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, given in self.given().items():
            check_beta(f"{type(self).__name__}({name}=)", given)

    def given(self) -> dict[str, Beta]:
        """The probabilities or priors, by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def draw_numbers(self, key: Key) -> Numbers:
        given = self.given()
        keys = jax.random.split(key, len(given))
        return {name: draw_beta(own, given[name]) for own, name in zip(keys, given, strict=True)}

    def first_numbers(self, rows: Rows) -> Numbers:
        return {name: first_beta(given) for name, given in self.given().items()}

    def draw_values(self, key: Key, numbers: Numbers, places: int, dimensions: int) -> Values:
        return (draws.uniform(key, (places, dimensions)) < numbers["share"]).astype(float)

    def draw_entry(self, key: Key, total: Array, numbers: Numbers) -> Array:
        return (draws.uniform(key, total.shape) < self.mean_entry(total, numbers)).astype(float)

    def share_given(self, key: Key, used: Array, values: Array) -> Array:
        """The share given the values of features, and which of them some row has."""
        ones = jnp.sum(jnp.where(used[:, None], values, 0.0))
        return beta_given(key, self.given()["share"], ones, jnp.sum(used) * values.shape[1] - ones)

    def check(self, values: Array, seen: Array) -> None:
        wrong = values[seen & (values != 0.0) & (values != 1.0)]
        if wrong.size:
            raise DataError(f"{type(self).__name__} is of entries 0 and 1; found {wrong[0]}.")
