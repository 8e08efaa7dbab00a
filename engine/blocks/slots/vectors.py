"""Whole vectors as edges of a Gaussian: cavities, the closed form, mixtures and messages, with matrices for variances.

Messages are natural parameters (shift, precision): d numbers and a d x d matrix for each instance and state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ....compiler.blocks.slots import Branch
from ....compiler.language.nodes import Expr
from ....factors.arrays import Array
from ....factors.factor import Site
from ....factors.quadrature import HALF_LOG_2PI

Naturals: TypeAlias = tuple[Array, ...]  # of vectors: (rows..., dim) and (rows..., dim, dim)
VAGUEST = 1e-30  # the precision that stands for none
FLOOR = 1e-10  # of a cavity's precision, relative to the belief's


@runtime_checkable
@runtime_checkable
class HasValues(Protocol):
    """A cavity of a vector: mean and covariance."""

    @property
    def values(self) -> tuple[Any, ...]: ...


def cavity(belief: Naturals, message: Naturals, power: float) -> tuple[Naturals, Bool[Array, "..."]]:
    """Mean and covariance without the message, and which cavities had to be made proper.

    `belief` are flat naturals (precision * mean, -precision / 2). An improper cavity keeps a little of the belief: the
    largest part of the message that leaves every direction proper is taken out.
    """
    whole = -2.0 * belief[1] + VAGUEST * jnp.eye(belief[1].shape[-1])
    root = jnp.broadcast_to(jnp.linalg.cholesky(whole), message[1].shape)
    left = jax.scipy.linalg.solve_triangular(root, power * message[1], lower=True)
    left = jax.scipy.linalg.solve_triangular(root, jnp.swapaxes(left, -1, -2), lower=True)
    values, vectors = jnp.linalg.eigh(0.5 * (left + jnp.swapaxes(left, -1, -2)))
    floored = jnp.any(values > 1.0 - FLOOR, axis=-1)
    half = jax.scipy.linalg.solve_triangular(root, vectors, lower=True, trans=1)
    covariance = jnp.einsum("...ij,...j,...kj->...ik", half, 1.0 / jnp.maximum(1.0 - values, FLOOR), half)
    mean = jnp.einsum("...ij,...j->...i", covariance, belief[0] - power * message[0])
    return (mean, covariance), floored


def branch(
    own: Branch, power: float, arrays: Callable[[Expr], Array], cavities: Sequence[HasValues]
) -> tuple[Float[Array, "..."], dict[int, Site]]:
    """log N(0; sum of coefficient * vector + shift, 1 / precision) to a power under the cavities, and its sites."""
    precision = arrays(own.args[own.factor.role.precision])
    mean = arrays(own.shift) if own.shift is not None else jnp.zeros(precision.shape[-1])
    total = jnp.linalg.inv(power * precision)
    for number, coefficient in own.members:
        c, (m, v) = arrays(coefficient), cavities[number].values
        mean, total = mean + c[..., None] * m, total + (c**2)[..., None, None] * v
    root = jnp.linalg.cholesky(total)
    inverse = jax.scipy.linalg.cho_solve((root, True), jnp.broadcast_to(jnp.eye(total.shape[-1]), total.shape))
    pull = -jnp.einsum("...ij,...j->...i", inverse, mean)
    size, log_det = total.shape[-1], jnp.linalg.slogdet(precision)[1]
    log_evidence = 0.5 * jnp.sum(pull * mean, axis=-1) - size * HALF_LOG_2PI
    log_evidence = log_evidence - jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
    if power != 1.0:
        log_evidence += (1.0 - power) * (size * HALF_LOG_2PI - 0.5 * log_det) - 0.5 * size * jnp.log(power)
    sites = {}
    for number, coefficient in own.members:
        c = arrays(coefficient)
        score, curvature = c[..., None] * pull, (c**2)[..., None, None] * inverse
        sites[number] = Site(log_evidence, score, curvature, jnp.ones(()))
    return log_evidence, sites


def mixed(weights: Float[Array, "..."], site: Site, share: Float[Array, "..."], axes: tuple[int, ...]) -> Site:
    """The site of a mixture of sites over `axes`, which are kept; `share` is the weight of those that read the edge."""
    w = weights[..., None]
    score = jnp.sum(w * site.score, axis=axes, keepdims=True)
    away = site.score - score
    silent = (1.0 - share)[..., None]
    outer = jnp.einsum("...i,...j->...ij", away, away)
    curvature = jnp.sum(w[..., None] * (site.curvature - outer), axis=axes, keepdims=True)
    curvature = curvature - silent[..., None] * jnp.einsum("...i,...j->...ij", score, score)
    return Site(site.log_evidence, score, curvature, site.ratio)


def message(site: Site, cavity_values: Naturals) -> Naturals:
    """The natural parameters that turn the cavity into the tilted mean and covariance."""
    mean, covariance = cavity_values
    size = mean.shape[-1]
    ratio = jnp.eye(size) - site.curvature @ covariance
    right = jnp.concatenate(
        [
            site.curvature,
            (site.score + jnp.einsum("...ij,...j->...i", site.curvature, mean))[..., None],
        ],
        axis=-1,
    )
    found = jnp.linalg.solve(ratio, right)
    precision = found[..., :size]
    return found[..., size], 0.5 * (precision + jnp.swapaxes(precision, -1, -2))


def added(
    naturals: tuple[jax.Array, ...], position: Int[Array, " row"] | None, change: Naturals
) -> tuple[jax.Array, ...]:
    """Flat naturals with changes of messages added; `position` tells each message's element, None for the only one."""
    shift, precision = change
    size = shift.shape[-1]
    shift, half = shift.reshape(-1, size), -0.5 * precision.reshape(-1, size, size)
    if position is None:
        return naturals[0] + shift.sum(0), naturals[1] + half.sum(0)
    return naturals[0].at[position].add(shift), naturals[1].at[position].add(half)
