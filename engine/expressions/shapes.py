"""The distribution of an expression over a cloud, as a table of its quantiles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...compiler.language.nodes import Apply, Expr, Let
from ...factors.arrays import Array
from ..distributions.tabulated import SCORES, Tabulated
from . import clouds
from .clouds import Cloud, NumberKey
from .parts import Data, IsKnown, evaluated, whole_key
from .statistics import is_linear

FINE = np.linspace(-8.0, 8.0, 2001)  # of one standard normal number
_WEIGHTS = np.exp(-0.5 * FINE**2)
_DEAD = 1e-25  # the share of all probability that does not count, whatever the value there


def gaussian_part(expr: Expr, cloud: Cloud, is_known: IsKnown) -> Expr | None:
    """The one part of an expression through which all that is random enters, if that is Gaussian; itself if it is."""
    if cloud.cases > 1 or cloud.points:
        return None
    while not is_linear(expr, cloud, is_known):
        if isinstance(expr, Let):
            expr = expr.expression
            continue
        random = [arg for arg in expr.args if not is_known(arg)] if isinstance(expr, Apply) else []
        if len(random) != 1:
            return None
        expr = random[0]
    return expr


def _one_gaussian(cloud: Cloud) -> NumberKey | None:
    """The number of a cloud that has no other, if it is Gaussian."""
    return cloud.names[0] if cloud.cases == 1 and not cloud.points and len(cloud.names) == 1 else None


def of_cloud(expr: Expr, cloud: Cloud, data: Data, is_known: IsKnown) -> Float[Array, "instances scores"]:
    """The values of an expression at the `SCORES`: its quantiles where a standard normal number has these."""

    def at(values: dict[NumberKey, Array], shape: tuple[int, ...]) -> Array:
        return jnp.broadcast_to(jnp.asarray(evaluated(expr, values, data, is_known), float), shape)

    if (part := gaussian_part(expr, cloud, is_known)) is not None:
        spread = clouds.spread(cloud)
        mean, variance = clouds.expectation(spread, lambda at: evaluated(part, at, data, is_known))
        points = (mean[:, None] + jnp.sqrt(variance)[:, None] * FINE)[:, None]
        return tabled(at({whole_key(part): points}, points.shape)[:, 0], jnp.asarray(_WEIGHTS))
    if (one := _one_gaussian(cloud)) is not None:
        points = (cloud.mean[:, 0] + jnp.sqrt(cloud.covariance[:, 0, 0]) * FINE)[:, None]
        return tabled(at({one: points}, points.shape)[:, 0], jnp.asarray(_WEIGHTS))
    if not cloud.names:
        values = {key: points[..., None] for key, points in cloud.points.items()}
        return tabled(at(values, (*cloud.log_weights.shape, 1))[..., 0], jax.nn.softmax(cloud.log_weights, axis=1))
    values = clouds.scattered(cloud)
    return tabled(at(values.at, values.weights.shape)[:, 0], values.weights[:, 0])


def of_table(
    expr: Expr, key: NumberKey, table: Tabulated, data: Data, is_known: IsKnown
) -> Float[Array, "instances scores"]:
    """The values at the `SCORES` of an expression of a single number, whose own table is given; rows as there."""
    points = jnp.moveaxis(table._at(jnp.asarray(FINE)[:, None]), 0, -1)[:, None]
    values = jnp.broadcast_to(jnp.asarray(evaluated(expr, {key: points}, data, is_known), float), points.shape)
    return tabled(values[:, 0], jnp.asarray(_WEIGHTS))


def tabled(
    values: Float[Array, "instances points"], weights: Float[Array, "... points"]
) -> Float[Array, "instances scores"]:
    """The quantiles at the `SCORES` of weighted values, one row for each instance."""
    weights = jnp.broadcast_to(weights / jnp.sum(weights, axis=-1, keepdims=True), values.shape)
    likely = jnp.take_along_axis(values, jnp.argmax(weights, axis=-1)[:, None], -1)
    values = jnp.where(weights > _DEAD, values, likely)  # where there is no weight, there need be no value

    def quantiles(values: Float[Array, " points"], weights: Float[Array, " points"]) -> Float[Array, " scores"]:
        order = jnp.argsort(values)
        mass = weights[order]
        levels = jnp.cumsum(mass) - 0.5 * mass
        return jnp.interp(SCORES, jax.scipy.special.ndtri(jnp.clip(levels, 1e-300, 1.0 - 1e-16)), values[order])

    return jax.vmap(quantiles)(values, weights)


def origin_of(expr: Expr, cloud: Cloud, is_known: IsKnown) -> str:
    """What a table is made of, for a reader: nothing but one Gaussian number, or so many points."""
    if _one_gaussian(cloud) is not None or gaussian_part(expr, cloud, is_known) is not None:
        return ""
    return f" of {clouds.SCATTERED if cloud.names else cloud.cases} points"
