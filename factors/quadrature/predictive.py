"""The predictive distribution of an outcome from a log density alone: the member of its family of equal statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from ..arrays import Array
from ..errors import UnsupportedError
from ..families import FOR_DOMAIN, Bernoulli, Beta, Dirichlet, ExponentialFamily, Gamma, Gaussian, Poisson
from ..moments import Simplex, Unit
from ..special import TINY
from .nodes import Rule

Values: TypeAlias = Float[Array, " point"]
_NODES = 400
_PASSES = 4
COUNTS = 1024
_SURE = 1e-12


def predictive(
    name: str, kind: str, log_density: Callable[[Array, dict], Array], rules: list[Rule]
) -> ExponentialFamily:
    """The family instance of an outcome of this kind, integrated over its arguments by `rules`, matched in moments.

    Continuous outcomes are integrated on a grid that is moved to where the mass is, discrete ones by enumeration.
    UnsupportedError for vectors, simplices and matrices: their factors must declare `predict`.
    """
    weights, points = _joint(rules)

    def density(out: Shaped[Array, " value"]) -> Float[Array, " value"]:
        """The predictive density at values of the outcome."""
        if not points:
            return jnp.exp(jax.vmap(lambda x: log_density(x, {}))(out))
        table = jax.vmap(lambda p: jax.vmap(lambda x: log_density(x, p))(out))(points)
        return weights @ jnp.where(weights[:, None] == 0, 0.0, jnp.exp(table))

    if kind == "boolean":
        mass = density(jnp.asarray([0.0, 1.0]))
        return Bernoulli(jnp.log(mass[1]) - jnp.log(mass[0]))
    if kind == "count":
        x = jnp.arange(COUNTS, dtype=float)
        mass = density(x)
        return Poisson(jnp.log(x @ mass / mass.sum()))
    if kind not in LINES:
        raise UnsupportedError(
            f"'{name}' declares no `predict`, and the predictive distribution of a {kind} outcome cannot be found by "
            "quadrature over it. Give the factor a `predict` function, or observe the variable."
        )
    place, log_slope, project = LINES[kind]
    u, h = grid(lambda u: jnp.log(density(place(u))) + log_slope(u))
    mass = jnp.where(h > 0, h, 0.0)
    family: Any = FOR_DOMAIN[kind]  # each has `stats_of`, with arguments of its own
    stats = family.stats_of(place(u))
    return project(tuple(mass @ stat / mass.sum() for stat in stats))


def unit_mean(moments: Unit) -> Float[Array, "*plates"]:
    """E p of a Beta belief with these moments, also of a point, which no Beta is."""
    point = jnp.exp(moments.log) + jnp.exp(moments.log_complement) > 1.0 - _SURE
    safe = (jnp.where(point, -1.0, m) for m in moments)
    return jnp.where(point, jnp.exp(moments.log), Beta.from_stats(tuple(safe)).mean())


def simplex_mean(moments: Simplex) -> Float[Array, "*plates class"]:
    """E p of a Dirichlet belief with these moments, also of a point, which no Dirichlet is."""
    point = jnp.exp(moments.log).sum(-1, keepdims=True) > 1.0 - _SURE
    size = moments.log.shape[-1]
    safe = jnp.where(point, -jnp.log(1.0 * size) - 1.0, moments.log)
    return jnp.where(point, jnp.exp(moments.log), Dirichlet.from_stats((safe,)).mean())


def _joint(rules: list[Rule]) -> tuple[Float[Array, " point"], dict[str, Shaped[Array, "point ..."]]]:
    """The product of the rules as one list of weights and points, thinned where it is long."""
    weights: Array = jnp.ones(1)
    points: dict[str, Array] = {}
    for rule in rules:
        size = rule.weights.shape[0]
        points = {edge: jnp.repeat(p, size, axis=0) for edge, p in points.items()}
        points |= {edge: jnp.tile(p, (weights.shape[0], *(1,) * (p.ndim - 1))) for edge, p in rule.points.items()}
        weights = (weights[:, None] * rule.weights).ravel()
    return weights, points


def grid(log_density: Callable[[Array], Array], reach: float = 1e3) -> tuple[Values, Values]:
    """Points of the line and the mass at each; see `stretched_grid`."""
    _, u, mass = stretched_grid(log_density, reach)
    return u, mass


def stretched_grid(
    log_density: Callable[[Array], Array], reach: float = 1e3
) -> tuple[Callable[[Array], tuple[Array, Array]], Values, Values]:
    """Points of the line, the mass at each, and the map to the line and its slope from the scale [-1, 1].

    The first grid is stretched over many scales; the next ones are centred at the mean and as wide as the mass needs,
    the last one to `reach` times that.
    """
    t = jnp.asarray(np.linspace(-1.0, 1.0, _NODES))
    centre, scale = jnp.zeros(()), jnp.asarray(1e-2)
    for number in range(_PASSES):
        last = reach if number == _PASSES - 1 else 1e3
        place = _stretched(centre, scale, float(np.arcsinh(1e8 if number == 0 else last)))
        u, slope = place(t)
        height = log_density(u)
        height = jnp.where(jnp.isnan(height), -jnp.inf, height)
        mass = jnp.exp(height - jnp.max(height)) * slope
        mass = mass / mass.sum()
        if number == _PASSES - 1:
            return place, u, mass
        level = jnp.cumsum(mass)
        centre = jnp.interp(0.5, level, u)
        scale = 0.25 * jnp.maximum(jnp.interp(0.84, level, u) - jnp.interp(0.16, level, u), 1e-12)
    raise AssertionError("there is a last pass")


def _stretched(
    centre: Float[Array, ""], scale: Float[Array, ""], reach: float
) -> Callable[[Array], tuple[Array, Array]]:
    return lambda t: (centre + scale * jnp.sinh(reach * t), jnp.cosh(reach * t))


def _inside(p: Values) -> Values:
    """Within (0, 1) by as much as the precision shows, in which both logarithms are finite."""
    return jnp.clip(p, max(TINY, float(jnp.finfo(p.dtype).tiny)), 1.0 - float(jnp.finfo(p.dtype).epsneg))


LINES: dict[str, tuple[Callable, Callable, Callable]] = {
    "real": (lambda u: u, jnp.zeros_like, Gaussian.from_stats),
    "positive": (
        lambda u: jnp.exp(jnp.clip(u, -700.0, 700.0)),
        lambda u: jnp.where(jnp.abs(u) > 700.0, -jnp.inf, u),  # beyond, the place is clipped
        Gamma.from_stats,
    ),
    "unit": (
        lambda u: _inside(jax.nn.sigmoid(u)),
        lambda u: jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u),
        Beta.from_stats,
    ),
}
