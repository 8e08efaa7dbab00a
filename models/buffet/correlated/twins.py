"""Moves between one category and two of the same menu, of which the data know no difference.

A category that the prior made with a menu that another has takes rows of that menu one at a time, as they come, and
loses them so: two of them stay for long. A move chooses two rows. Of one category, this is divided between them: the
number of rows that go with the second is uniform, and which these are too, as it is under the Chinese restaurant. Of
two categories with the same menu, these become one. So a division is accepted at `concentration p(menus with the menu
twice) / p(menus)`, and the way back at its reciprocal. Source: jain2004split.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from .menus import first, log_columns
from .state import State, Step

PAIRS = 20  # of rows that are chosen in a sweep


def drawn_twins(key: Key, state: State) -> Step:
    """Some of these moves. For rows of one category each, menus by an Indian buffet process of one parameter."""
    none = jnp.zeros((), int)

    def one(i: Array, now: Step) -> Step:
        after = _twin(jax.random.fold_in(key, i), now.state)
        proposed, accepted = now.proposed + after.proposed, now.accepted + after.accepted
        return Step(after.state, now.fits & after.fits, proposed, accepted)

    end = jax.lax.fori_loop(0, PAIRS, one, Step(state, jnp.bool_(True), none, none))
    state = end.state
    return end._replace(state=state._replace(fired=state.choice[:, :, None] & state.menu))


def _twin(key: Key, state: State) -> Step:
    """One move; what is passed on to rows is left for later."""
    keys = jax.random.split(key)
    rows, places = state.choice.shape
    u = draws.uniform(keys[0], (4,))
    n = jnp.floor(u[0] * rows).astype(int)
    m = (n + 1 + jnp.floor(u[1] * (rows - 1)).astype(int)) % rows  # another row, where there are two
    labels = jnp.argmax(state.choice, axis=1)
    one, other = labels[n], labels[m]
    apart = one == other
    used = jnp.any(state.choice, axis=0)
    fresh = first(~used)
    # The first of two categories keeps its place, so that to divide and to unite are inverse up to names of places.
    between = (labels == one) & (jnp.arange(rows) != n) & (jnp.arange(rows) != m)
    size = jnp.floor(u[2] * (jnp.sum(between) + 1)).astype(int)
    order = jnp.argsort(jnp.where(between, draws.uniform(keys[1], (rows,)), 2.0))
    leaves = (jnp.zeros(rows, bool).at[order].set(jnp.arange(rows) < size)) | (jnp.arange(rows) == m)
    divided = jnp.where(leaves, fresh, labels)
    united = jnp.where(labels == other, one, labels)
    place = jnp.where(apart, fresh, other)
    menu = jnp.asarray(state.menu).at[place].set(state.menu[one] & apart)
    more, fewer = jnp.where(apart, menu, state.menu), jnp.where(apart, state.menu, menu)
    number = jnp.sum(used) + apart  # of categories where there are two
    ratio = jnp.log(state.prior["concentration"]) - state.prior["mass"] / number
    ratio += log_columns(more, number) - log_columns(fewer, number - 1)
    possible = (rows > 1) & (apart | jnp.all(state.menu[one] == state.menu[other]))
    accepted = possible & (jnp.log(u[3]) < jnp.where(apart, ratio, -ratio))
    choice = jnp.where(apart, divided, united)[:, None] == jnp.arange(places)
    found = state._replace(choice=choice, menu=menu)
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), found, state)
    return Step(state, ~(accepted & apart) | jnp.any(~used), possible.astype(int), accepted.astype(int))
