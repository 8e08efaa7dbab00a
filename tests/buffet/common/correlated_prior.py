"""Draws of choices, menus and what is passed on from their prior, and Geweke's test of samplers of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from cavity.models.buffet.correlated.state import State
from cavity.models.buffet.likelihoods.contract import Rows, totals


def restaurant(random, concentration, rows):
    """(rows, categories): each row has the category of another, or a new one."""
    labels = [0]
    for n in range(1, rows):
        alone = random.random() * (concentration + n) < concentration
        labels.append(max(labels) + 1 if alone else labels[random.integers(n)])
    return np.eye(max(labels) + 1, dtype=bool)[labels]


def buffet(random, mass, rows):
    """(rows, columns): columns of those before, and new ones."""
    table = np.zeros((rows, 0), bool)
    for n in range(rows):
        table[n] = random.random(table.shape[1]) * (n + 1) < table.sum(axis=0)
        new = np.zeros((rows, random.poisson(mass / (n + 1))), bool)
        new[n] = True
        table = np.concatenate([table, new], axis=1)
    return table


def structure(random, numbers, rows):
    """Choice, menu and fired of one draw given the numbers of the prior, by which of them there are."""
    if "concentration" in numbers:
        choice = restaurant(random, numbers["concentration"], rows)
    else:
        choice = buffet(random, numbers["category_mass"], rows)
    categories = choice.shape[1]
    menu = buffet(random, numbers["mass"], categories) if "mass" in numbers else np.eye(categories, dtype=bool)
    fired = choice[:, :, None] & menu
    return choice, menu, fired & (random.random(fired.shape) >= numbers.get("withheld", 0.0))


def padded(arrays, categories, places):
    """With places for so many categories and features."""
    choice, menu, fired = arrays
    more, also = categories - menu.shape[0], places - menu.shape[1]
    assert min(more, also) >= 0, "more than places: give more places, or smaller masses"
    return (
        np.pad(choice, [(0, 0), (0, more)]),
        np.pad(menu, [(0, more), (0, also)]),
        np.pad(fired, [(0, 0), (0, more), (0, also)]),
    )


def prior_states(likelihood, law, rows, dimensions, chains, places, seed):
    """`chains` independent states from the prior, stacked."""
    keys = jax.random.split(jax.random.key(seed), 3)
    with jax.enable_x64(True):
        prior = jax.vmap(law.draw)(jax.random.split(keys[0], chains))
        numbers = jax.vmap(likelihood.draw_numbers)(jax.random.split(keys[1], chains))
    random, host = np.random.default_rng(seed), {name: np.asarray(value) for name, value in prior.items()}
    drawn = [structure(random, {name: v[i] for name, v in host.items()}, rows) for i in range(chains)]
    choice, menu, fired = (np.stack(all) for all in zip(*(padded(one, *places) for one in drawn), strict=True))

    def one(key, numbers, menu):
        values = likelihood.draw_values(key, numbers, places[1], dimensions)
        return jnp.where(jnp.any(menu, axis=0)[:, None], values, 0.0)

    with jax.enable_x64(True):
        values = jax.jit(jax.vmap(one))(jax.random.split(keys[2], chains), numbers, menu)
    return State(choice, menu, fired, values, numbers, prior)


def statistics_of(state):
    """Numbers whose means are compared: of choices, menus, features, values, and of everything that is learned."""
    owners, counts = jnp.sum(state.choice, axis=0), jnp.sum(state.menu, axis=0)
    active = state.active
    shared = jnp.sum(active, axis=0)
    found = {
        "categories": jnp.sum(owners > 0) * 1.0,
        "choices": jnp.sum(owners) * 1.0,
        "squares of owners": jnp.sum(owners**2) * 1.0,
        "alone": jnp.sum(owners == 1) * 1.0,
        "features": jnp.sum(counts > 0) * 1.0,
        "menu": jnp.sum(counts) * 1.0,
        "on one menu": jnp.sum(counts == 1) * 1.0,
        "squares of menus": jnp.sum(counts**2) * 1.0,
        "fired": jnp.sum(state.fired) * 1.0,
        "ones": jnp.sum(active) * 1.0,
        "squares of ones": jnp.sum(shared**2) * 1.0,
        "first row": jnp.sum(state.choice[0]) + jnp.sum(active[0]) * 1.0,
        "last row": jnp.sum(state.choice[-1]) + jnp.sum(active[-1]) * 1.0,
        "values": jnp.sum(jnp.arctan(state.values)),
        "sizes": jnp.sum(jnp.arctan(state.values**2)),
        "sizes of shared": jnp.sum(jnp.where((counts > 1)[:, None], jnp.arctan(state.values**2), 0.0)),
        "total": jnp.mean(jnp.arctan(totals(state.point) ** 2)),
        "strongest": jnp.mean(jnp.arctan(jnp.sum(state.values**2, axis=1)) * shared),
    }
    return found | {name: jnp.log(value) for name, value in (state.numbers | state.prior).items()}


@functools.partial(jax.jit, static_argnames=("sweep", "likelihood", "law", "steps"))
def _alternate(key, seen, states, sweep, likelihood, law, steps):
    def one(key, state):
        def step(carry, key):
            state, fits = carry
            keys = jax.random.split(key)
            values = likelihood.draw_entry(keys[0], totals(state.point), state.numbers)
            found = sweep(keys[1], Rows(jnp.where(seen, values, 0.0), seen), state, likelihood, law)
            same = jax.tree.map(lambda new, old: new.astype(old.dtype), found.state, state)
            return (same, fits & found.fits), statistics_of(same)

        (_, fits), found = jax.lax.scan(step, (state, jnp.bool_(True)), jax.random.split(key, steps))
        return jax.tree.map(lambda each: jnp.mean(each, axis=0), found), fits

    return jax.vmap(one)(jax.random.split(key, states.choice.shape[0]), states)


def geweke(sweep, likelihood, law, rows=3, dimensions=2, chains=1000, steps=30, places=(8, 16), missing=(), seed=0):
    """z scores by statistic: of the mean over chains that alternate a sweep and new data, all of which start in the law
    to be tested, beside that of as many draws of the prior."""
    states = prior_states(likelihood, law, rows, dimensions, chains, places, seed)
    seen = np.ones((rows, dimensions), bool)
    for place in missing:
        seen[place] = False
    with jax.enable_x64(True):
        before = jax.vmap(statistics_of)(prior_states(likelihood, law, rows, dimensions, 4 * chains, places, seed + 1))
        found, fits = _alternate(jax.random.key(seed + 2), seen, states, sweep, likelihood, law, steps)
    assert np.all(fits), "more than places: give more places, or smaller masses"
    scores = {}
    for name in before:
        one, other = np.asarray(before[name]), np.asarray(found[name])
        spread = np.sqrt(one.var() / len(one) + other.var() / len(other))
        scores[name] = 0.0 if spread < 1e-12 else (other.mean() - one.mean()) / spread
    return scores
