"""N(s; b, Q) exp(l' s - s' L s / 2) of a vector s: its covariance, its mean and its integral, also where L is singular.

What is seen through a projection has an L of lower rank, which may be many times Q^-1 where it has any: I + Q L then
loses what the other directions have. With L = F F' and l = F k + r, and W = I + F' Q F = C C', nothing is lost:
(I + Q L)^-1 = I - Q Y' Y for Y = C^-1 F', L (I + Q L)^-1 = Y' Y, and det (I + Q L) = det W. The roots F are found by
elimination with the largest pivot; pivots that are rounding of their diagonal elements count as zero. An L that is not
positive semidefinite, as messages of expectation propagation may be, is taken as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from .small_matrices import (
    UNROLLED,
    applied,
    cholesky,
    eye,
    inner,
    inverse,
    log_det,
    outer,
    product,
    root_inverse,
    symmetric,
    transposed,
)

EVENT_AXES = (2, 2, 1, 2, 1, 0)  # of what `Conditioned` has, but for lanes
ROUNDING = 16.0  # times the dimension and the unit of rounding: a pivot below is none


class Conditioned(NamedTuple):
    """With S = (I + Q L)^-1: S; S Q; its mean S b + S Q l; L S; S' (l - L b); and the logarithm of the integral."""

    shrink: Float[jax.Array, "... d d lanes"]
    covariance: Float[jax.Array, "... d d lanes"]
    mean: Float[jax.Array, "... d lanes"]
    precision: Float[jax.Array, "... d d lanes"]
    shift: Float[jax.Array, "... d lanes"]
    log_z: Float[jax.Array, "... lanes"]


class Root(NamedTuple):
    """F and k with L = F F' and l = F k + rest, and where there is no such F."""

    root: Float[jax.Array, "... d d lanes"]
    along: Float[jax.Array, "... d lanes"]
    rest: Float[jax.Array, "... d lanes"]
    indefinite: Bool[jax.Array, "... lanes"]


@jax.custom_jvp
def conditioned(
    q: Float[jax.Array, "... d d lanes"],
    b: Float[jax.Array, "... d lanes"],
    precision: Float[jax.Array, "... d d lanes"],
    shift: Float[jax.Array, "... d lanes"],
) -> Conditioned:
    """N(s; b, q) exp(shift' s - s' precision s / 2): see the module."""
    if b.shape[-2] == 1:
        return plainly(q, b, precision, shift)
    root = root_of(precision, shift)
    found = by_root(q, b, root)

    def mixed(_: None) -> Conditioned:
        plain = plainly(q, b, precision, shift)
        flags = [root.indefinite[..., *(None,) * axes, :] for axes in EVENT_AXES]
        each = zip(flags, plain, found, strict=True)
        return Conditioned(*(jnp.where(flag, own, other) for flag, own, other in each))

    return jax.lax.cond(jnp.any(root.indefinite), mixed, lambda _: found, None)


@conditioned.defjvp
def _(primals, tangents):
    # The elimination has no derivative where a pivot counts as zero; the same function told plainly has.
    return conditioned(*primals), jax.jvp(plainly, primals, tangents)[1]


def plainly(q: jax.Array, b: jax.Array, precision: jax.Array, shift: jax.Array) -> Conditioned:
    """As `conditioned`, from the inverse of I + Q L."""
    m = eye(b.shape[-2]) + product(q, precision)
    s = inverse(m)
    covariance = symmetric(product(s, q))
    pulled = applied(s, b)
    log_z = 0.5 * inner(shift, applied(covariance, shift)) + inner(shift, pulled)
    log_z = log_z - 0.5 * inner(b, applied(precision, pulled)) - 0.5 * log_det(m)
    back = applied(transposed(s), shift - applied(precision, b))
    mean = applied(covariance, shift) + pulled
    return Conditioned(s, covariance, mean, symmetric(product(precision, s)), back, log_z)


def by_root(q: jax.Array, b: jax.Array, found: Root) -> Conditioned:
    """As `conditioned`, from a root of the precision.

    The covariance is S Q S' + (Q F W^-1) (Q F W^-1)': no difference of large numbers stands in it.
    """
    root, along, rest, _ = found
    identity = eye(b.shape[-2])
    own = cholesky(symmetric(identity + product(product(transposed(root), q), root)))
    h = root_inverse(own)
    y = product(h, transposed(root))
    u = product(q, transposed(y))
    s = identity - product(u, y)
    share = product(u, h)
    covariance = symmetric(product(product(s, q), transposed(s)) + product(share, transposed(share)))
    told, expected = applied(h, along), applied(y, b)
    pulled = b - applied(u, expected)
    mean = applied(u, told) + pulled
    log_z = 0.5 * (inner(along, along) - inner(told - expected, told - expected)) + inner(rest, mean)
    spread = applied(covariance, rest)
    log_z = log_z + 0.5 * inner(rest, spread)
    log_z = log_z - jnp.sum(jnp.log(jnp.diagonal(own, axis1=-3, axis2=-2)), axis=-1)
    back = applied(transposed(y), told - expected) + rest - applied(transposed(y), applied(transposed(u), rest))
    return Conditioned(s, covariance, mean + spread, product(transposed(y), y), back, log_z)


def root_of(precision: jax.Array, shift: jax.Array) -> Root:
    """A root of the precision, by elimination with the largest pivot of what is left, as a share of what was there."""
    dimension, kind = shift.shape[-2], shift.dtype
    precision = symmetric(precision)
    diagonal = jnp.moveaxis(jnp.diagonal(precision, axis1=-3, axis2=-2), -1, -2)
    scale = jnp.where(diagonal > 0.0, diagonal, 1.0)
    least = ROUNDING * dimension * jnp.finfo(kind).eps
    rows = jnp.arange(dimension)[:, None]

    def step(carry: tuple[jax.Array, jax.Array], k: int | jax.Array) -> tuple[tuple[jax.Array, jax.Array], tuple]:
        matrix, vector = carry
        left = jnp.moveaxis(jnp.diagonal(matrix, axis1=-3, axis2=-2), -1, -2)
        share = left / scale
        at = jnp.argmax(share, axis=-2)[..., None, :] == rows
        column = jnp.sum(jnp.where(at[..., None, :, :], matrix, 0.0), axis=-2)
        pivot, largest = jnp.sum(jnp.where(at, left, 0.0), -2), jnp.max(share, axis=-2)
        sound = largest > least
        safe = jnp.where(sound, pivot, 1.0)
        own = jnp.where(sound[..., None, :], column * jax.lax.rsqrt(safe)[..., None, :], 0.0)
        part = jnp.where(sound, jnp.sum(jnp.where(at, vector, 0.0), -2) * jax.lax.rsqrt(safe), 0.0)
        vector = vector - own * part[..., None, :]
        matrix = matrix - outer(own, own)
        # What was eliminated is zero but for rounding.
        vector = jnp.where(at & sound[..., None, :], 0.0, vector)
        gone = (at[..., :, None, :] | at[..., None, :, :]) & sound[..., None, None, :]
        return (jnp.where(gone, 0.0, matrix), vector), (own, part)

    if dimension <= UNROLLED:
        carry, found = (precision, shift), []
        for k in range(dimension):
            carry, own = step(carry, k)
            found.append(own)
        root = jnp.stack([own for own, _ in found], axis=-2)
        along = jnp.stack([part for _, part in found], axis=-2)
    else:
        carry, (root, along) = jax.lax.scan(step, (precision, shift), jnp.arange(dimension))
        root, along = jnp.moveaxis(root, 0, -2), jnp.moveaxis(along, 0, -2)
    lengths = jnp.sqrt(scale)
    left = jnp.abs(carry[0]) / (lengths[..., :, None, :] * lengths[..., None, :, :])
    return Root(
        root, along, carry[1], ~(jnp.max(left, axis=(-3, -2)) <= 4.0 * least) | jnp.any(diagonal < 0.0, axis=-2)
    )
