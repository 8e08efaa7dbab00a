"""Bijections from unconstrained vectors to the values of a domain, with the logarithm of their Jacobian.

Each works on one value; `Bijection.over` repeats it over the plates of a variable.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ...factors.domains import Domain
from ...factors.errors import UnsupportedError


@dataclasses.dataclass(frozen=True)
class Bijection:
    """x = forward(z) and z = backward(x) for z of `size` numbers; log_jacobian(z) = log |det dx/dz|."""

    size: int
    forward: Callable[[Any], Any]
    backward: Callable[[Any], Any]
    log_jacobian: Callable[[Any], Any]

    def over(self, shape: tuple[int, ...]) -> Bijection:
        """The same for an array of values with these leading axes, read from one flat vector."""
        count = math.prod(shape)

        def rows(z):
            return z.reshape((count, self.size))

        def forward(z):
            x = jax.vmap(self.forward)(rows(z))
            return x.reshape((*shape, *x.shape[1:]))

        def backward(x):
            x = jnp.asarray(x, float)
            return jax.vmap(self.backward)(x.reshape((count, *x.shape[len(shape) :]))).ravel()

        return Bijection(count * self.size, forward, backward, lambda z: jnp.sum(jax.vmap(self.log_jacobian)(rows(z))))


def bijection(domain: Domain, size: int | None, name: str) -> Bijection:
    """The bijection for one value of `domain`; `size` is its number of classes or dimension.

    Reals stay, positive numbers are exponentials, probabilities logistic, simplices broken sticks, positive definite
    matrices Cholesky factors with a logarithmic diagonal. UnsupportedError for a discrete domain.
    Source: carpenter2017stan.
    """
    match domain.kind, size:
        case "real", _:
            return Bijection(1, lambda z: z[0], lambda x: x[None], lambda z: jnp.zeros(()))
        case "vector", int(d):
            return Bijection(d, lambda z: z, lambda x: x, lambda z: jnp.zeros(()))
        case "positive", _:
            return interval(0.0, math.inf)
        case "unit", _:
            return interval(0.0, 1.0)
        case "simplex", int(k):
            return _simplex(k)
        case "posdef", int(d):
            return _posdef(d)
    raise UnsupportedError(
        f"'{name}' is {domain}, which has no unconstrained coordinates: gradients and samplers need continuous values. "
        "Sum it out (discrete variables of a single plate element are), or observe it."
    )


def interval(low: float, high: float) -> Bijection:
    """Numbers between `low` and `high`, either of which may be infinite."""
    if math.isinf(low) and math.isinf(high):
        return Bijection(1, lambda z: z[0], lambda x: x[None], lambda z: jnp.zeros(()))
    if math.isinf(high):
        return Bijection(1, lambda z: low + jnp.exp(z[0]), lambda x: jnp.log(x - low)[None], lambda z: z[0])
    if math.isinf(low):
        return Bijection(1, lambda z: high - jnp.exp(z[0]), lambda x: jnp.log(high - x)[None], lambda z: z[0])
    width = high - low
    return Bijection(
        1,
        lambda z: low + width * jax.nn.sigmoid(z[0]),
        lambda x: (jnp.log(x - low) - jnp.log(high - x))[None],
        lambda z: jnp.log(width) + jax.nn.log_sigmoid(z[0]) + jax.nn.log_sigmoid(-z[0]),
    )


def _simplex(classes: int) -> Bijection:
    """Stick breaking: piece k takes the part sigmoid(z_k - log(classes - k)) of what is left."""
    shift = jnp.log(jnp.arange(classes - 1, 0, -1))

    def logs(z):
        taken, kept = jax.nn.log_sigmoid(z - shift), jax.nn.log_sigmoid(shift - z)
        left = jnp.concatenate([jnp.zeros(1), jnp.cumsum(kept)])
        return taken, kept, left

    def forward(z):
        taken, _, left = logs(z)
        return jnp.exp(jnp.concatenate([taken + left[:-1], left[-1:]]))

    def backward(x):
        left = jnp.cumsum(x[::-1])[::-1]
        return jnp.log(x[:-1]) - jnp.log(left[1:]) + shift

    def log_jacobian(z):
        taken, kept, left = logs(z)
        return jnp.sum(taken + kept + left[:-1])

    return Bijection(classes - 1, forward, backward, log_jacobian)


def _posdef(dimension: int) -> Bijection:
    """X = L L^T, L lower triangular, its diagonal the exponential of the first `dimension` numbers."""
    rows, columns = jnp.tril_indices(dimension, -1)
    powers = jnp.arange(dimension + 1, 1, -1)

    def forward(z):
        lower = jnp.diag(jnp.exp(z[:dimension])).at[rows, columns].set(z[dimension:])
        return lower @ lower.T

    def backward(x):
        lower = jnp.linalg.cholesky(x)
        return jnp.concatenate([jnp.log(jnp.diagonal(lower)), lower[rows, columns]])

    def log_jacobian(z):
        return dimension * math.log(2.0) + jnp.sum(powers * z[:dimension])

    return Bijection(dimension * (dimension + 1) // 2, forward, backward, log_jacobian)
