"""The posterior of features that rows have several times, for every likelihood without weights of its own.

A row shows its features' values as often as it has them. Counts go up and down by one, by the odds of the process times
the likelihood; a count of zero is left as it was entered while other rows have the feature. A feature that a row has
alone and once is born and dies, with values that the row proposes; alone, a count of more than one goes down first.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ..checks import positive
from ..likelihoods.contract import Likelihood, Rows
from ..likelihoods.learned import Gamma, check_gamma, draw_gamma, first_gamma, gamma_given
from ..samplers.births import births_of_row
from ..samplers.law import OfRow
from ..samplers.state import Outcome, State
from ..samplers.sweeps import Sweep
from ..samplers.uncollapsed import Row, drawn_given_matrix, log_density
from .gamma_poisson import GammaPoisson

STEPS = 2  # of each count in a sweep


@dataclasses.dataclass(frozen=True)
class CountLaw:
    """`GammaPoisson` as the sweep `counted` uses it. Draws have the counts as their weights.

    Args:
        mass: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        precision: of the rates of features, a positive number given.

    Raises:
        ModelError: numbers that are not positive.

    Source: titsias2007infinite.
    """

    mass: Gamma = (1.0, 1.0)
    precision: float = 1.0

    def __post_init__(self) -> None:
        check_gamma("CountLaw(mass=)", self.mass)
        object.__setattr__(self, "precision", positive("precision", self.precision))

    @property
    def features(self) -> None:
        """Without end."""
        return None

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """`counted` alone."""
        return (counted,)  # pyright: ignore[reportReturnType]

    def draw(self, key: Key) -> tuple[Array, Array]:
        """The mass from its prior, and a concentration, which this law does not have: 1."""
        return draw_gamma(key, self.mass), jnp.ones(())

    def first(self) -> tuple[Array, Array]:
        """Where chains begin: the mass given or the mean of its prior, and 1."""
        return first_gamma(self.mass), jnp.ones(())

    def update(self, key: Key, state: State) -> State:
        """The mass drawn given the counts: `mass | Z ~ Gamma(shape + K, rate + log(1 + rows / precision))`."""
        number = jnp.sum(jnp.any(state.active, axis=0))
        rate = np.log1p(state.active.shape[0] / self.precision)
        return state._replace(mass=gamma_given(key, self.mass, number, rate))

    def log_of_draw(self, matrix: np.ndarray, weights: np.ndarray, mass: float) -> float:
        """Log probability of the counts of a draw, up to the order of columns."""
        return GammaPoisson(mass, self.precision).log_probability(np.where(matrix, weights, 0.0))


def counted(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: CountLaw) -> Outcome:
    """One sweep over counts, values, the numbers of the likelihood and those of the prior.

    Raises:
        UnsupportedError: a likelihood with weights of rows, whose place the counts take.
    """
    if likelihood.weighted:
        raise UnsupportedError(
            f"Counts stand where {type(likelihood).__name__} has weights of rows. Use a likelihood without weights."
        )
    keys, (every, places) = jax.random.split(key, 3), state.active.shape
    again = 1.0 / (every + law.precision)  # p: once more has the odds p (m + z) / (z + 1), m being the others' total
    start = state.weights if state.weights.size else state.active.astype(float)  # a chain begins with ones

    def one(n: Array, carry: tuple) -> tuple:
        counts, values, fits, proposed, accepted = carry
        for_counts, for_births = jax.random.split(jax.random.fold_in(keys[0], n))
        others = jnp.sum(counts, axis=0) - counts[n]
        row = Row(rows.values[n], rows.seen[n], counts[n] > 0.0, counts[n], counts[n] @ values, others, values)
        row = draw_counts(for_counts, row, again, state, likelihood)
        # One that the row has alone but several times is neither a place to be born in nor one to die.
        several = (others == 0.0) & (row.weight > 1.0)
        prior = OfRow(jnp.zeros(places), state.mass * again)
        found = births_of_row(
            for_births, row._replace(others=jnp.where(several, 1.0, others)), state, likelihood, prior
        )
        weight = jnp.where(found.row.active, found.row.weight, 0.0)
        counts = jnp.asarray(counts).at[n].set(weight)
        return counts, found.row.values, fits & found.fits, proposed + found.proposed, accepted + found.accepted

    none = jnp.zeros((), int)
    found = jax.lax.fori_loop(0, every, one, (start, state.values, jnp.bool_(True), none, none))
    counts, values, fits, proposed, accepted = found
    state = state._replace(active=counts > 0.0, values=values, weights=counts)
    return Outcome(drawn_given_matrix(keys[1:], rows, state, likelihood, law), fits, proposed, accepted)  # pyright: ignore[reportArgumentType]


def draw_counts(key: Key, row: Row, again: float, state: State, likelihood: Likelihood) -> Row:
    """A few steps of each count that the row has, or that other rows have: up or down by one, each alike."""
    places = len(row.active)
    u = draws.uniform(key, (places, STEPS, 2))

    def step(i: Array, now: Row) -> Row:
        place, chances = i // STEPS, u[i // STEPS, i % STEPS]
        before, others = now.weight[place], row.others[place]
        after = before + jnp.where(chances[0] < 0.5, 1.0, -1.0)
        least, most = jnp.minimum(before, after), jnp.maximum(before, after)
        odds = jnp.log(again) + jnp.log(others + least) - jnp.log(most)
        total = now.total + (after - before) * now.values[place]
        gain = log_density(now, total, state, likelihood) - log_density(now, now.total, state, likelihood)
        # Alone the last one stays: it dies with its values.
        possible = (least >= 0.0) & (others + least > 0.0)
        moved = possible & (jnp.log(chances[1]) < jnp.where(after > before, odds, -odds) + gain)
        weight = jnp.asarray(now.weight).at[place].set(jnp.where(moved, after, before))
        return now._replace(weight=weight, total=jnp.where(moved, total, now.total))

    row = jax.lax.fori_loop(0, places * STEPS, step, row)
    return row._replace(active=row.weight > 0.0)
