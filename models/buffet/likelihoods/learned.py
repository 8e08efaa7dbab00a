"""Numbers that are given or learned: positive ones under a gamma prior, probabilities under a beta prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.sampling.conditionals.slices import slice_step
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError
from .contract import Rows

Gamma: TypeAlias = float | tuple[float, float]  # a positive number, or shape and rate of its prior
Beta: TypeAlias = float | tuple[float, float]  # a probability, or the two parameters of its prior

WIDTH = 1.0  # of the first interval of a slice, in log odds or in logarithms
LEAST = 1e-30  # mean square of entries that chains begin with, where all are zeros


def check_gamma(call: str, given: Gamma) -> None:
    """ModelError where it is no positive number, or no pair of them."""
    values = given if isinstance(given, tuple) else (given, given)
    if len(values) != 2 or not all(_is_positive(value) for value in values):
        raise ModelError(
            f"{call}: give a positive number, or (shape, rate) of the gamma prior to learn it under; found {given!r}."
        )


def check_beta(call: str, given: Beta) -> None:
    """ModelError where it is no probability, or no pair of positive numbers."""
    pair = isinstance(given, tuple)
    values = given if isinstance(given, tuple) else (given, given)
    if len(values) != 2 or not all(_is_positive(value) and (pair or value < 1.0) for value in values):
        raise ModelError(
            f"{call}: give a number between 0 and 1, or the two parameters of the beta prior to learn it under; found "
            f"{given!r}."
        )


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(0.0 < value < np.inf)


def draw_gamma(key: Key, given: Gamma) -> Array:
    """The number given, or a draw from its prior."""
    if not isinstance(given, tuple):
        return jnp.asarray(float(given))
    return jnp.exp(draws.log_gamma(key, jnp.asarray([given[0]]))[0]) / given[1]


def gamma_given(key: Key, given: Gamma, shape: Array, rate: Array | float) -> Array:
    """A number given what adds so much to the shape and the rate of its gamma prior; or the one given."""
    if not isinstance(given, tuple):
        return jnp.asarray(float(given))
    total = jnp.reshape(given[0] + shape, (1,))
    return jnp.exp(draws.log_gamma(key, total)[0]) / (given[1] + rate)


def draw_precision(key: Key, given: Gamma, number: Array, squares: Array) -> Array:
    """A precision given so many Gaussian numbers, whose squares have this sum; or the one given."""
    return gamma_given(key, given, 0.5 * number, 0.5 * squares)


def mean_square(rows: Rows) -> float:
    """Of the entries that are seen, about zero."""
    return float(np.mean(np.square(np.asarray(rows.values)[np.asarray(rows.seen)])))


def first_precision(given: Gamma, square: float, times: float) -> Array:
    """The number given, or so many times the precision of entries of this mean square."""
    return jnp.asarray(times / max(square, LEAST) if isinstance(given, tuple) else float(given))


def first_gamma(given: Gamma) -> Array:
    """The number given, or the mean of its prior."""
    return jnp.asarray(given[0] / given[1] if isinstance(given, tuple) else float(given))


def slice_gamma(key: Key, given: Gamma, now: Array, log_likelihood: Callable[[Array], Array]) -> Array:
    """A positive number moved by one transition of a slice sampler in its logarithm, where it is learned."""
    if not isinstance(given, tuple):
        return now

    def log_density(z: Array) -> Array:
        return log_likelihood(jnp.exp(z)) + given[0] * z - given[1] * jnp.exp(z)

    z, _ = slice_step(key, log_density, jnp.log(now), jnp.asarray(WIDTH))
    return jnp.exp(z)


def draw_beta(key: Key, given: Beta) -> Array:
    """The probability given, or a draw from its prior."""
    if not isinstance(given, tuple):
        return jnp.asarray(float(given))
    logs = draws.log_gamma(key, jnp.asarray(given))
    return jax.nn.sigmoid(logs[0] - logs[1])


def first_beta(given: Beta) -> Array:
    """The probability given, or the mean of its prior."""
    return jnp.asarray(given[0] / (given[0] + given[1]) if isinstance(given, tuple) else float(given))


def beta_given(key: Key, given: Beta, ones: Array, zeros: Array) -> Array:
    """A probability given so many ones and zeros; or the one given."""
    if not isinstance(given, tuple):
        return jnp.asarray(float(given))
    logs = draws.log_gamma(key, jnp.stack([given[0] + ones, given[1] + zeros]))
    return jax.nn.sigmoid(logs[0] - logs[1])


def slice_beta(key: Key, given: Beta, now: Array, log_likelihood: Callable[[Array], Array]) -> Array:
    """A probability moved by one transition of a slice sampler in its log odds, where it is learned."""
    if not isinstance(given, tuple):
        return now

    def log_density(z: Array) -> Array:
        one, other = jax.nn.log_sigmoid(z), jax.nn.log_sigmoid(-z)
        return log_likelihood(jax.nn.sigmoid(z)) + given[0] * one + given[1] * other

    z, _ = slice_step(key, log_density, jnp.log(now) - jnp.log1p(-now), jnp.asarray(WIDTH))
    return jax.nn.sigmoid(z)
