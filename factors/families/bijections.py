"""Bijections from unconstrained vectors to values, with the logarithm of their Jacobian; source carpenter2017stan.

Each works on one value; `Bijection.over` repeats it over plates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..arrays import Array, Numeric

Coordinates = Float[Array, " size"]


@dataclasses.dataclass(frozen=True)
class Bijection:
    """x = forward(z) and z = backward(x) for z of `size` numbers; log_jacobian(z) = log |det dx/dz|."""

    size: int
    forward: Callable[[Coordinates], Array]
    backward: Callable[[Array], Coordinates]
    log_jacobian: Callable[[Coordinates], Float[Array, ""]]

    def over(self, shape: tuple[int, ...]) -> Bijection:
        """The same for an array of values with these leading axes, read from one flat vector."""
        count = math.prod(shape)

        def rows(z: Array) -> Array:
            return z.reshape((count, self.size))

        def forward(z: Array) -> Array:
            x = jax.vmap(self.forward)(rows(z))
            return x.reshape((*shape, *x.shape[1:]))

        def backward(x: Numeric) -> Array:
            x = jnp.asarray(x, float)
            return jax.vmap(self.backward)(x.reshape((count, *x.shape[len(shape) :]))).ravel()

        return Bijection(count * self.size, forward, backward, lambda z: jnp.sum(jax.vmap(self.log_jacobian)(rows(z))))


def line() -> Bijection:
    """Real numbers, as they are."""
    return Bijection(1, lambda z: z[0], lambda x: x[None], lambda z: jnp.zeros(()))


def space(dimension: int) -> Bijection:
    """Vectors, as they are."""
    return Bijection(dimension, lambda z: z, lambda x: x, lambda z: jnp.zeros(()))


def interval(low: float, high: float) -> Bijection:
    """Numbers between `low` and `high`, either of which may be infinite: exponentials and logistic functions."""
    if math.isinf(low) and math.isinf(high):
        return line()
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


def broken_stick(classes: int) -> Bijection:
    """Probability vectors: piece k takes the part sigmoid(z_k - log(classes - k)) of what is left."""
    shift = np.log(np.arange(classes - 1, 0, -1))

    def logs(z: Array) -> tuple[Array, Array, Array]:
        taken, kept = jax.nn.log_sigmoid(z - shift), jax.nn.log_sigmoid(shift - z)
        left = jnp.concatenate([jnp.zeros(1), jnp.cumsum(kept)])
        return taken, kept, left

    def forward(z: Array) -> Array:
        taken, _, left = logs(z)
        return jnp.exp(jnp.concatenate([taken + left[:-1], left[-1:]]))

    def backward(x: Array) -> Array:
        left = jnp.cumsum(x[::-1])[::-1]
        return jnp.log(x[:-1]) - jnp.log(left[1:]) + shift

    def log_jacobian(z: Array) -> Array:
        taken, kept, left = logs(z)
        return jnp.sum(taken + kept + left[:-1])

    return Bijection(classes - 1, forward, backward, log_jacobian)


def cholesky_factor(dimension: int) -> Bijection:
    """Positive definite matrices L L^T, L lower triangular, its diagonal the exponential of the first `dimension`."""
    rows, columns = np.tril_indices(dimension, -1)
    powers = np.arange(dimension + 1, 1, -1)

    def forward(z: Array) -> Array:
        lower = jnp.diag(jnp.exp(z[:dimension])).at[rows, columns].set(z[dimension:])
        return lower @ lower.T

    def backward(x: Array) -> Array:
        lower = jnp.linalg.cholesky(x)
        return jnp.concatenate([jnp.log(jnp.diagonal(lower)), lower[rows, columns]])

    def log_jacobian(z: Array) -> Array:
        return dimension * math.log(2.0) + jnp.sum(powers * z[:dimension])

    return Bijection(dimension * (dimension + 1) // 2, forward, backward, log_jacobian)


def beside(
    first: Bijection,
    second: Bijection,
    together: Callable[[Array, Array], Array],
    apart: Callable[[Array], tuple[Array, Array]],
) -> Bijection:
    """Two values side by side, put `together` and taken `apart`."""
    size = first.size
    return Bijection(
        size + second.size,
        lambda z: together(first.forward(z[:size]), second.forward(z[size:])),
        lambda x: jnp.concatenate([part.backward(own) for part, own in zip((first, second), apart(x), strict=True)]),
        lambda z: first.log_jacobian(z[:size]) + second.log_jacobian(z[size:]),
    )
