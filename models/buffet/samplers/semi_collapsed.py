"""Gibbs steps given the values of features, and births with the values of the new ones integrated out.

Features that a row has alone show in its own entries only: their number is drawn from what is left of the row's
entries, with as much more noise as there are features, and their values then from their posterior. So births fit the
data at once, where those from the prior are proposed in vain.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Key
from ..likelihoods.contract import Likelihood, Rows
from ..likelihoods.gaussian_noise import LOG_2PI
from .law import Law, RowPrior
from .passes import MOST, births_of, number_drawn, required
from .state import Outcome, State
from .uncollapsed import Births, Row, placed, sweep_with


def semi_collapsed(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """One sweep over rows, values, the numbers of the likelihood and those of the prior.

    Raises:
        UnsupportedError: a likelihood whose values cannot be integrated out.

    Source: doshivelez2009indian.
    """
    required(likelihood)
    return sweep_with(births_integrated, key, rows, state, likelihood, law)


def births_integrated(key: Key, row: Row, state: State, likelihood: Likelihood, law: RowPrior) -> Births:
    """The features that the row has alone drawn anew: `P(k) Poisson(k) N(x; t, 1 / noise + k / own)`, then values.

    `x - t` is what the row's entries show beside shared features, `noise` and `own` the precisions of noise and values.
    """
    gaussian, keys = required(likelihood), jax.random.split(key, 3)
    noise, own = state.numbers["noise_precision"], state.numbers["value_precision"]
    alone = row.active & (row.others == 0)
    shared = row.total - alone.astype(row.total.dtype) @ row.values
    left = jnp.where(row.seen, row.value - shared, 0.0)
    variance = 1.0 / noise + jnp.arange(MOST + 1) / own
    density = -0.5 * (jnp.sum(row.seen) * (LOG_2PI + jnp.log(variance)) + jnp.sum(left**2) / variance)
    weights = births_of(law, state.active.shape[0], state) + density
    gumbel = -jnp.log(draws.exponential(keys[0], (MOST + 1,)))
    before = jnp.sum(alone)
    number = number_drawn(weights, gumbel, alone)
    born = jnp.arange(MOST) < number
    # A draw of values and noise from the prior, moved by what it lacks of the entries, is one of the posterior.
    values = jnp.where(born[:, None], gaussian.draw_values(keys[1], state.numbers, MOST, len(left)), 0.0)
    spread = draws.normal(keys[2], left.shape) / jnp.sqrt(noise)
    lacking = (left - jnp.sum(values, axis=0) - spread) / (1.0 / noise + number / own)
    values = jnp.where(born[:, None], values + jnp.where(row.seen, lacking, 0.0) / own, 0.0)
    found, fits = placed(row, alone, born, values, jnp.ones(MOST), shared + jnp.sum(values, axis=0))
    kept = before > MOST
    row = jax.tree.map(lambda new, old: jnp.where(kept, old, new), found, row)
    changes = (number != before) & ~kept
    return Births(row, fits | kept, changes, changes)
