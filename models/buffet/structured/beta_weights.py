"""Features of features with weights between 0 and 1: what a row has is caused by hidden reasons, each with a chance.

Rows have reasons by an Indian buffet process. Each reason of a row brings on each of its features with a chance of its
own, from a beta distribution about how common the feature is. Where these chances are weights and not bits, a sampler
can move them a little. The chain of samplers is that of any likelihood: the matrix is its data, the reasons are the
features, and minus the log of what a reason leaves off adds up.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import betaln

from ....engine.mcmc.keys import generator
from ....engine.sampling.conditionals.slices import slice_step
from ....engine.support.user_numbers import number
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import DataError, ModelError, UnsupportedError
from ..checks import binary, positive, whole
from ..likelihoods.contract import Likelihood, Numbers, Point, Rows, Table, Values, shares, totals
from ..prior import IndianBuffet
from ..sample import sample_restaurant

MOST = 16  # ones of a column whose subsets are added up
TINY = 1e-300  # as a weight: what it shows is below any chance
WIDTH = 4.0  # of the first interval of a slice, in log odds


class Caused(NamedTuple):
    """A draw.

    Attributes:
        matrix: (rows, features) booleans.
        causes: (rows, reasons) booleans.
        weights: (reasons, features) chances that a reason brings on a feature.
    """

    matrix: np.ndarray
    causes: np.ndarray
    weights: np.ndarray


@dataclasses.dataclass(frozen=True)
class BetaWeights:
    """`P(z_nk = 1) = 1 - (1 - leak) prod_j (1 - c_nj w_jk)` with reasons c from an Indian buffet process and weights
    `w_jk ~ Beta(strength share_k, strength (1 - share_k) + 1)`.

    Args:
        causes: the prior of which rows have which reasons.
        shares: strictly between 0 and 1, how common each feature is.
        strength: positive; large where all reasons have much the same chance of bringing on a feature.
        leak: at least 0, below 1; the chance of a feature without any reason.

    Raises:
        ModelError: parameters out of range.

    Source: courville2009infinite.
    """

    causes: IndianBuffet
    shares: tuple[float, ...]
    strength: float = 1.0
    leak: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", _shares(self.shares))
        object.__setattr__(self, "strength", positive("strength", self.strength))
        if not 0.0 <= number(self.leak) < 1.0:
            raise ModelError(f"The leak is a number of at least 0 and below 1; found {self.leak!r}.")

    @property
    def shapes(self) -> tuple[np.ndarray, np.ndarray]:
        """(features,) both parameters of the beta distributions of weights."""
        own = np.array(self.shares)
        return self.strength * own, self.strength * (1.0 - own) + 1.0

    def expected_ones(self, rows: int) -> float:
        """Expected number of ones, `rows sum_k [1 - (1 - leak) exp(-mass E w_k)]`, `E w_k = strength share_k /
        (strength + 1)`: of a row's Poisson number of reasons each fails to bring on k with chance 1 - E w_k."""
        mean = self.strength * np.array(self.shares) / (self.strength + 1.0)
        return whole("rows", rows) * float(np.sum(1.0 - (1.0 - self.leak) * np.exp(-self.causes.mass * mean)))

    def sample(self, rows: int, key: Any) -> Caused:
        """Reasons, weights and the matrix.

        Args:
            rows: how many rows.
            key: a key of `jax.random`.
        """
        keys = jax.random.split(key)
        causes, random = sample_restaurant(self.causes, rows, keys[0]), generator(keys[1])
        weights = random.beta(*self.shapes, (causes.shape[1], len(self.shares)))
        off = self._off(causes, weights)
        return Caused(random.random(off.shape) >= off, causes, weights)

    def log_probability(self, matrix: Any, causes: Any, weights: Any) -> float:
        """Log density of all three, with reasons in their left order and those that are alike in an order at random.

        Args:
            matrix: (rows, features) of zeros and ones.
            causes: (rows, reasons) of zeros and ones, none of them empty.
            weights: (reasons, features).

        Raises:
            DataError: other entries than 0 and 1, no rows, or shapes that do not agree.
        """
        z, c, w = self._checked(matrix), binary(causes), np.asarray(weights, dtype=np.float64)
        if w.shape != (c.shape[1], z.shape[1]) or len(c) != len(z) or not c.any(axis=0).all():
            raise DataError(
                f"Weights are of (reasons, features), reasons of (rows, reasons) and none of them empty; found the "
                f"shapes {w.shape} and {c.shape} beside a matrix of shape {z.shape}."
            )
        off = self._off(c, w)
        with np.errstate(divide="ignore"):
            entries = np.log(np.where(z, 1.0 - off, off)).sum()
        return self.causes.log_probability(c) + float(stats.beta.logpdf(w, *self.shapes).sum() + entries)

    def log_given_causes(self, matrix: Any, causes: Any) -> float:
        """Log probability of the matrix given the reasons, weights integrated out.

        The product over the ones of a column is multiplied out: over all subsets S of its ones, `(-1)^|S| (1 -
        leak)^(zeros + |S|) prod_j E (1 - w_jk)^(number of zeros and of S that have reason j)`.

        Args:
            matrix: (rows, features) of zeros and ones.
            causes: (rows, reasons) of zeros and ones.

        Raises:
            DataError: other entries than 0 and 1, no rows, or shapes that do not agree.
            UnsupportedError: a column of more than 16 ones.
        """
        z, c = self._checked(matrix), binary(causes)
        if len(c) != len(z):
            raise DataError(f"Reasons and matrix are of the same rows; found {len(c)} and {len(z)}.")
        if z.sum(axis=0).max(initial=0) > MOST:
            raise UnsupportedError(f"A column has {z.sum(axis=0).max()} ones; at most {MOST} are multiplied out.")
        found = 0.0
        for column, one, zero in zip(z.T, *self.shapes, strict=True):
            subsets = (np.arange(2 ** column.sum())[:, None] >> np.arange(column.sum())) & 1
            times = subsets @ c[column] + c[~column].sum(axis=0)
            left = np.exp((betaln(one, zero + times) - betaln(one, zero)).sum(axis=1))
            size = subsets.sum(axis=1)
            found += np.log(np.sum((-1.0) ** size * (1.0 - self.leak) ** (size + (~column).sum()) * left))
        return float(found)

    def _off(self, causes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return (1.0 - self.leak) * np.prod(1.0 - causes[:, :, None] * weights, axis=1)

    def _checked(self, matrix: Any) -> np.ndarray:
        values = binary(matrix)
        if values.shape[1] != len(self.shares):
            raise DataError(f"The prior has {len(self.shares)} features; found {values.shape[1]} columns.")
        return values


@dataclasses.dataclass(frozen=True)
class CausedBits(Likelihood):
    """The matrix of `BetaWeights` as data, its reasons as features: `P(x_nd = 0) = (1 - leak) exp(-sum_k z_nk a_kd)`
    with values `a_kd = -log(1 - weight_kd)`, `weight_kd ~ Beta(strength share_d, strength (1 - share_d) + 1)`.

    Args:
        shares: strictly between 0 and 1, one for each dimension of the data.
        strength: positive.
        leak: strictly between 0 and 1: without it a row without reasons could have no ones, and samplers could not
            begin there.

    Raises:
        ModelError: numbers out of range.

    Source: courville2009infinite.
    """

    shares: tuple[float, ...]
    strength: float = 1.0
    leak: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", _shares(self.shares))
        object.__setattr__(self, "strength", positive("strength", self.strength))
        if not 0.0 < number(self.leak) < 1.0:
            raise ModelError(f"CausedBits(leak=): give a number between 0 and 1; found {self.leak!r}.")

    def draw_numbers(self, key: Key) -> Numbers:
        return {}

    def first_numbers(self, rows: Rows) -> Numbers:
        return {}

    def draw_values(self, key: Key, numbers: Numbers, places: int, dimensions: int) -> Values:
        shapes = jnp.broadcast_to(jnp.stack(self._shapes(), axis=1), (places, dimensions, 2))
        one, zero = jnp.moveaxis(draws.log_gamma(key, shapes), 2, 0)
        return jnp.maximum(jax.nn.softplus(one - zero), TINY)

    def log_entry(self, value: Array, total: Array, numbers: Numbers) -> Array:
        log_zero = jnp.log1p(-self.leak) - total
        return jnp.where(value > 0.5, jnp.log(-jnp.expm1(log_zero)), log_zero)

    def draw_entry(self, key: Key, total: Array, numbers: Numbers) -> Array:
        return (draws.uniform(key, total.shape) < self.mean_entry(total, numbers)).astype(float)

    def mean_entry(self, total: Array, numbers: Numbers) -> Array:
        return 1.0 - (1.0 - self.leak) * jnp.exp(-total)

    def update(self, key: Key, rows: Table, point: Point) -> Point:
        keys, (first, second) = jax.random.split(key), self._shapes()
        (places, dimensions), had = point.values.shape, shares(point)

        def one(place: Array, carry: tuple) -> tuple:
            values, total = carry
            has = had[:, place][:, None]
            without = total - has * values[place]

            def log_density(odds: Array) -> Array:
                shown = without + has * jax.nn.softplus(odds)
                seen = rows.total(jnp.where(rows.seen, self.log_entry(rows.values, shown, point.numbers), 0.0))
                return seen + first * jax.nn.log_sigmoid(odds) + second * jax.nn.log_sigmoid(-odds)

            now = values[place]
            odds = now + jnp.log(-jnp.expm1(-now))
            drawn, _ = slice_step(jax.random.fold_in(keys[0], place), log_density, odds, jnp.full(dimensions, WIDTH))
            own = jnp.maximum(jax.nn.softplus(drawn), TINY)
            return values.at[place].set(own), without + has * own

        used = rows.total(point.active)[:, None] > 0
        start = jnp.where(used, point.values, self.draw_values(keys[1], point.numbers, places, dimensions))
        values, _ = jax.lax.fori_loop(0, places, one, (start, totals(point)))
        return point._replace(values=values)

    def check(self, values: Array, seen: Array) -> None:
        wrong = values[seen & (values != 0.0) & (values != 1.0)]
        if wrong.size:
            raise DataError(f"CausedBits is of entries 0 and 1; found {wrong[0]}.")
        if values.shape[1] != len(self.shares):
            raise DataError(f"CausedBits has {len(self.shares)} shares; found {values.shape[1]} columns of data.")

    def _shapes(self) -> tuple[Array, Array]:
        own = jnp.asarray(self.shares)
        return self.strength * own, self.strength * (1.0 - own) + 1.0


def _shares(shares: Any) -> tuple[float, ...]:
    """As floats; ModelError unless they are probabilities."""
    found = tuple(number(share) for share in shares)
    wrong = [share for share in found if not 0.0 < share < 1.0]
    if wrong or not found:
        raise ModelError(f"Shares are probabilities strictly between 0 and 1, one a feature; found {shares!r}.")
    return found
