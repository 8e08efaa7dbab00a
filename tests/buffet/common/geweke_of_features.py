"""Geweke's test of samplers of a binary matrix: chains that start from a draw of the prior and of data given it, and
alternate a sweep given the data with new data given the state, keep the law of the prior if the sweep is right.

Every chain starts in the law to be tested, so that means over a chain are independent over chains, and standard errors
need no guess of how chains forget.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from cavity.models.buffet.likelihoods.contract import Rows, totals
from cavity.models.buffet.samplers.state import State


def prior_matrices(law, random, mass, concentration, rows, places):
    """(chains, rows, places): rows one after the other for the buffet, given weights for the finite prior."""
    chains = len(mass)
    if law.features is not None:
        weights = random.beta(mass[:, None, None] / places, 1.0, (chains, 1, places))
        return random.random((chains, rows, places)) < weights
    active, rate = np.zeros((chains, rows, places), bool), np.ones(chains)
    for n in range(rows):
        before = active[:, :n].sum(axis=1)
        had = random.random(before.shape) * (concentration + n)[:, None] < before - law.discount
        first = (before > 0).sum(axis=1)
        new = first + random.poisson(mass * rate)
        assert new.max() <= places, "more features than places: give more places, or a smaller mass"
        place = np.arange(places)
        active[:, n] = had | ((place >= first[:, None]) & (place < new[:, None]))
        rate *= (concentration + law.discount + n) / (concentration + n + 1)
    return active


def prior_states(likelihood, law, rows, dimensions, chains, places, seed, matrices=prior_matrices):
    """`chains` independent states from the prior, stacked; `matrices` draws what has another law than the buffet's, and
    where its entries are no booleans they are counts, the weights of states."""
    keys = jax.random.split(jax.random.key(seed), 5)
    with jax.enable_x64(True):
        mass, concentration = jax.vmap(law.draw)(jax.random.split(keys[0], chains))
        numbers = jax.vmap(likelihood.draw_numbers)(jax.random.split(keys[1], chains))
    mass, concentration = np.asarray(mass), np.asarray(concentration)
    drawn = matrices(law, np.random.default_rng(seed), mass, concentration, rows, places)
    active, counts = drawn > 0, None if drawn.dtype == bool else drawn.astype(float)

    def one(key_values, key_weights, active, numbers):
        values = likelihood.draw_values(key_values, numbers, places, dimensions)
        weights = jnp.zeros((0, 0))
        if likelihood.weighted:
            weights = likelihood.draw_weights(key_weights, numbers, (places, rows)).T
        if law.features is None:
            used = jnp.any(active, axis=0)
            values = jnp.where(used[:, None], values, 0.0)
        return values, weights

    with jax.enable_x64(True):
        split = jax.random.split(keys[3], chains), jax.random.split(keys[4], chains)
        values, weights = jax.jit(jax.vmap(one))(*split, active, numbers)
    return State(active, values, weights if counts is None else counts, numbers, mass, concentration)


@functools.partial(jax.jit, static_argnames=("sweep", "likelihood", "law", "statistics", "steps"))
def _alternate(key, seen, states, sweep, likelihood, law, statistics, steps):
    def one(key, state):
        def step(carry, key):
            state, fits = carry
            keys = jax.random.split(key)
            values = likelihood.draw_entry(keys[0], totals(state.point), state.numbers)
            rows = Rows(jnp.where(seen, values, 0.0), seen)
            outcome = sweep(keys[1], rows, state, likelihood, law)
            same = jax.tree.map(lambda new, old: new.astype(old.dtype), outcome.state, state)
            return (same, fits & outcome.fits), statistics(same)

        (_, fits), found = jax.lax.scan(step, (state, jnp.bool_(True)), jax.random.split(key, steps))
        return jax.tree.map(lambda each: jnp.mean(each, axis=0), found), fits

    chains = states.mass.shape[0]
    return jax.vmap(one)(jax.random.split(key, chains), states)


def statistics_of(state):
    """Numbers whose means are compared: of the matrix, of values, and of everything that is learned."""
    active = state.active.astype(float)
    owners = jnp.sum(active, axis=0)
    used = owners > 0
    found = {
        "features": jnp.sum(used) * 1.0,
        "ones": jnp.sum(owners),
        "alone": jnp.sum(owners == 1) * 1.0,
        "squares of owners": jnp.sum(owners**2),
        "first row": jnp.sum(active[0]),
        "values": jnp.sum(jnp.where(used[:, None], jnp.arctan(state.values), 0.0)),
        "sizes": jnp.sum(jnp.where(used[:, None], jnp.arctan(state.values**2), 0.0)),
        "total": jnp.mean(jnp.arctan(totals(state.point) ** 2)),
        "mass": jnp.log(state.mass),
        "concentration": jnp.log(state.concentration),
        "weights": jnp.sum(jnp.where(state.active, state.weights, 0.0) if state.weights.size else jnp.zeros(1)),
    }
    found |= {name: jnp.log(value) for name, value in state.numbers.items() if value.ndim == 0}
    return found | {name: jnp.mean(jnp.arctan(value)) for name, value in state.numbers.items() if value.ndim > 0}


def geweke(
    sweep, likelihood, law, rows=3, dimensions=2, chains=2000, steps=50, places=16, missing=(), seed=0,
    matrices=prior_matrices,
):  # fmt: skip
    """z scores by statistic: of the mean over chains that alternate, beside that of as many draws of the prior."""
    states = prior_states(likelihood, law, rows, dimensions, chains, places, seed, matrices)
    seen = np.ones((rows, dimensions), bool)
    for place in missing:
        seen[place] = False
    with jax.enable_x64(True):
        drawn = prior_states(likelihood, law, rows, dimensions, 4 * chains, places, seed + 1, matrices)
        before = jax.vmap(statistics_of)(drawn)
        found, fits = _alternate(jax.random.key(seed + 2), seen, states, sweep, likelihood, law, statistics_of, steps)
    assert np.all(fits), "more features than places: give more places, or a smaller mass"
    scores = {}
    for name in before:
        one, other = np.asarray(before[name]), np.asarray(found[name])
        spread = np.sqrt(one.var() / len(one) + other.var() / len(other))
        scores[name] = 0.0 if spread < 1e-12 else (other.mean() - one.mean()) / spread
    return scores
