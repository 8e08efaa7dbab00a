"""Several categories for each row: choices of rows and menus of categories are both Indian buffet processes.

A category that other rows have is taken or left by a row together with all features that it passes on. Those that a row
has alone are born and die one at a time, with their menus, new features and values from the prior.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.learned import Gamma, check_gamma, draw_gamma, first_gamma
from .framework import Framework, buffet, mass_given, mass_shape, menu_mass_given
from .menus import first, newcomer, one_of
from .state import Row, State, Step, put, row_of

BIRTHS = 2  # of categories, or deaths, that are tried for each row in a sweep


class Offer(NamedTuple):
    """A category offered to a row that does not have it.

    Attributes:
        menu: (P,) booleans.
        own: (P,) booleans, features that are on no other menu.
        on: (P,) booleans, features that the row has of its other categories.
        total: (dimensions,) what it shows of these.
        values: (P, dimensions).
        now: (P,) booleans, what the category passes on now, where the row has it.
        kept: () whether this stays, and the ratio is that of it.
        u: (P,) uniform numbers.
    """

    menu: Array
    own: Array
    on: Array
    total: Array
    values: Array
    now: Array
    kept: Array
    u: Array


class Answer(NamedTuple):
    """What the category passes on.

    Attributes:
        ratio: () log density of the row with the category and what it passes on, over that without, and over the
            probability of proposing to pass on these of its features.
        fired: (P,) booleans.
        total: (dimensions,).
    """

    ratio: Array
    fired: Array
    total: Array


@dataclasses.dataclass(frozen=True)
class IbpIbp(Framework):
    """Rows have categories by one Indian buffet process, categories have features by another.

    A row has a feature where one of its categories has it. N rows have Poisson(`category_mass H_N`) categories, and
    given L categories there are Poisson(`mass H_L`) features.

    Args:
        category_mass: the expected number of categories of a row; a positive number, or (shape, rate) of the gamma
            prior to learn it under.
        mass: the expected number of features of a category; the same.

    Raises:
        ModelError: numbers that are not positive.

    Source: doshivelez2009correlated.
    """

    category_mass: Gamma = (1.0, 1.0)
    mass: Gamma = (1.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("category_mass", "mass"):
            check_gamma(f"{type(self).__name__}({name}=)", getattr(self, name))

    def draw(self, key: Key) -> Numbers:
        keys = jax.random.split(key)
        return {"category_mass": draw_gamma(keys[0], self.category_mass), "mass": draw_gamma(keys[1], self.mass)}

    def first(self) -> Numbers:
        return {"category_mass": first_gamma(self.category_mass), "mass": first_gamma(self.mass)}

    def draw_choice(self, key: Key, prior: Numbers, rows: int) -> np.ndarray:
        return buffet(key, prior["category_mass"], rows)

    def answer(self, offer: Offer, row: Row, state: State, likelihood: Likelihood) -> Answer:
        """What an offered category passes on: all that is on its menu."""
        total = offer.total + (offer.menu & ~offer.on) @ offer.values
        gain = row.log_density(total, state.numbers, likelihood) - row.log_density(
            offer.total, state.numbers, likelihood
        )
        return Answer(gain, offer.menu, total)

    def draw_choices(self, key: Key, rows: Rows, state: State, likelihood: Likelihood) -> Step:
        none = jnp.zeros((), int)

        def one(n: Array, now: Step) -> Step:
            keys = jax.random.split(jax.random.fold_in(key, n))
            row = row_of(rows, n)
            state = draw_shared(keys[0], n, row, now.state, likelihood, self)

            def birth(i: Array, now: Step) -> Step:
                return birth_or_death(jax.random.fold_in(keys[1], i), n, row, now, likelihood, self)

            return jax.lax.fori_loop(0, BIRTHS, birth, now._replace(state=state))

        return jax.lax.fori_loop(0, rows.values.shape[0], one, Step(state, jnp.bool_(True), none, none))

    def update(self, key: Key, state: State) -> Numbers:
        rows = state.choice.shape[0]
        log_gamma = draws.log_gamma(
            key, jnp.stack([mass_shape(self.category_mass, state.choice), mass_shape(self.mass, state.menu)])
        )
        return {
            "category_mass": mass_given(self.category_mass, log_gamma[0], jnp.asarray(rows), rows),
            "mass": menu_mass_given(self.mass, log_gamma[1], state),
        }


def draw_shared(key: Key, n: Array, row: Row, state: State, likelihood: Likelihood, law: IbpIbp) -> State:
    """Whether a row has each of the categories that other rows have.

    The category is taken with probability `r / (1 + r)`, r the odds of the prior times the ratio of the answer: Gibbs'
    rule where all is passed on, and else Barker's, to which the proposal of what is passed on is a proposal.
    """
    rows = state.choice.shape[0]
    others = jnp.sum(state.choice, axis=0) - state.choice[n]
    odds = jnp.log(others) - jnp.log(rows - others)

    def one(place: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        choice, fired = carry
        u = draws.uniform(jax.random.fold_in(key, place), (1 + state.menu.shape[1],))
        rest = put(fired, place, False).any(axis=0)
        menu = state.menu[place]
        kept, nothing = choice[place], jnp.zeros_like(rest)
        offer = Offer(menu, nothing, rest, rest @ state.values, state.values, fired[place], kept, u[1:])
        answer = law.answer(offer, row, state, likelihood)
        drawn = jnp.log(u[0]) - jnp.log1p(-u[0]) < odds[place] + answer.ratio
        drawn = jnp.where(others[place] > 0, drawn, choice[place])
        return put(choice, place, drawn), put(fired, place, drawn & answer.fired)

    choice, fired = jax.lax.fori_loop(0, len(odds), one, (state.choice[n], state.fired[n]))
    return state._replace(choice=put(state.choice, n, choice), fired=put(state.fired, n, fired))


def birth_or_death(key: Key, n: Array, row: Row, now: Step, likelihood: Likelihood, law: IbpIbp) -> Step:
    """A category that this row has alone is born, with its menu from the prior, or one of them dies.

    There are Poisson(category_mass / rows) of them under the prior, so a birth to s + 1 is accepted by
    `category_mass / (rows (s + 1))` times the ratio of the answer, and a death from s + 1 by its reciprocal.
    """
    keys = jax.random.split(key)
    state = now.state
    u = draws.uniform(keys[0], (3 + state.menu.shape[1],))
    owners = jnp.sum(state.choice, axis=0)
    alone = state.choice[n] & (owners == 1)
    number = jnp.sum(alone)
    born = u[0] < 0.5
    at = jnp.where(born, first(owners == 0), one_of(u[1], alone))
    fresh = newcomer(keys[1], state.menu, state, likelihood)
    menu = jnp.where(born, fresh.menu, state.menu[at])
    values = jnp.where(born, fresh.values, state.values)
    others = put(state.menu, at, jnp.where(born, state.menu[at], False)).any(axis=0)
    rest = put(state.fired[n], at, jnp.where(born, state.fired[n, at], False)).any(axis=0)
    offer = Offer(menu, menu & ~others, rest, rest @ values, values, state.fired[n, at], ~born, u[3:])
    answer = law.answer(offer, row, state, likelihood)
    ratio = answer.ratio + jnp.log(state.prior["category_mass"] / state.choice.shape[0])
    ratio = jnp.where(born, ratio - jnp.log(number + 1.0), jnp.log(number) - ratio)
    accepted = jnp.log(u[2]) < ratio
    moved = state._replace(
        choice=put(state.choice, (n, at), born),
        menu=put(state.menu, at, menu & born),
        fired=put(state.fired, (n, at), answer.fired & born),
        values=values,
    )
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), moved, state)
    fits = ~accepted | ~born | ((owners == 0).any() & fresh.fits)
    changes = born | (number > 0)
    return Step(state, now.fits & fits, now.proposed + changes, now.accepted + accepted)
