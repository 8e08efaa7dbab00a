"""What the samplers share that integrate the values of features out: a pass over the rows between draws of the rest.

A sweep fills the entries that are not seen by a draw given all else, goes over the rows given the filled data alone,
and draws values, numbers and the prior's own given the matrix. A row's own missing entries are integrated out while
its features are drawn, and are then drawn given these, lest a row explain for ever what was once drawn for it. A pass
is a function of arrays: the probabilities of the prior and all random numbers are tables that it is given, so that
passes can be compared, and written in other ways.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ....factors.special import log
from ..likelihoods.contract import Active, Likelihood, Numbers, Rows, WholeRows
from ..likelihoods.linear_gaussian import LinearGaussian, of_values
from .law import Law, RowPrior
from .state import Outcome, State, cleared

MOST = 6  # features that a row is given alone; a row that has more keeps them
LOG_FACTORIALS = np.array([math.lgamma(number + 1.0) for number in range(MOST + 1)])


class Tables(NamedTuple):
    """The prior of a row given all others.

    Attributes:
        odds: (rows,) log odds of an entry, by how many other rows have the feature; minus infinity where a feature is
            born and dies with its row.
        births: (MOST + 1,) log weights of the number of features that a row has alone; (0,) under the finite prior.
    """

    odds: Float[Array, "row"]
    births: Float[Array, "number"]


class Chances(NamedTuple):
    """The random numbers of a pass, all zeros where it takes the likeliest.

    Attributes:
        logistic: (rows, places): an entry is one where its log odds are above.
        gumbel: (rows, MOST + 1): the largest sum with the log weights is the number that is drawn.
    """

    logistic: Float[Array, "row place"]
    gumbel: Float[Array, "row number"]


class Gaps(NamedTuple):
    """Which entries are not seen, and the random numbers that they are drawn by.

    Attributes:
        seen: (rows, dimensions) booleans.
        normal: (rows, dimensions), zeros where a pass takes the likeliest.
    """

    seen: Bool[Array, "row dimension"]
    normal: Float[Array, "row dimension"]


class Pass(NamedTuple):
    """What a pass found, and what it drew from.

    Attributes:
        active: (rows, places) booleans.
        fits: () whether there were places for all features.
        odds: (rows, places) log odds of entries given all else, minus infinity for those that were not drawn.
        births: (rows, MOST + 1) log weights of the number of features that a row has alone, from that of none.
        drift: () the largest error seen in what the pass renews instead of computing it; 0 where there is none.
        full: (rows, dimensions) the entries, those that are not seen drawn anew; None of a pass that was given no gaps.
    """

    active: Active
    fits: Bool[Array, ""]
    odds: Float[Array, "row place"]
    births: Float[Array, "row number"]
    drift: Float[Array, ""]
    full: Float[Array, "row dimension"] | None = None


class RowPass(Protocol):
    """Goes over the rows of a matrix, given filled data; `gaps` where some entries are not seen."""

    def __call__(
        self, active: Active, full: Array, numbers: Numbers, tables: Tables, chances: Chances, gaps: Gaps | None = None
    ) -> Pass: ...


def tables_of(law: Law, rows: int, state: State) -> Tables:
    """The prior's tables for its numbers as they are."""
    odds = law.log_odds(jnp.arange(rows, dtype=float), rows, state)
    if law.features is not None:
        return Tables(odds, jnp.zeros(0))
    return Tables(odds, births_of(law, rows, state))


def births_of(law: RowPrior, rows: int, state: State) -> Array:
    """(MOST + 1,) log weights of the Poisson law of the number of features that a row has alone."""
    return jnp.arange(MOST + 1) * jnp.log(law.rate_alone(rows, state)) - LOG_FACTORIALS


def chances_of(key: Key, rows: int, places: int) -> Chances:
    """Random numbers for a pass; the place first, as of all draws."""
    keys = jax.random.split(key)
    u = draws.uniform(keys[0], (places, rows)).T
    gumbel = -log(draws.exponential(keys[1], (rows, MOST + 1)))
    return Chances(log(u / (1.0 - u)), gumbel)


def gaps_of(key: Key, seen: Array) -> Gaps:
    """Which entries a pass draws anew, and by what, for the key of its `chances_of`."""
    return Gaps(seen, draws.normal(jax.random.fold_in(key, 2), seen.shape))  # of that key's parts the third


def sweep_by(
    over_rows: RowPass, key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law, greedy: bool = False
) -> tuple[Outcome, Pass]:
    """A sweep whose matrix is drawn by this pass; `greedy`: each entry its likelier value."""
    gaussian = required(likelihood)
    keys = jax.random.split(key, 6)
    every, places = state.active.shape
    chances = chances_of(keys[1], every, places)
    if greedy:
        chances = jax.tree.map(jnp.zeros_like, chances)
    given = state.numbers, tables_of(law, every, state), chances

    def whole() -> Pass:
        full = jnp.asarray(rows.values, float)
        return over_rows(state.active, full, *given)._replace(full=full)

    def with_gaps() -> Pass:
        full, gaps = gaussian.filled(keys[0], rows, state.point), gaps_of(keys[1], rows.seen)
        if greedy:
            gaps = gaps._replace(normal=jnp.zeros(full.shape))
        return over_rows(state.active, full, *given, gaps)

    found = whole() if isinstance(rows, WholeRows) else jax.lax.cond(jnp.all(rows.seen), whole, with_gaps)
    full = found.full
    assert full is not None
    state = state._replace(active=found.active)
    state = state._replace(values=of_values(full, state.active, state.numbers).draw(keys[2]))
    state = state._replace(numbers=gaussian.numbers_given(keys[3], keys[4], rows, state.point))
    if law.features is None:
        state = cleared(state)
    none = jnp.zeros((), int)
    return Outcome(law.update(keys[5], state), found.fits, none, none), found


def required(likelihood: Likelihood) -> LinearGaussian:
    """The likelihood, where its values can be integrated out; UnsupportedError where not."""
    if not isinstance(likelihood, LinearGaussian):
        raise UnsupportedError(
            "This sampler integrates the values of features out, which LinearGaussian allows; found "
            f"{type(likelihood).__name__}. Use the uncollapsed sampler, which is for every likelihood."
        )
    return likelihood


def index_of(others: Array) -> Array:
    """Where the tables hold the odds of features that so many other rows have."""
    return others.astype(int)


def number_drawn(weights: Array, gumbel: Array, alone: Array) -> Array:
    """Of features that the row has alone: drawn, or as it is where the row has more than could be drawn."""
    before = jnp.sum(alone)
    return jnp.where(before > MOST, before, jnp.argmax(weights + gumbel))


def placed(number: Array, others: Array) -> tuple[Array, Array]:
    """The first places without other rows, as many as asked for, and whether there were so many."""
    empty = others == 0
    return empty & (jnp.cumsum(empty) <= number), number <= jnp.sum(empty)
