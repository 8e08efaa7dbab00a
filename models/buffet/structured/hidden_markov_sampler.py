"""The posterior of an infinite factorial hidden Markov model, for every likelihood: one chain at a time, all its rows.

Given the probabilities of its switches and all other features, a feature's column is a hidden Markov chain of two
states, drawn whole by one pass back and one forth. Of infinitely many features, those with a probability of coming on
above a level are looked at; the level is uniform below the least such probability of the features that are on somewhere
(slice sampling), so that nothing is truncated. That density of the level, one over the least, is what a column is
charged for becoming the least: passes tell "never on yet" from "off again" to know which columns are empty at the end.
Source: vangael2008infinite.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.sampling.conditionals.slices import slice_step
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError
from ..likelihoods.contract import Likelihood, Rows, totals
from ..likelihoods.learned import Gamma, check_gamma, draw_gamma, first_gamma, gamma_given
from ..samplers.law import harmonic
from ..samplers.state import Outcome, State
from ..samplers.sweeps import Sweep
from ..samplers.uncollapsed import drawn_given_matrix
from .hidden_markov import FiniteMarkovBuffet, MarkovBuffet

CANDIDATES = 4  # times the places: how many features, by decreasing probability, are looked at for those above a level


@dataclasses.dataclass(frozen=True)
class MarkovLaw:
    """`MarkovBuffet`, or with `features` its finite parent, as the sweep `forward_backward` uses it.

    Args:
        mass: a positive number, or (shape, rate) of the gamma prior under which it is learned.
        stay, leave: positive numbers given.
        features: None, or the fixed number of features.

    Raises:
        ModelError: numbers that are not positive.

    Source: vangael2008infinite.
    """

    mass: Gamma = (1.0, 1.0)
    stay: float = 1.0
    leave: float = 1.0
    features: int | None = None

    def __post_init__(self) -> None:
        check_gamma("MarkovLaw(mass=)", self.mass)
        for name in ("stay", "leave"):
            if isinstance(getattr(self, name), tuple):
                raise ModelError(f"MarkovLaw({name}=) is a positive number given; found {getattr(self, name)!r}.")
            check_gamma(f"MarkovLaw({name}=)", getattr(self, name))

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """`forward_backward` alone."""
        return (forward_backward,)  # pyright: ignore[reportReturnType]

    def log_of_draw(self, matrix: np.ndarray, weights: np.ndarray, mass: float) -> float:
        """Log probability of a matrix whose columns no row may have: up to their order, or with `features` as it is."""
        if self.features is not None:
            return FiniteMarkovBuffet(mass, self.features, self.stay, self.leave).log_matrix_probability(matrix)
        return MarkovBuffet(mass, self.stay, self.leave).log_probability(matrix)

    def draw(self, key: Key) -> tuple[Array, Array]:
        """The mass from its prior, and the concentration of states, which this law does not have: 1."""
        return draw_gamma(key, self.mass), jnp.ones(())

    def first(self) -> tuple[Array, Array]:
        """Where chains begin: the mass given or the mean of its prior, and 1."""
        return first_gamma(self.mass), jnp.ones(())

    def update(self, key: Key, state: State) -> State:
        """The mass drawn given the matrix.

        For the process `mass | Z ~ Gamma(shape + K, rate + H_n)`; for so many features by a slice sampler of the
        density `prod_k a / prod of (a + j) over j = off_on .. off_on + off_off`, `a = mass / features`.
        """
        if not isinstance(self.mass, tuple):
            return state
        shape, rate = self.mass
        rows, places = state.active.shape
        if self.features is None:
            number = jnp.sum(jnp.any(state.active, axis=0))
            return state._replace(mass=gamma_given(key, self.mass, number, harmonic(jnp.ones(()), rows)))
        j, count = jnp.arange(rows + 1)[:, None], switches(state.active)
        times = jnp.sum((j >= count.off_on) & (j <= count.off_on + count.off_off), axis=1)

        def log_density(z: Array) -> Array:
            columns = places * z - jnp.sum(times * jnp.log(jnp.exp(z) / places + j[:, 0]))
            return columns + shape * z - rate * jnp.exp(z)

        z, _ = slice_step(key, log_density, jnp.log(state.mass), jnp.ones(()))
        return state._replace(mass=jnp.exp(z))


class Switches(NamedTuple):
    """(places,) each: how often columns go from one state to another."""

    off_off: Array
    off_on: Array
    on_off: Array
    on_on: Array


class Chains(NamedTuple):
    """What columns are drawn given.

    Attributes:
        come, stay: (places,) probabilities of coming on, 0 for a place without a feature, and of staying on.
    """

    come: Array
    stay: Array


def switches(active: Array) -> Switches:
    """Of (rows, places) booleans, off before the first row."""
    before = jnp.concatenate([jnp.zeros_like(active[:1]), active[:-1]])
    pairs = ((~before, ~active), (~before, active), (before, ~active), (before, active))
    return Switches(*(jnp.sum(one & two, axis=0) for one, two in pairs))


def forward_backward(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: MarkovLaw) -> Outcome:
    """One sweep over probabilities of switches, columns, values, and the numbers of the likelihood and of the prior."""
    keys = jax.random.split(key, 5)
    chains, fits = draw_chains(keys[0], state, law), jnp.bool_(True)
    if law.features is None:
        chains, state, fits = with_empty_features(keys[1], chains, state, likelihood)
    state = draw_columns(keys[2], rows, state, chains, likelihood, law)
    state = drawn_given_matrix(keys[3:], rows, state, likelihood, law)  # pyright: ignore[reportArgumentType]
    none = jnp.zeros((), int)
    return Outcome(state, fits, none, none)


def draw_chains(key: Key, state: State, law: MarkovLaw) -> Chains:
    """Probabilities of switches given the columns; of empty columns of the process the prior's, and no coming on."""
    count = switches(state.active)
    first = 0.0 if law.features is None else state.mass / law.features
    shapes = first + count.off_on, 1.0 + count.off_off, law.stay + count.on_on, law.leave + count.on_off
    logs = draws.log_gamma(key, jnp.stack(shapes, axis=1))
    return Chains(jax.nn.sigmoid(logs[:, 0] - logs[:, 1]), jax.nn.sigmoid(logs[:, 2] - logs[:, 3]))


def with_empty_features(key: Key, chains: Chains, state: State, likelihood: Likelihood) -> tuple[Chains, State, Array]:
    """The features that are nowhere on but come on with a probability above the level, in empty places; and whether
    there was room.

    They are a Poisson process of intensity `mass x^-1 (1 - x)^rows` above the level: that of intensity `mass / x`, in
    decreasing order, of which each is kept with probability `(1 - x)^rows`.
    """
    rows, places = state.active.shape
    keys, used = jax.random.split(key, 5), jnp.any(state.active, axis=0)
    level = draws.uniform(keys[0]) * jnp.min(jnp.where(used, chains.come, 1.0))
    size = CANDIDATES * places
    candidates = jnp.exp(-jnp.cumsum(draws.exponential(keys[1], (size,))) / state.mass)
    kept = (candidates > level) & (jnp.log(draws.uniform(keys[2], (size,))) < rows * jnp.log1p(-candidates))
    fits = (candidates[-1] < level) & (jnp.sum(kept) <= places - jnp.sum(used))
    empty_first = jnp.argsort(used, stable=True)
    rank = jnp.cumsum(kept) - 1
    room = kept & (rank < places - jnp.sum(used))
    at = jnp.where(room, empty_first[jnp.clip(rank, 0, places - 1)], places)  # beyond the end: left out
    come = jnp.where(used, chains.come, 0.0).at[at].set(candidates, mode="drop")
    values = likelihood.draw_values(keys[3], state.numbers, places, state.values.shape[1])
    weights = state.weights
    if likelihood.weighted:
        weights = jnp.where(used, weights, likelihood.draw_weights(keys[4], state.numbers, (places, rows)).T)
    state = state._replace(values=jnp.where(used[:, None], state.values, values), weights=weights)
    return chains._replace(come=come), state, fits


def draw_columns(key: Key, rows: Rows, state: State, chains: Chains, likelihood: Likelihood, law: MarkovLaw) -> State:
    """Each column given all others, all its rows at once.

    Of the process in the order of probabilities to come on: that of places depends on the columns, and a scan whose
    order depends on what it draws does not leave the law as it is.
    """
    places = state.values.shape[0]
    order = jnp.argsort(-chains.come) if law.features is None else jnp.arange(places)
    u = draws.uniform(key, (places, state.active.shape[0]))

    def density(total: Array) -> Array:
        return jnp.sum(likelihood.log_entry(rows.values, total, state.numbers), axis=1, where=rows.seen)

    def one(i: Array, carry: tuple) -> tuple:
        place, (active, total) = order[i], carry
        worth = state.weights[:, place] if state.weights.size else jnp.ones(active.shape[0])
        own = worth[:, None] * state.values[place]
        without = total - jnp.where(active[:, place, None], own, 0.0)
        gain = density(without + own) - density(without)
        come, end = chains.come[place], (jnp.zeros(()), jnp.zeros(()))
        if law.features is None:
            others = jnp.any(active, axis=0).at[place].set(False)
            least = jnp.min(jnp.where(others, chains.come, 1.0))
            end = -jnp.log(least), -jnp.log(jnp.minimum(least, jnp.where(come > 0.0, come, 1.0)))
        column = draw_chain(u[place], gain, come, chains.stay[place], end)
        return active.at[:, place].set(column), without + jnp.where(column[:, None], own, 0.0)

    active, _ = jax.lax.fori_loop(0, places, one, (state.active, totals(state.point)))
    return state._replace(active=active)


def draw_chain(u: Array, gain: Array, come: Array, stay: Array, end: tuple[Array, Array]) -> Array:
    """A column given what each row gains in log density by being on.

    Args:
        u: (rows,) uniform numbers.
        gain: (rows,).
        come, stay: () probabilities of coming on and of staying on.
        end: log factors of a column that is nowhere on, and of another.

    Returns:
        (rows,) booleans.
    """
    log_come, log_wait = jnp.log(come), jnp.log1p(-come)
    log_stay, log_leave = jnp.log(stay), jnp.log1p(-stay)

    def back(later: tuple, gain: Array) -> tuple[tuple, Array]:
        never, off, on = later
        come_now = log_come + gain + on
        offs = jnp.stack([log_wait + never, log_wait + off, log_leave + off])
        ons = jnp.stack([come_now, come_now, log_stay + gain + on])
        now = jnp.logaddexp(offs, ons)
        return (now[0], now[1], now[2]), ons - now

    _, chances = jax.lax.scan(back, (end[0], end[1], end[1]), gain, reverse=True)

    def forth(place: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        u, chance = now
        on = jnp.log(u) < chance[place]
        return jnp.where(on, 2, jnp.where(place == 0, 0, 1)), on

    _, column = jax.lax.scan(forth, jnp.zeros((), int), (u, chances))
    return column
