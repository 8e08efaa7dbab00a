"""What samplers of a binary matrix know of a likelihood, and a likelihood of them.

A row n with the features z_n shows the total `t_nd = sum_k z_nk s_nk a_kd` of their values a, each times a weight s of
its own where the likelihood has weights; given totals all entries are independent. So a sampler that changes one z adds
or takes away one row of values, and asks for the densities of a row's entries: it is written once for all likelihoods.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, NamedTuple, Protocol

import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....factors.arrays import Array, Key

Numbers = dict[str, Array]  # of a likelihood: what all entries share, such as the precision of its noise
Values = Float[Array, "place dimension"]
Active = Bool[Array, "row place"]
Weights = Float[Array, "row place"]  # (0, 0) where a likelihood has none


class Rows(NamedTuple):
    """The data.

    Attributes:
        values: (rows, dimensions), any number where not seen.
        seen: (rows, dimensions) booleans.
    """

    values: Float[Array, "row dimension"]
    seen: Bool[Array, "row dimension"]

    def total(self, array: Array) -> Array:
        """The sum over rows of what there is for each row."""
        return jnp.sum(array, axis=0)


class WholeRows(Rows):
    """Rows whose entries are all seen, which is known before anything is compiled: sweeps have no steps for others."""

    __slots__ = ()


class Table(Protocol):
    """What is drawn given all rows reads: `Rows`, or the own ones of rows in shards, whose sums are over all shards."""

    @property
    def values(self) -> Array:
        """As of `Rows`."""
        ...

    @property
    def seen(self) -> Array:
        """As of `Rows`."""
        ...

    def total(self, array: Array) -> Array:
        """The sum over all rows of what there is for each row, here and elsewhere."""
        ...


class Point(NamedTuple):
    """What a likelihood is given to draw from: a state without the prior's own numbers."""

    active: Active
    values: Values
    weights: Weights
    numbers: Numbers


def shares(point: Point) -> Array:
    """(rows, places), how much of each feature rows have: ones, or their weights, or how many times they have it."""
    return point.active * point.weights if point.weights.size else point.active.astype(point.values.dtype)


def totals(point: Point) -> Array:
    """(rows, dimensions), what rows show of their features."""
    return shares(point) @ point.values


@dataclasses.dataclass(frozen=True)
class Likelihood(abc.ABC):
    """What rows show of their features; abstract. Those of equal arguments are equal, and share sweeps.

    Draws for places come from `factors.draws` with the place first, so that more places change none of them. A place
    that no row has is drawn from its prior.
    """

    weighted: ClassVar[bool] = False  # whether each row has its own weight for each feature
    apart: ClassVar[bool] = True  # whether these are independent, and those of what a row has not are drawn anew
    by_sums: ClassVar[bool] = False  # whether `update` reads of rows sums by `rows.total` alone: rows may be in shards

    @abc.abstractmethod
    def draw_numbers(self, key: Key) -> Numbers:
        """From their prior; a number that is given stays."""

    @abc.abstractmethod
    def first_numbers(self, rows: Rows) -> Numbers:
        """Where chains begin, of the size of the data."""

    @abc.abstractmethod
    def draw_values(self, key: Key, numbers: Numbers, places: int, dimensions: int) -> Values:
        """Of so many features, from their prior."""

    def draw_weights(self, key: Key, numbers: Numbers, shape: tuple[int, int]) -> Weights:
        """(places, rows) from their prior: the place first, as of all draws. Only where `weighted`."""
        raise NotImplementedError

    @abc.abstractmethod
    def log_entry(self, value: Array, total: Array, numbers: Numbers) -> Array:
        """Log density of entries given their totals, of any shape."""

    @abc.abstractmethod
    def draw_entry(self, key: Key, total: Array, numbers: Numbers) -> Array:
        """Entries given their totals."""

    @abc.abstractmethod
    def mean_entry(self, total: Array, numbers: Numbers) -> Array:
        """The expected entry given its total."""

    @abc.abstractmethod
    def update(self, key: Key, rows: Table, point: Point) -> Point:
        """Values, weights and numbers drawn given all else, by steps that leave their conditional law as it is."""

    @abc.abstractmethod
    def check(self, values: Array, seen: Array) -> None:
        """DataError for entries that it gives no probability."""
