"""Booleans: what the features of a row call for is seen but for misses, and other things are seen by mistake."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from .binary_values import BinaryValues, update_binary
from .contract import Numbers, Point, Table, totals
from .learned import Beta, beta_given


@dataclasses.dataclass(frozen=True)
class Detection(BinaryValues):
    """`P(x_nd = 1) = 1 - miss` where a feature of row n has `a_kd = 1`, else `false`; `a_kd ~ Bernoulli(share)`.

    The features are latent, and entries are seen through them: with one feature for each entry, as the formula can be
    read too, there would be nothing to share among entries. Unlike in a noisy-or, two reasons are worth no more than
    one.

    Args:
        miss: the probability that what is there is not seen, between 0 and 1; or the parameters of the beta prior under
            which it is learned.
        false: the probability that what is not there is seen; the same.
        share: the probability that a feature calls for an entry; the same.

    Raises:
        ModelError: numbers out of range.

    Source: doshivelez2009correlated.
    """

    miss: Beta = (1.0, 9.0)
    false: Beta = (1.0, 9.0)
    share: Beta = (1.0, 1.0)

    def log_entry(self, value: Array, total: Array, numbers: Numbers) -> Array:
        one = self.mean_entry(total, numbers)
        return jnp.where(value > 0.5, jnp.log(one), jnp.log1p(-one))

    def mean_entry(self, total: Array, numbers: Numbers) -> Array:
        return jnp.where(total > 0.5, 1.0 - numbers["miss"], numbers["false"])

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys = jax.random.split(key, 4)
        there, one = totals(point) > 0.5, rows.values > 0.5

        def count(which: Array) -> Array:
            return jnp.sum(rows.total(which & rows.seen))

        numbers = {
            "miss": beta_given(keys[0], self.miss, count(there & ~one), count(there & one)),
            "false": beta_given(keys[1], self.false, count(~there & one), count(~there & ~one)),
            "share": self.share_given(keys[2], rows.total(point.active) > 0, point.values),
        }
        return update_binary(keys[3], self, rows, point._replace(numbers=numbers), numbers["share"])
