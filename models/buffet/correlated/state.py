"""What samplers of correlated features work on: arrays only, padded in the numbers of categories and of features."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....factors.arrays import Array, Key, Numeric
from ..likelihoods.contract import Likelihood, Numbers, Point, Rows, Values


class State(NamedTuple):
    """One point of a chain, padded to L places for categories and P for features.

    A row has categories, a category has a menu of features, and a row has a feature where one of its categories has it
    on the menu and passes it on. A category that no row has is empty, its menu too; a feature that is on no menu is
    empty, and its values are zeros.

    Attributes:
        choice: (rows, L) booleans, categories of rows.
        menu: (L, P) booleans, features of categories.
        fired: (rows, L, P) booleans, whether a category of the row passes this feature of its menu on to it: false
            where the row lacks the category or the category the feature.
        values: (P, dimensions) of features.
        numbers: of the likelihood.
        prior: numbers of the prior of choices and menus.
    """

    choice: Bool[Array, "row category"]
    menu: Bool[Array, "category place"]
    fired: Bool[Array, "row category place"]
    values: Values
    numbers: Numbers
    prior: Numbers

    @property
    def active(self) -> Array:
        """(rows, P) booleans, features of rows."""
        return self.fired.sum(axis=1) > 0

    @property
    def point(self) -> Point:
        """What likelihoods are given."""
        return Point(self.active, self.values, jnp.zeros((0, 0)), self.numbers)


class Step(NamedTuple):
    """What became of a state.

    Attributes:
        state: the new state; meaningless where it did not fit.
        fits: () whether there were places for all categories and features.
        proposed, accepted: () births and deaths.
    """

    state: State
    fits: Bool[Array, ""]
    proposed: Array
    accepted: Array


class Row(NamedTuple):
    """A row's data, and the law of its entries.

    Attributes:
        value, seen: (dimensions,) or (rows, dimensions).
    """

    value: Float[Array, "*rows dimension"]
    seen: Bool[Array, "*rows dimension"]

    def log_density(self, total: Array, numbers: Numbers, likelihood: Likelihood) -> Array:
        """Of each row's entries, were these their totals."""
        return jnp.sum(likelihood.log_entry(self.value, total, numbers), axis=-1, where=self.seen)


def put(array: Array, index: Any, value: Numeric) -> jax.Array:
    """The array with another value there."""
    return jnp.asarray(array).at[index].set(value)


def row_of(rows: Rows, n: Array) -> Row:
    """One of the rows."""
    return Row(rows.values[n], rows.seen[n])


def cleared(state: State) -> State:
    """With zeros as the values in all places of features that are on no menu."""
    used = jnp.any(state.menu, axis=0)
    return state._replace(values=jnp.where(used[:, None], state.values, 0.0))


def draws_of_features(key: Key, state: State, likelihood: Likelihood) -> Values:
    """(P, dimensions) values from their prior."""
    places, dimensions = state.values.shape
    return likelihood.draw_values(key, state.numbers, places, dimensions)
