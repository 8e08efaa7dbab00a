"""The menus of categories, a draw of the Indian buffet process with categories as its rows.

A new category has features of the others with the probabilities of the buffet, and new ones. Given which rows have a
category, each feature of its menu is drawn together with the rows that it is passed on to, which are summed out first:
rows that have the category are independent given all else. Features that are on one menu alone are born and die one at
a time, with values from the prior. Source: doshivelez2009correlated, meeds2007modeling.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Rows, totals
from .state import Row, State, Step, draws_of_features, put

BIRTHS = 3  # of features, or deaths, that are tried for each category in a sweep


class Newcomer(NamedTuple):
    """A category that no row has yet.

    Attributes:
        menu: (P,) booleans, features of other categories and new ones, in places that are empty.
        values: (P, dimensions) of all features, the new ones among them.
        fits: () whether there were places.
    """

    menu: Array
    values: Array
    fits: Array


class Working(NamedTuple):
    """A state in the course of a sweep over menus.

    Attributes:
        state: the state.
        parents: (rows, P) how many categories pass a feature on to a row.
        total: (rows, dimensions) what rows show of their features.
        fits, proposed, accepted: as of `Step`.
    """

    state: State
    parents: Array
    total: Array
    fits: Array
    proposed: Array
    accepted: Array


def fire(u: Array, gain: Array, withheld: Array) -> tuple[Array, Array]:
    """Log of the density with a feature offered over that without it, and whether it is passed on.

    A feature that is offered is passed on with probability `1 - withheld`, and then multiplies the density by
    `exp(gain)`: the ratio is `(1 - withheld) exp(gain) + withheld`.
    """
    on, off = jnp.log1p(-withheld) + gain, jnp.log(withheld)
    return jnp.logaddexp(on, off), u < jax.nn.sigmoid(on - off)


def poisson(u: Array, rate: Array, most: int) -> Array:
    """The Poisson number at this quantile, or `most` where it is not smaller."""
    j = np.arange(most)
    log_factorial = np.cumsum(np.log(np.maximum(j, 1)))
    return jnp.sum(u >= jnp.cumsum(jnp.exp(j * jnp.log(rate) - rate - log_factorial)))


def first(empty: Array) -> Array:
    """The first place that is."""
    return jnp.argmax(empty)


def one_of(u: Array, members: Array) -> Array:
    """The place of one of the members, each of them as likely."""
    rank = jnp.floor(u * jnp.sum(members)).astype(int)
    return jnp.argmax(members & (jnp.cumsum(members) == rank + 1))


def newcomer(key: Key, menu: Array, state: State, likelihood: Likelihood) -> Newcomer:
    """A category from the prior, given the menus (L, P) of others; places without a category have empty ones.

    `P(m_k = 1) = r_k / (L + 1)` for a feature on r_k of the L other menus, and Poisson(mass / (L + 1)) new features.
    """
    keys = jax.random.split(key)
    counts = jnp.sum(menu, axis=0)
    places, after = len(counts), _categories(state) + 1.0
    u = draws.uniform(keys[0], (1 + places,))
    number = poisson(u[0], state.prior["mass"] / after, places)
    return with_new(
        u[1:] * after < counts, counts > 0, number, draws_of_features(keys[1], state, likelihood), state.values
    )


def with_new(shared: Array, taken: Array, number: Array, fresh: Array, values: Array) -> Newcomer:
    """A menu of features that are shared and so many new ones, in the first places that are not taken."""
    rank = jnp.cumsum(~taken) - 1
    new = ~taken & (rank < number)
    table = jnp.where(new[:, None], fresh[jnp.maximum(rank, 0)], values)
    return Newcomer(shared | new, table, (number <= jnp.sum(~taken)) & (number < len(taken)))


def log_columns(menu: Array, categories: Array) -> Array:
    """Of menus of so many categories under their prior, what their columns say: `sum_k log B(m_k, L - m_k + 1)`."""
    counts = jnp.sum(menu, axis=0)
    logs = gammaln(jnp.maximum(counts, 1)) + gammaln(categories - counts + 1.0) - gammaln(categories + 1.0)
    return jnp.sum(logs, where=counts > 0)


def _categories(state: State) -> Array:
    """How many categories some row has."""
    return jnp.sum(jnp.any(state.choice, axis=0))


def draw_menus(key: Key, rows: Rows, state: State, likelihood: Likelihood, withheld: Array) -> Step:
    """All menus, one after the other, given which rows have which categories."""
    none = jnp.zeros((), int)
    parents = jnp.sum(state.fired, axis=1)
    begin = Working(state, parents, totals(state.point), jnp.bool_(True), none, none)
    used = jnp.any(state.choice, axis=0)

    def category(place: Array, now: Working) -> Working:
        keys = jax.random.split(jax.random.fold_in(key, place), 3)
        every, places = state.fired.shape[0], state.menu.shape[1]
        u = draws.uniform(keys[0], (places, 1 + every))
        also = draws.uniform(keys[1], (BIRTHS, 3 + every))
        fresh = likelihood.draw_values(keys[2], state.numbers, BIRTHS, state.values.shape[1])

        def feature(k: Array, now: Working) -> Working:
            return _draw_entry(u[k], place, k, rows, now, likelihood, withheld)

        def birth(i: Array, now: Working) -> Working:
            return _birth_or_death(also[i], fresh[i], place, rows, now, likelihood, withheld)

        # Features that no category has stay as they are: the loop ends at the last that some category has.
        end = jnp.max(jnp.where(jnp.any(now.state.menu, axis=0), jnp.arange(places) + 1, 0))
        now = jax.lax.fori_loop(0, jnp.where(used[place], end, 0), feature, now)
        return jax.lax.fori_loop(0, jnp.where(used[place], BIRTHS, 0), birth, now)

    end = jax.lax.fori_loop(0, len(used), category, begin)
    return Step(end.state, end.fits, end.proposed, end.accepted)


def _draw_entry(
    u: Array, place: Array, k: Array, rows: Rows, now: Working, likelihood: Likelihood, withheld: Array
) -> Working:
    """Whether a category has a feature that others have too, and to which of its rows it is passed on."""
    state, value = now.state, now.state.values[k]
    has, mine = state.choice[:, place], state.fired[:, place, k]
    elsewhere = now.parents[:, k] > mine
    without = now.total - (mine & ~elsewhere)[:, None] * value
    gain = _gain(rows, without, value, state, likelihood)
    ratio, fires = fire(u[1:], jnp.where(elsewhere, 0.0, gain), withheld)
    others = jnp.sum(state.menu[:, k]) - state.menu[place, k]
    odds = jnp.log(others) - jnp.log(_categories(state) - others) + jnp.sum(ratio, where=has)
    drawn = jnp.where(others > 0, jnp.log(u[0]) - jnp.log1p(-u[0]) < odds, state.menu[place, k])
    fired = has & drawn & fires
    return _with(now, place, k, drawn, fired, without + (fired & ~elsewhere)[:, None] * value)


def _birth_or_death(
    u: Array, fresh: Array, place: Array, rows: Rows, now: Working, likelihood: Likelihood, withheld: Array
) -> Working:
    """A feature that this category has alone is born, with values from the prior, or one of them dies.

    There are Poisson(mass / L) of them under the prior, so a birth to s + 1 is accepted by `mass / (L (s + 1))` times
    the ratio of densities, and a death from s + 1 by its reciprocal.
    """
    state = now.state
    counts, has = jnp.sum(state.menu, axis=0), state.choice[:, place]
    own = state.menu[place] & (counts == 1)
    number, log_rate = jnp.sum(own), jnp.log(state.prior["mass"]) - jnp.log(_categories(state))
    born = u[0] < 0.5
    k = jnp.where(born, first(counts == 0), one_of(u[1], own))
    value = jnp.where(born, fresh, state.values[k])
    without = now.total - (~born & (now.parents[:, k] > 0))[:, None] * value
    gain = _gain(rows, without, value, state, likelihood)
    ratio, fires = fire(u[3:], gain, withheld)
    ratio = jnp.sum(ratio, where=has) + log_rate
    ratio = jnp.where(born, ratio - jnp.log(number + 1.0), jnp.log(number) - ratio)
    accepted = jnp.log(u[2]) < ratio
    fired = jnp.where(born, has & fires, False)
    table = put(state.values, k, jnp.where(born, value, 0.0))
    moved = _with(now, place, k, born, fired, without + fired[:, None] * value)
    moved = moved._replace(state=moved.state._replace(values=table), fits=now.fits & (~born | jnp.any(counts == 0)))
    moved = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), moved, now)
    changes = born | (number > 0)
    return moved._replace(proposed=now.proposed + changes, accepted=now.accepted + accepted)


def _gain(rows: Rows, without: Array, value: Array, state: State, likelihood: Likelihood) -> Array:
    """(rows,) what the feature adds to the log density of each row."""
    row = Row(*rows)
    with_it = row.log_density(without + value, state.numbers, likelihood)
    return with_it - row.log_density(without, state.numbers, likelihood)


def _with(now: Working, place: Array, k: Array, on_menu: Array, fired: Array, total: Array) -> Working:
    """With another entry of a menu, passed on to these rows."""
    state = now.state
    parents = jnp.asarray(now.parents).at[:, k].add(fired.astype(int) - state.fired[:, place, k])
    changed = state._replace(
        menu=put(state.menu, (place, k), on_menu), fired=put(state.fired, np.s_[:, place, k], fired)
    )
    return now._replace(state=changed, parents=parents, total=total)
