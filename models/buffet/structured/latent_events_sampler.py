"""The posterior of latent events, for every likelihood without weights: particles that run along one that is kept.

What causes what depends on all that happened before, so that no row is drawn apart from those after it. A conditional
particle filter draws all choices at once: particles are extended row by row by the prior and die or multiply by the
density of the row, one of them being the choices as they were; any of the last ones is the next state. Given which
events are on, their values and the numbers of the likelihood are drawn as for any other matrix. Source:
andrieu2010particle.
"""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.mcmc.kernel import Kernel
from ....engine.mcmc.keys import generator
from ....engine.mcmc.run import Chains, run
from ....engine.support import machine_code
from ....engine.support.user_numbers import table
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError, UnsupportedError
from ....factors.switches import double_precision
from ..checks import whole
from ..likelihoods.contract import Likelihood, Numbers, Point, Rows
from ..samplers.sampler import bucket, loud
from .latent_events import Choice, LatentEvents, Urns, choices_of_row, matrix_of


class Events(NamedTuple):
    """A point of a chain.

    Attributes:
        choices: (choices, 4) whole numbers, the fields of each `Choice`.
        values: (places, dimensions) of events, of the prior where no event is.
        numbers: of the likelihood.
    """

    choices: np.ndarray
    values: np.ndarray
    numbers: Numbers


def sample_events(
    data: Any,
    key: Key,
    draws: int,
    prior: LatentEvents,
    likelihood: Likelihood,
    *,
    particles: int = 30,
    chains: int = 4,
    warmup: int = 0,
    thin: int = 1,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Chains:
    """Draws from the posterior of which events are on when, of what caused them, and of their values.

    New events have values from the prior, which data of many columns fit hardly ever: for few columns, or values that
    are 0 or 1.

    Args:
        data: (rows, dimensions) numbers, rows in the order of time, NaN where missing.
        key: a key of `jax.random`.
        draws: kept, of each chain.
        prior: of the events, its parameters given.
        likelihood: what rows show of their events, without weights.
        particles: that run along the one that is kept, itself included; at least 2.
        chains, warmup, thin, progress: as in `cavity.engine.mcmc.run.run`.

    Returns:
        Draws of active (rows, events), values (events, dimensions), choices and number_of_choices, number_of_features,
        log_likelihood, log_joint (of data and choices) and the numbers of the likelihood; shorter ones end in zeros.

    Raises:
        ModelError: a prior or a likelihood of another kind.
        DataError: bad data, or numbers of draws or particles.
        UnsupportedError: a likelihood with weights of rows.

    Source: wingate2009infinite, andrieu2010particle.
    """
    _check_kinds(prior, likelihood)
    values = table(data, "row", "dimension")
    seen = ~np.isnan(values)
    likelihood.check(values, seen)
    rows, size = Rows(np.where(seen, values, 0.0), seen), max(whole("particles", particles), 2)
    words = repr((prior, likelihood, size)).encode()
    kernel = Kernel(
        lambda key: first_events(key, rows, prior, likelihood),
        lambda key, state: events_given(key, rows, state, prior, likelihood, size),
        lambda state: _record(rows, state, prior, likelihood),
        grows=True,
        identity=hashlib.sha256(words + rows.values.tobytes() + seen.tobytes()).hexdigest(),
    )
    return run(kernel, key, draws, chains=chains, warmup=warmup, thin=thin, progress=progress)


def _check_kinds(prior: object, likelihood: object) -> None:
    if not isinstance(prior, LatentEvents) or not isinstance(likelihood, Likelihood):
        raise ModelError(
            f"sample_events takes a prior LatentEvents and a likelihood of cavity.models.buffet.likelihoods; found "
            f"{type(prior).__name__} and {type(likelihood).__name__}."
        )
    if likelihood.weighted:
        raise UnsupportedError(
            f"Events have no weights of rows, which {type(likelihood).__name__} draws. Use a likelihood without "
            "weights."
        )


def first_events(key: Key, rows: Rows, prior: LatentEvents, likelihood: Likelihood) -> Events:
    """Choices of the prior, values too, and numbers of the size of the data."""
    keys = jax.random.split(key)
    choices = prior.sample(len(rows.values), keys[0])
    with double_precision():
        first = loud(likelihood, likelihood.first_numbers(rows))
        numbers: Numbers = {name: np.asarray(value) for name, value in first.items()}
    places = bucket(_count(choices))
    return Events(_array(choices), _values(likelihood, places)(keys[1], numbers, rows.values), numbers)


def events_given(
    key: Key, rows: Rows, state: Events, prior: LatentEvents, likelihood: Likelihood, particles: int
) -> Events:
    """One transition: choices given values of all events that could be, then values and numbers given choices."""
    keys, before = jax.random.split(key, 3), _choices(state.choices)
    named = _count(before)

    def values_of(events: int) -> np.ndarray:
        """More places change none of the values, as all draws have the place first."""
        found = _values(likelihood, bucket(events))(keys[1], state.numbers, rows.values)
        found[:named] = state.values[:named]
        return found

    choices, values = filtered(generator(keys[0]), rows, before, values_of, state.numbers, prior, likelihood, particles)
    active = np.zeros((len(rows.values), bucket(_count(choices))), bool)
    active[:, : _count(choices)] = matrix_of(choices, len(active))
    point = Point(active, values[: active.shape[1]], np.zeros((0, 0)), state.numbers)
    found = _update(likelihood)(keys[2], rows, point)
    return Events(_array(choices), found.values, found.numbers)


class Particle(NamedTuple):
    """Choices up to a row, the urns after them, and who chooses next."""

    choices: tuple[Choice, ...]
    urns: Urns
    on: list[int]


def filtered(
    random: np.random.Generator,
    rows: Rows,
    kept: tuple[Choice, ...],
    values_of: Callable[[int], np.ndarray],
    numbers: Numbers,
    prior: LatentEvents,
    likelihood: Likelihood,
    particles: int,
) -> tuple[tuple[Choice, ...], np.ndarray]:
    """Choices drawn by a conditional particle filter, and the values of all events that any particle had."""
    cloud, weights = [Particle((), Urns(prior), [-1])] * particles, np.full(particles, 1.0 / particles)
    values, density = values_of(_count(kept)), _density(likelihood)
    for row, (value, seen) in enumerate(zip(rows.values, rows.seen, strict=True)):
        ancestors = random.choice(particles, particles, p=weights)
        ancestors[0] = 0  # the choices as they were
        moved = []
        for number, ancestor in enumerate(ancestors):
            now, urns = cloud[ancestor], copy.deepcopy(cloud[ancestor].urns)
            if number:
                own = choices_of_row(random, urns, row, now.on)
            else:
                own = [choice for choice in kept if choice.row == row]
                for choice in own:
                    urns.put(choice)
            moved.append(Particle((*now.choices, *own), urns, sorted({choice.event for choice in own})))
        cloud = moved
        most = max(len(each.urns.named) for each in cloud)
        if most > len(values):
            values = values_of(most)
        total = np.array([values[each.on].sum(axis=0) for each in cloud])
        logs = density(value, seen, total, numbers)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
    return cloud[random.choice(particles, p=weights)].choices, values


@functools.cache
def _density(likelihood: Likelihood) -> machine_code.Kernel:
    """(particles,) log densities of a row given totals."""

    def one(value: Array, seen: Array, total: Array, numbers: Numbers) -> Array:
        return jnp.sum(jnp.where(seen, likelihood.log_entry(value, total, numbers), 0.0), axis=1)

    return machine_code.Kernel(one)


@functools.cache
def _update(likelihood: Likelihood) -> machine_code.Kernel:
    return machine_code.Kernel(likelihood.update)


@functools.cache
def _values(likelihood: Likelihood, places: int) -> Callable[[Key, Numbers, Array], np.ndarray]:
    """Values of so many events from their prior."""

    def one(key: Key, numbers: Numbers, values: Array) -> Array:
        return likelihood.draw_values(key, numbers, places, values.shape[1])

    compiled = machine_code.Kernel(one)
    return lambda key, numbers, values: np.array(compiled(key, numbers, values))


def _record(rows: Rows, state: Events, prior: LatentEvents, likelihood: Likelihood) -> dict[str, Any]:
    choices, count = _choices(state.choices), len(rows.values)
    active = matrix_of(choices, count)
    total = active @ state.values[: active.shape[1]]
    with double_precision():
        entries = np.asarray(likelihood.log_entry(rows.values, total, state.numbers))
    log_likelihood = entries[rows.seen].sum()
    return {name: np.asarray(value) for name, value in state.numbers.items()} | {
        "active": active,
        "values": state.values[: active.shape[1]],
        "choices": state.choices,
        "number_of_choices": np.array(len(choices)),
        "number_of_features": np.array(active.shape[1]),
        "log_likelihood": np.array(log_likelihood),
        "log_joint": np.array(log_likelihood + prior.log_probability(choices, count)),
    }


def _count(choices: tuple[Choice, ...]) -> int:
    """How many events were named."""
    return max((choice.event for choice in choices), default=-1) + 1


def _array(choices: tuple[Choice, ...]) -> np.ndarray:
    return np.array(choices, dtype=np.int64).reshape(len(choices), 4)


def _choices(array: np.ndarray) -> tuple[Choice, ...]:
    return tuple(Choice(int(row), int(cause), int(event), bool(asked)) for row, cause, event, asked in array)
