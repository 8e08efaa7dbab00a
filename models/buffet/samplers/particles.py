"""A particle filter over the rows of a binary matrix: rows come one after the other, each given those before it.

Each particle is a matrix of the rows so far. It is extended by a row from the prior given its rows, and weighted by the
probability of the row's entries given all that it has seen, `p(x_n | x_1 .. x_{n-1}, Z)`. Values of features that are
Gaussian are integrated out, and what a particle believes of them follows by a rank-one update; else values are drawn
from the prior with the feature. The product of the mean weights is an unbiased estimate of the evidence. Rows are
proposed blindly, so that many rows or entries ask for many particles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.support import machine_code
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import DataError, ModelError
from ....factors.switches import double_precision
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.gaussian_noise import LOG_2PI
from ..likelihoods.linear_gaussian import LinearGaussian
from .law import Law, firsts
from .sampler import bucket
from .state import State


class Particles(NamedTuple):
    """Weighted draws of the posterior.

    Attributes:
        states: of a leading axis over particles, padded in the number of features; values are posterior means where
            they are integrated out.
        weights: (particles,) that add up to one.
        log_evidence: the log of an unbiased estimate of the probability of the data.
        effective: (rows,) how many particles of equal weight each row's were worth, before any were drawn anew.
    """

    states: State
    weights: np.ndarray
    log_evidence: float
    effective: np.ndarray


class Gaussian(NamedTuple):
    """What a particle believes of values: independent dimensions.

    Attributes:
        mean: (P, dimensions).
        covariance: (dimensions, P, P), or (1, P, P) where each row is seen as a whole or not at all.
    """

    mean: Array
    covariance: Array


class Beliefs(NamedTuple):
    """How a likelihood's values are treated.

    Attributes:
        begin: what a particle believes before it has seen a row, `(state, groups) -> belief`.
        observe: `(belief, value, seen, z, state, likelihood) -> belief, log density` of a row of worths z (P,).
        values: `(belief, state) -> (P, dimensions)`.
    """

    begin: Callable[..., Any]
    observe: Callable[..., tuple[Any, Array]]
    values: Callable[..., Array]


def _begin_gaussian(state: State, groups: int) -> Gaussian:
    prior = jnp.eye(state.values.shape[0]) / state.numbers["value_precision"]
    return Gaussian(jnp.zeros_like(state.values), jnp.broadcast_to(prior, (groups, *prior.shape)))


def _observe_gaussian(
    belief: Gaussian, value: Array, seen: Array, z: Array, state: State, likelihood: Likelihood
) -> tuple[Gaussian, Array]:
    """By conditioning on one number for each dimension that is seen."""
    shared = belief.covariance @ z
    spread = shared @ z + 1.0 / state.numbers["noise_precision"]
    error = value - z @ belief.mean
    density = -0.5 * (LOG_2PI + jnp.log(spread) + error**2 / spread)
    gain = jnp.where(seen[:, None], shared / spread[:, None], 0.0)
    counts = seen[: len(spread)].astype(value.dtype)[:, None, None]
    covariance = belief.covariance - counts * shared[:, :, None] * shared[:, None, :] / spread[:, None, None]
    return Gaussian(belief.mean + gain.T * error, covariance), jnp.sum(density, where=seen)


def _observe_drawn(
    belief: tuple, value: Array, seen: Array, z: Array, state: State, likelihood: Likelihood
) -> tuple[tuple, Array]:
    return belief, jnp.sum(likelihood.log_entry(value, z @ state.values, state.numbers), where=seen)


INTEGRATED = Beliefs(_begin_gaussian, _observe_gaussian, lambda belief, state: belief.mean)
DRAWN = Beliefs(lambda state, groups: (), _observe_drawn, lambda belief, state: state.values)
BELIEFS: dict[type, Beliefs] = {LinearGaussian: INTEGRATED}  # all others are drawn


class Cloud(NamedTuple):
    """The particles in the course of the filter: all with a leading axis over them but the evidence and `fits`."""

    state: State
    belief: Any
    owners: Array
    log_weight: Array
    log_evidence: Array
    fits: Array


def particle_filter(
    key: Key,
    rows: Rows,
    likelihood: Likelihood,
    law: Law,
    particles: int = 100,
    numbers: Numbers | None = None,
    threshold: float = 0.5,
) -> Particles:
    """Weighted matrices given the data, and an estimate of the log evidence.

    Row n is proposed from `P(z_n | z_1 .. z_{n-1})` and weighted by `p(x_n | x_1 .. x_{n-1}, z_1 .. z_n)`. Numbers that
    the likelihood or the law learns are drawn from their priors, for each particle its own, and never move. Where
    particles of equal weight would be worth fewer than `threshold particles`, all are drawn anew, systematically.

    Args:
        key: a key of `jax.random`.
        rows: the data, in the order in which they are taken.
        likelihood: what rows show of their features.
        law: the prior of the matrix.
        particles: how many, a whole number of at least 1.
        numbers: of the likelihood, those that are given to all particles; by name.
        threshold: between 0, never, and 1, after each row.

    Returns:
        The particles after the last row.

    Raises:
        ModelError: a number of particles, threshold or names of numbers that are none.
        DataError: entries that the likelihood gives no probability, or no rows.

    Source: wood2007particle.
    """
    rows = Rows(np.asarray(rows.values, float), np.asarray(rows.seen, bool))
    given = _checked(rows, likelihood, particles, numbers, threshold)
    rows = Rows(np.where(rows.seen, rows.values, 0.0), rows.seen)
    whole = bool(np.all(rows.seen.all(axis=1) | ~rows.seen.any(axis=1)))
    places = law.features or bucket(1)
    while True:
        filtered = _compiled(likelihood, law, particles, places, 1 if whole else rows.values.shape[1])
        cloud, effective = filtered(key, rows, given, np.float64(threshold))
        if cloud.fits:
            weights = np.exp(cloud.log_weight)
            return Particles(cloud.state, weights / weights.sum(), float(cloud.log_evidence), effective)
        places *= 2


def _checked(
    rows: Rows, likelihood: Likelihood, particles: int, numbers: Numbers | None, threshold: float
) -> dict[str, np.ndarray]:
    """The numbers given."""
    if isinstance(particles, bool) or not isinstance(particles, int) or particles < 1:
        raise ModelError(f"particle_filter(particles=): give a whole number of at least 1; found {particles!r}.")
    if not 0.0 <= threshold <= 1.0:
        raise ModelError(f"particle_filter(threshold=): give a number between 0 and 1; found {threshold!r}.")
    if rows.values.ndim != 2 or rows.values.shape != rows.seen.shape or not len(rows.values):
        raise DataError(
            "particle_filter takes rows of values and of what is seen, both (rows, dimensions) with at least one row; "
            f"found {rows.values.shape} and {rows.seen.shape}."
        )
    if not np.isfinite(rows.values[rows.seen]).all():
        raise DataError("particle_filter takes finite values where they are seen; mark the others as not seen.")
    likelihood.check(rows.values, rows.seen)
    with double_precision():
        known = set(jax.eval_shape(likelihood.draw_numbers, jax.random.key(0)))
    given = {name: np.asarray(value, float) for name, value in (numbers or {}).items()}
    if not known >= set(given):
        raise ModelError(
            f"particle_filter(numbers=): {type(likelihood).__name__} has {sorted(known)}; found {sorted(given)}."
        )
    return given


@functools.cache
def _compiled(likelihood: Likelihood, law: Law, particles: int, places: int, groups: int) -> machine_code.Kernel:
    """`(key, rows, numbers, threshold) -> cloud, effective numbers`."""
    beliefs = BELIEFS.get(type(likelihood), DRAWN)

    def start(key: Key, rows: Rows, numbers: Numbers) -> State:
        keys = jax.random.split(key)
        mass, concentration = law.draw(keys[0])
        every, dimensions = rows.values.shape
        weights = jnp.zeros((every, places) if likelihood.weighted else (0, 0))
        active = jnp.zeros((every, places), bool)
        own = {**likelihood.draw_numbers(keys[1]), **numbers}
        return State(active, jnp.zeros((places, dimensions)), weights, own, mass, concentration)

    def run(key: Key, rows: Rows, numbers: Numbers, threshold: Array) -> tuple[Cloud, Array]:
        keys = jax.random.split(key, 3)
        states = jax.vmap(lambda own: start(own, rows, numbers))(jax.random.split(keys[0], particles))
        belief = jax.vmap(lambda state: beliefs.begin(state, groups))(states)
        owners, even = jnp.zeros((particles, places), int), jnp.full(particles, -jnp.log(particles))
        cloud = Cloud(states, belief, owners, even, jnp.zeros(()), jnp.bool_(True))

        def one(cloud: Cloud, n: Array) -> tuple[Cloud, Array]:
            cloud = _extended(jax.random.fold_in(keys[1], n), n, rows, cloud, likelihood, law, beliefs)
            effective = 1.0 / jnp.sum(jnp.exp(2.0 * cloud.log_weight))
            u = draws.uniform(jax.random.fold_in(keys[2], n))
            again = effective < threshold * particles
            return jax.lax.cond(again, lambda: _drawn_anew(u, cloud), lambda: cloud), effective

        cloud, effective = jax.lax.scan(one, cloud, jnp.arange(rows.values.shape[0]))
        values = jax.vmap(beliefs.values)(cloud.belief, cloud.state)
        return cloud._replace(state=cloud.state._replace(values=values)), effective

    return machine_code.Kernel(run)


def _extended(
    key: Key, n: Array, rows: Rows, cloud: Cloud, likelihood: Likelihood, law: Law, beliefs: Beliefs
) -> Cloud:
    """All particles by row n, and weighted by it; weights add up to one again, and their sum goes to the evidence."""
    value, seen = rows.values[n], rows.seen[n]

    def one(key: Key, state: State, belief: Any, owners: Array) -> tuple:
        keys = jax.random.split(key, 3)
        active, fits = _row_of_prior(keys[0], n, rows.values.shape[0], owners, state, law)
        places, dimensions = state.values.shape
        born = active & (owners == 0) if law.features is None else jnp.full(places, n == 0)
        values = likelihood.draw_values(keys[1], state.numbers, places, dimensions)
        state = state._replace(
            active=jnp.asarray(state.active).at[n].set(active), values=jnp.where(born[:, None], values, state.values)
        )
        z = active.astype(values.dtype)
        if likelihood.weighted:
            weight = likelihood.draw_weights(keys[2], state.numbers, (places, 1))[:, 0]
            state, z = state._replace(weights=jnp.asarray(state.weights).at[n].set(weight)), z * weight
        belief, log_density = beliefs.observe(belief, value, seen, z, state, likelihood)
        return state, belief, owners + active, log_density, fits

    keys = jax.random.split(key, len(cloud.log_weight))
    state, belief, owners, log_density, fits = jax.vmap(one)(keys, cloud.state, cloud.belief, cloud.owners)
    log_weight = cloud.log_weight + log_density
    total = jax.nn.logsumexp(log_weight)
    return Cloud(state, belief, owners, log_weight - total, cloud.log_evidence + total, cloud.fits & jnp.all(fits))


def _row_of_prior(key: Key, n: Array, every: int, owners: Array, state: State, law: Law) -> tuple[Array, Array]:
    """(P,) which features row n has given the rows before it, new ones in the next places, and whether these were."""
    keys, places = jax.random.split(key), jnp.arange(len(owners))
    u = draws.uniform(keys[0], owners.shape)
    if law.features is not None:
        a = state.mass / law.features
        return u * (n + 1.0 + a) < owners + a, jnp.bool_(True)
    had = u * (n + state.concentration) < owners - law.discount
    # As many as points of rate one before the expected number.
    rate = state.mass * firsts(state.concentration, every, law.discount)[n]
    new = jnp.sum(jnp.cumsum(draws.exponential(keys[1], (len(owners) + 1,))) < rate)
    first = jnp.sum(owners > 0)
    return had | ((places >= first) & (places < first + new)), first + new <= len(owners)


def _drawn_anew(u: Array, cloud: Cloud) -> Cloud:
    """Particles in proportion to their weights, at evenly spaced quantiles from one uniform number on."""
    number = len(cloud.log_weight)
    sums = jnp.cumsum(jnp.exp(cloud.log_weight))
    ancestors = jnp.searchsorted(sums, (jnp.arange(number) + u) / number * sums[-1], side="right")
    ancestors = jnp.minimum(ancestors, number - 1)
    state, belief, owners = jax.tree.map(lambda each: each[ancestors], (cloud.state, cloud.belief, cloud.owners))
    return cloud._replace(state=state, belief=belief, owners=owners, log_weight=jnp.full(number, -jnp.log(number)))
