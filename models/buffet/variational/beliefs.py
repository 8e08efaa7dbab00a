"""Beliefs about single numbers: gamma for precisions and the mass, beta for probabilities; or the number given."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.learned import Beta, Gamma

LARGEST = 30.0  # log odds of a probability: beliefs stay between 1e-13 and 1 - 1e-13


class Positive(NamedTuple):
    """A gamma belief about a positive number.

    Attributes:
        mean, log_mean: () of the number and of its logarithm.
        shape: () of the gamma distribution; infinite where the number is given.
        divergence: () Kullback-Leibler divergence from the prior.
    """

    mean: Array
    log_mean: Array
    shape: Array
    divergence: Array

    def draw(self, key: Key) -> Array:
        """A number."""
        shape = jnp.where(jnp.isinf(self.shape), 1.0, self.shape)
        drawn = self.mean / shape * jnp.exp(draws.log_gamma(key, shape[None])[0])
        return jnp.where(jnp.isinf(self.shape), self.mean, drawn)


class Share(NamedTuple):
    """A beta belief about a probability: expectations of its logarithm and its complement's, mean, divergence."""

    log_on: Array
    log_off: Array
    mean: Array
    divergence: Array


def positive(given: Gamma, more: Array, rate: Array) -> Positive:
    """The belief after a likelihood `x^more exp(-rate x)`; or the number given."""
    if not isinstance(given, tuple):
        return point(jnp.asarray(float(given)))
    shape0, rate0 = given
    a, r = shape0 + more, rate0 + rate
    divergence = (a - shape0) * digamma(a) - gammaln(a) + gammaln(shape0) + shape0 * jnp.log(r / rate0)
    return Positive(a / r, digamma(a) - jnp.log(r), a, divergence + a * (rate0 - r) / r)


def point(value: Array) -> Positive:
    """Certainty."""
    return Positive(value, jnp.log(value), jnp.full((), jnp.inf), jnp.zeros(()))


def share(given: Beta, ones: Array, zeros: Array) -> Share:
    """The belief after so many ones and zeros; or the probability given."""
    if not isinstance(given, tuple):
        value = jnp.asarray(float(given))
        return Share(jnp.log(value), jnp.log1p(-value), value, jnp.zeros(()))
    a, b = given[0] + ones, given[1] + zeros
    on, off = beta_logs(a, b)
    divergence = log_beta(*map(jnp.asarray, given)) - log_beta(a, b) + ones * on + zeros * off
    return Share(on, off, a / (a + b), divergence)


def beta_logs(first: Array, second: Array) -> tuple[Array, Array]:
    """Expectations of the logarithms of a probability and of its complement."""
    both = digamma(first + second)
    return digamma(first) - both, digamma(second) - both


def log_beta(first: Array, second: Array) -> Array:
    """Log of the beta function, to the last digits: JAX's own is off by a millionth for arguments near ten."""
    return gammaln(first) + gammaln(second) - gammaln(first + second)


def probability(log_odds: Array) -> Array:
    """The belief of a boolean with these log odds, cut off at LARGEST: the best of all that are not beyond."""
    return jax.nn.sigmoid(jnp.clip(log_odds, -LARGEST, LARGEST))


def entropy(probability: Array) -> Array:
    """Of booleans, in all."""
    return -jnp.sum(probability * jnp.log(probability) + (1.0 - probability) * jnp.log1p(-probability))
