"""Features that occur together: rows have categories, categories have features.

`Z = f(C M)` with C (rows x categories) and M (categories x features). With `f(0) = 0` finitely many rows have finitely
many features, as they have finitely many categories, and each of these finitely many features. A model states the law
of C, that of M, and f; the sweep is the same for all: choices of rows, menus of categories, then values and all
numbers given the features that rows have. Source: doshivelez2009correlated.
"""

from __future__ import annotations

import abc
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.learned import Gamma
from ..prior import IndianBuffet
from ..sample import sample_restaurant
from .menus import draw_menus
from .state import State, Step, cleared


@dataclasses.dataclass(frozen=True)
class Framework(abc.ABC):
    """The law of choices and menus; abstract."""

    @abc.abstractmethod
    def draw(self, key: Key) -> Numbers:
        """Its own numbers from their priors."""

    @abc.abstractmethod
    def first(self) -> Numbers:
        """Where chains begin: the numbers given, or the means of their priors."""

    @abc.abstractmethod
    def draw_choices(self, key: Key, rows: Rows, state: State, likelihood: Likelihood) -> Step:
        """The categories of all rows, one row after the other."""

    @abc.abstractmethod
    def update(self, key: Key, state: State) -> Numbers:
        """Its own numbers given choices and menus."""

    @abc.abstractmethod
    def draw_choice(self, key: Key, prior: Numbers, rows: int) -> np.ndarray:
        """(rows, categories) booleans from their prior, none of the columns empty."""

    def draw_menu(self, key: Key, prior: Numbers, categories: int) -> np.ndarray:
        """(categories, features) booleans from their prior, none of the columns empty."""
        return buffet(key, prior["mass"], categories)

    def generate(self, key: Key, prior: Numbers, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Choice, menu and what is passed on, (rows, categories, features) booleans, given numbers of the prior."""
        keys = jax.random.split(key)
        choice = self.draw_choice(keys[0], prior, rows)
        menu = self.draw_menu(keys[1], prior, choice.shape[1])
        return choice, menu, choice[:, :, None] & menu

    def taken_over(self, start: State) -> State:
        """A state of another model as one of this: all that is on menus is passed on, and its own numbers are those
        that chains begin with, but for those that both models learn.

        Raises:
            DataError: choices or menus that are not possible under this law.
        """
        first = doubles(self.first())
        learned = {name for name in first if isinstance(getattr(self, name), tuple)}
        prior = first | {name: value for name, value in start.prior.items() if name in learned}
        return start._replace(fired=start.choice[:, :, None] & start.menu, prior=prior)

    def draw_menus(self, key: Key, rows: Rows, state: State, likelihood: Likelihood) -> Step:
        """The features of all categories, one category after the other."""
        return draw_menus(key, rows, state, likelihood, self.withheld_of(state))

    def withheld_of(self, state: State) -> Array:
        """The probability that a category keeps a feature of its menu from a row that has the category."""
        return jnp.zeros(())


def sweep(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Framework) -> Step:
    """One sweep over choices, menus, values, the numbers of the likelihood and those of the prior."""
    keys = jax.random.split(key, 4)
    choices = law.draw_choices(keys[0], rows, state, likelihood)
    menus = law.draw_menus(keys[1], rows, choices.state, likelihood)
    point = likelihood.update(keys[2], rows, menus.state.point)
    state = cleared(menus.state._replace(values=point.values, numbers=point.numbers))
    state = state._replace(prior=law.update(keys[3], state))
    fits, proposed = choices.fits & menus.fits, choices.proposed + menus.proposed
    return Step(state, fits, proposed, choices.accepted + menus.accepted)


def doubles(numbers: Numbers) -> Numbers:
    """The numbers on the host, in double precision also outside its scope."""
    return {name: np.asarray(value, float) for name, value in numbers.items()}


def buffet(key: Key, mass: Array, rows: int) -> np.ndarray:
    """(rows, columns) booleans of an Indian buffet process; of no rows there are no columns."""
    return sample_restaurant(IndianBuffet(float(mass)), rows, key) if rows else np.zeros((0, 0), bool)


def mass_shape(given: Gamma, table: Array) -> Array:
    """Of the gamma law of a buffet's mass given its table, that of the prior plus the number of columns."""
    return jnp.sum(jnp.any(table, axis=0)) + (given[0] if isinstance(given, tuple) else 1.0)


def mass_given(given: Gamma, log_gamma: Array, rows: Array, most: int) -> Array:
    """The mass of a buffet of so many rows, at most `most`, or the one given.

    `mass | K ~ Gamma(shape + K, rate + H_rows)`, of which `log_gamma` is the logarithm at a rate of 1.
    """
    if not isinstance(given, tuple):
        return jnp.asarray(float(given))
    i = jnp.arange(most)
    return jnp.exp(log_gamma) / (given[1] + jnp.sum(jnp.where(i < rows, 1.0 / (1.0 + i), 0.0)))


def menu_mass_given(given: Gamma, log_gamma: Array, state: State) -> Array:
    """That of the menus, whose rows are the categories that some row has."""
    return mass_given(given, log_gamma, jnp.sum(jnp.any(state.choice, axis=0)), state.choice.shape[1])
