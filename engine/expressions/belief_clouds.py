"""The cloud of one belief: a number, or the inner products of one vector with known ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...factors.arrays import Array
from ...factors.domains import Domain
from ...factors.families import ExponentialFamily, Family
from ...factors.moments import Vector
from ...factors.quadrature.tilted import tilted
from ..distributions.belief_points import on_counts, rule
from ..distributions.cases import Cases
from ..distributions.count_table import CountTable
from ..distributions.shown import Shown
from . import clouds
from .clouds import Cloud, NumberKey
from .parts import Belief, NoCloud

_COUNTS = 600  # points of a count: a narrow one has all its numbers, so that comparisons are exact
_TILTED = 400  # points; more of them are those of a rule


def of_number(key: NumberKey, family: ExponentialFamily | Shown, number: int) -> Cloud:
    """The cases of Gaussians, the numbers that a count may be, or about `number` points over any other belief.

    The belief has an axis of instances.
    """
    if isinstance(family, Cases) and all(_is_own(part, "real") for part in family.parts):
        mean, variance = _joined(family, lambda part: part.mean()), _joined(family, lambda part: part.variance())
        return Cloud(_log_weights(family), {}, (key,), mean[..., None], variance[..., None, None])
    if isinstance(family, CountTable):
        return clouds.of_points({key: family.values()}, family.log_probabilities)
    if Domain(family.kind).is_count:  # by element: the counts of a plate may lie orders of magnitude apart
        points = max(number, _COUNTS) if _is_own(family, "count") else _COUNTS  # the density of a mixture is dear
        values, weights = jax.vmap(lambda one: on_counts(one, points))(family)
        return clouds.of_points({key: values}, jnp.log(weights))
    if _is_own(family, "positive", "unit") and number <= _TILTED:
        found = tilted(lambda x: jnp.zeros_like(x), (family.kind,), (tuple(map(jnp.asarray, family.naturals())),))
        step = max(1, found.log_weights.shape[-1] // number)
        return clouds.of_points({key: found.values[0][..., ::step]}, found.log_weights[..., ::step])
    values, weights = jax.vmap(lambda one: rule(one, number))(family)
    return clouds.of_points({key: values}, jnp.log(weights))


def of_directions(keys: tuple[NumberKey, ...], family: Belief, directions: Float[Array, "instances keys D"]) -> Cloud:
    """The inner products of a vector with `directions`; NoCloud if it is no mixture of Gaussians.

    The belief has an axis of instances.
    """
    if _is_own(family, "vector"):
        found = family.moments()
        assert isinstance(found, Vector)
        mean, covariance = found.mean[:, None], found.covariance[:, None]
        log_weights = jnp.zeros((mean.shape[0], 1))
    elif isinstance(family, Cases) and all(_is_own(part, "vector") for part in family.parts):
        parts: tuple[Any, ...] = family.parts
        mean = jnp.concatenate([part.mean() for part in parts], axis=1)
        covariance = jnp.concatenate([part.covariance() for part in parts], axis=1)
        log_weights = _log_weights(family)
    else:
        raise NoCloud
    along = jnp.einsum("nki,nci->nck", directions, mean)
    return Cloud(log_weights, {}, keys, along, jnp.einsum("nki,ncij,nlj->nckl", directions, covariance, directions))


def _is_own(family: Any, *kinds: str) -> TypeGuard[ExponentialFamily]:
    """Whether a belief belongs to the family of one of these domains."""
    return isinstance(family, ExponentialFamily) and family.kind in kinds


def _joined(family: Cases, function: Callable[[Family], Array]) -> Float[Array, "instances cases"]:
    return jnp.concatenate([function(part) for part in family.parts], axis=-1)


def _log_weights(family: Cases) -> Float[Array, "instances cases"]:
    return jnp.log(jnp.concatenate(family.weights, axis=-1))
