"""What mean field asks of a likelihood: updates of the entries of one feature, of its values, and expectations."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, TypeAlias

import jax.numpy as jnp
from jaxtyping import Float

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Numbers, Rows, Values

Probabilities = Float[Array, "row place"]
Belief: TypeAlias = Any  # a named tuple of arrays, of a field: about values and the likelihood's numbers


@dataclasses.dataclass(frozen=True)
class Field(abc.ABC):
    """Independent beliefs for a likelihood; abstract. Missing cells hold zeros.

    `power` is what the likelihood is raised to: less than 1 while starts are tempered.

    Args:
        likelihood: what rows show of their features.
        complete: whether all cells are seen, which is faster to compute.
    """

    likelihood: Likelihood
    complete: bool

    @abc.abstractmethod
    def start(self, key: Key, rows: Rows, places: int, numbers: Numbers) -> Belief:
        """Values near those of rows at random: of features of a size that the data have."""

    @abc.abstractmethod
    def entries(
        self, rows: Rows, probabilities: Probabilities, belief: Belief, odds: Array, power: Array, places: Array
    ) -> Probabilities:
        """Beliefs of which rows have each of these features, one feature after the other given all else.

        Args:
            rows: the data.
            probabilities: (rows, places) so far.
            belief: about values and numbers.
            odds: (places,) log odds of the prior.
            power: () of the likelihood.
            places: which features.
        """

    @abc.abstractmethod
    def values(self, rows: Rows, probabilities: Probabilities, belief: Belief, power: Array, places: Array) -> Belief:
        """With the values of each of these features given all else, one feature after the other."""

    @abc.abstractmethod
    def numbers(self, rows: Rows, probabilities: Probabilities, belief: Belief, power: Array) -> Belief:
        """With the likelihood's numbers given all else."""

    @abc.abstractmethod
    def fit(self, rows: Rows, probabilities: Probabilities, belief: Belief) -> Array:
        """Expected log likelihood of the cells that are seen."""

    @abc.abstractmethod
    def divergence(self, belief: Belief) -> Array:
        """Of values and numbers from their prior."""

    @abc.abstractmethod
    def reordered(self, belief: Belief, order: Array) -> Belief:
        """With the features in another order."""

    @abc.abstractmethod
    def moments(self, belief: Belief) -> tuple[Values, Values]:
        """Means and sds of values."""

    @abc.abstractmethod
    def draw(self, key: Key, belief: Belief) -> tuple[Values, Numbers]:
        """Values and numbers."""

    @abc.abstractmethod
    def expected(self, probabilities: Probabilities, belief: Belief) -> Array:
        """(rows, dimensions), the expected entries."""


def seen_by(weights: Array, rows: Rows, complete: bool) -> Array:
    """(places, dimensions), sums over the rows that show a dimension of their (rows, places) weights."""
    if complete:
        return jnp.broadcast_to(jnp.sum(weights, axis=0)[:, None], (weights.shape[1], rows.values.shape[1]))
    return weights.T @ rows.seen.astype(weights.dtype)


def some_rows(key: Key, rows: Rows, places: int) -> Values:
    """(places, dimensions), rows chosen at random."""
    count = rows.values.shape[0]
    return jnp.asarray(rows.values)[jnp.minimum((draws.uniform(key, (places,)) * count).astype(int), count - 1)]
