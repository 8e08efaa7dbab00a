"""One category for each row: a Chinese restaurant whose tables each have a menu.

Rows move between categories by Neal's eighth algorithm: beside the categories that other rows have, a few auxiliary
ones from the prior, each with its menu, new features and their values, wait to be taken. The category of a row alone in
it is one of these. Source: neal2000markov, doshivelez2009correlated.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.mcmc.keys import generator
from ....engine.sampling.conditionals.slices import slice_step
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import DataError
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.learned import Gamma, check_gamma, draw_gamma, first_gamma
from .framework import Framework, mass_shape, menu_mass_given
from .menus import Newcomer, first, newcomer, with_new
from .shears import sheared
from .state import State, Step, draws_of_features, put, row_of
from .twins import drawn_twins

WAITING = 3  # auxiliary categories


@dataclasses.dataclass(frozen=True)
class Partition(Framework):
    """The Dirichlet process mixture: one category for each row, one feature for each category.

    Row i has the category of each of the rows before it with probability `1 / (concentration + i - 1)`, else a new one.

    Args:
        concentration: a positive number, or (shape, rate) of the gamma prior under which it is learned.

    Raises:
        ModelError: numbers that are not positive.

    Source: neal2000markov.
    """

    concentration: Gamma = (1.0, 1.0)

    def __post_init__(self) -> None:
        check_gamma(f"{type(self).__name__}(concentration=)", self.concentration)

    def draw(self, key: Key) -> Numbers:
        return {"concentration": draw_gamma(key, self.concentration)}

    def first(self) -> Numbers:
        return {"concentration": first_gamma(self.concentration)}

    def draw_choice(self, key: Key, prior: Numbers, rows: int) -> np.ndarray:
        return restaurant(generator(key), float(prior["concentration"]), rows)

    def draw_menu(self, key: Key, prior: Numbers, categories: int) -> np.ndarray:
        return np.eye(categories, dtype=bool)

    def taken_over(self, start: State) -> State:
        self.check_start(start)
        return super().taken_over(start)

    def check_start(self, start: State) -> None:
        """DataError for rows of several categories or of none, and menus that are not possible."""
        _check_choice(type(self).__name__, start)
        used, features = start.choice.any(axis=0), start.menu.any(axis=0)
        if not ((start.menu.sum(axis=1) == used).all() and (start.menu.sum(axis=0) == features).all()):
            raise DataError(
                "A partition has one feature for each category; found menus of more, of none or in common. Start from "
                "a state of Partition, or use DpIbp."
            )

    def newcomer(self, key: Key, menu: Array, state: State, likelihood: Likelihood) -> Newcomer:
        """A category from the prior, given the menus of others; those of places that no other row has are empty."""
        taken = jnp.any(menu, axis=0)
        fresh = draws_of_features(key, state, likelihood)
        return with_new(jnp.zeros_like(taken), taken, jnp.ones((), int), fresh, state.values)

    def draw_choices(self, key: Key, rows: Rows, state: State, likelihood: Likelihood) -> Step:
        def one(n: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            state, fits = carry
            state, also = move_row(jax.random.fold_in(key, n), n, rows, state, likelihood, self)
            return state, fits & also

        # The features of rows are those of their categories, and are written down when all rows have theirs.
        state, fits = jax.lax.fori_loop(0, rows.values.shape[0], one, (state, jnp.bool_(True)))
        none = jnp.zeros((), int)
        return Step(state._replace(fired=state.choice[:, :, None] & state.menu), fits, none, none)

    def draw_menus(self, key: Key, rows: Rows, state: State, likelihood: Likelihood) -> Step:
        none = jnp.zeros((), int)
        return Step(state, jnp.bool_(True), none, none)

    def update(self, key: Key, state: State) -> Numbers:
        return {"concentration": draw_concentration(key, self.concentration, state)}


@dataclasses.dataclass(frozen=True)
class DpIbp(Partition):
    """One category for each row, and the features of categories by an Indian buffet process.

    Given L categories there are Poisson(`mass H_L`) features.

    Args:
        concentration: of the categories; a positive number, or (shape, rate) of the gamma prior to learn it under.
        mass: of the features of a category, their expected number; the same.

    Raises:
        ModelError: numbers that are not positive.

    Source: doshivelez2009correlated.
    """

    mass: Gamma = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gamma("DpIbp(mass=)", self.mass)

    def draw(self, key: Key) -> Numbers:
        keys = jax.random.split(key)
        return super().draw(keys[0]) | {"mass": draw_gamma(keys[1], self.mass)}

    def first(self) -> Numbers:
        return super().first() | {"mass": first_gamma(self.mass)}

    def draw_menu(self, key: Key, prior: Numbers, categories: int) -> np.ndarray:
        return Framework.draw_menu(self, key, prior, categories)

    def check_start(self, start: State) -> None:
        _check_choice("DpIbp", start)

    def newcomer(self, key: Key, menu: Array, state: State, likelihood: Likelihood) -> Newcomer:
        return newcomer(key, menu, state, likelihood)

    def draw_menus(self, key: Key, rows: Rows, state: State, likelihood: Likelihood) -> Step:
        keys = jax.random.split(key, 3)
        menus = Framework.draw_menus(self, keys[0], rows, state, likelihood)
        moved = sheared(keys[1], rows, menus.state, likelihood)
        twins = drawn_twins(keys[2], moved.state)
        fits = menus.fits & moved.fits & twins.fits
        proposed = menus.proposed + moved.proposed + twins.proposed
        return Step(twins.state, fits, proposed, menus.accepted + moved.accepted + twins.accepted)

    def update(self, key: Key, state: State) -> Numbers:
        keys = jax.random.split(key)
        log_gamma = draws.log_gamma(keys[1], mass_shape(self.mass, state.menu)[None])[0]
        mass = menu_mass_given(self.mass, log_gamma, state)
        return super().update(keys[0], state) | {"mass": mass}


def restaurant(random: np.random.Generator, concentration: float, rows: int) -> np.ndarray:
    """(rows, categories) booleans, the categories in the order in which they appear."""
    labels = np.zeros(rows, int)
    alone = random.random(rows) * (concentration + np.arange(rows)) < concentration
    other = np.floor(random.random(rows) * np.arange(rows)).astype(int)
    own = np.cumsum(alone) - 1
    for n in range(rows):
        labels[n] = own[n] if alone[n] else labels[other[n]]
    return np.eye(own[-1] + 1, dtype=bool)[labels]


def _check_choice(model: str, start: State) -> None:
    number = start.choice.sum(axis=1)
    if (number != 1).any():
        n = int(np.flatnonzero(number != 1)[0])
        raise DataError(
            f"Under {model} each row has one category; in the start row {n} has {number[n]}. Start from a state of "
            "Partition or DpIbp, or use IbpIbp."
        )


def move_row(
    key: Key, n: Array, rows: Rows, state: State, likelihood: Likelihood, law: Partition
) -> tuple[State, Array]:
    """The state with the category of one row drawn given all others, and whether it fits."""
    keys = jax.random.split(key)
    row, now = row_of(rows, n), first(state.choice[n])
    left = state._replace(choice=put(state.choice, n, False))
    owners = jnp.sum(left.choice, axis=0)
    alone = owners[now] == 0
    menu = state.menu & (owners > 0)[:, None]
    waiting = jax.vmap(lambda key: law.newcomer(key, menu, left, likelihood))(jax.random.split(keys[0], WAITING))
    # The category of a row that is alone in it is the first of those that wait.
    own = Newcomer(state.menu[now], state.values, jnp.bool_(True))
    waiting = jax.tree.map(lambda all, one: put(all, 0, jnp.where(alone, one, all[0])), waiting, own)
    total = jnp.concatenate([jnp.einsum("wk,wkd->wd", waiting.menu * 1.0, waiting.values), menu @ state.values])
    prior = jnp.concatenate([jnp.full(WAITING, state.prior["concentration"] / WAITING), owners])
    chosen = draws.categorical(keys[1], jnp.log(prior) + row.log_density(total, state.numbers, likelihood))

    new = chosen < WAITING
    taken = jax.tree.map(lambda all: all[jnp.minimum(chosen, WAITING - 1)], waiting)
    at = jnp.where(new, first(owners == 0), chosen - WAITING)
    menu = put(menu, at, jnp.where(new, taken.menu, menu[at]))
    values = jnp.where(new, taken.values, state.values)
    found = left._replace(choice=put(left.choice, (n, at), True), menu=menu, values=values)
    return found, jnp.all(~new | ((owners == 0).any() & taken.fits))


def draw_concentration(key: Key, given: Gamma, state: State) -> Array:
    """The concentration given the categories, by a transition of a slice sampler in its logarithm; or the one given.

    The density of a concentration c is `c^L prod_i 1 / (c + i)` over i = 0 .. rows - 1, times its prior.
    """
    if not isinstance(given, tuple):
        return jnp.asarray(float(given))
    shape, rate = given
    number, i = jnp.sum(jnp.any(state.choice, axis=0)), jnp.arange(state.choice.shape[0])

    def log_density(z: Array) -> Array:
        c = jnp.exp(z)
        return number * z - jnp.sum(jnp.log(c + i)) + shape * z - rate * c

    z, _ = slice_step(key, log_density, jnp.log(state.prior["concentration"]), jnp.ones(()))
    return jnp.exp(z)
