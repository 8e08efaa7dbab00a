"""Iterations of shards as sweeps of a state, as other samplers are called."""

import jax.numpy as jnp

from cavity.models.buffet.parallel.synchronous import Own, Shared
from cavity.models.buffet.samplers.state import Outcome


def by_shards(iteration, number, inner=1):
    """A sweep by an iteration of so many shards of equal sizes."""

    def sweep(key, rows, state, likelihood, law):
        every = rows.values.shape[0] // number
        cut = lambda array: array.reshape((number, every, *array.shape[1:]))  # noqa: E731
        own = Own(cut(state.active), cut(rows.values), cut(rows.seen), jnp.full(number, every), jnp.arange(number))
        shared = Shared(
            state.values, state.numbers, state.mass, state.concentration, jnp.sum(state.active, axis=0) * 1.0,
            jnp.zeros(()), jnp.bool_(True),
        )  # fmt: skip
        active, shared = iteration(key, own, shared, likelihood, law, every * number, inner, lambda own: own)
        state = state._replace(
            active=active.reshape(state.active.shape), values=shared.values, numbers=shared.numbers,
            mass=shared.mass, concentration=shared.concentration,
        )  # fmt: skip
        return Outcome(state, shared.fits, 0, 0)

    return sweep
