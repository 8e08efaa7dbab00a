"""Points and weights of scalar beliefs: rules over which a function of a random number is averaged."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ...factors.arrays import Array, Numeric
from ...factors.families import ExponentialFamily
from ...factors.quadrature.belief_rules import GAUSSIAN_REACH, belief_rule
from ...factors.quadrature.predictive import LINES, stretched_grid
from .shown import Belief

_REACH_OF_COUNTS = 20.0  # standard deviations: a geometric tail falls slowly, that of a Poisson as a Gaussian's
_NOTHING = 1e-40  # of the largest mass on a grid
_FAR, _LINE = 1e8, 120  # how far a grid reaches over its width, and its least number of points
_SCALE, _HALVINGS = 400, 44  # points on which the ends of a density are looked for, and steps in between
_DIVERGES = 1e-3  # share of the outermost point, of the largest, in a sum that has no limit
_UNLIKELY = 1e-5  # and its weight, of the largest: the end of a bounded belief may have both


def is_scalar(family: Belief) -> bool:
    """Whether `rule` covers it."""
    return family.kind in ("real", "sparse", "positive", "unit", "count", "boolean", "category")


def rule(family: Belief, number: int) -> tuple[Array, Array]:
    """Points and weights of a scalar belief: a trapezoid rule that reaches far into the tails."""
    if (found := belief_rule(family, number)) is not None:
        return found
    if family.kind == "count":
        return on_counts(family, max(number, _LINE))
    return _on_a_line(family, number)


def on_counts(family: Belief, number: int) -> tuple[Array, Array]:
    """Whole numbers, equally spaced, over what holds the probability of a count; all of them where there are few."""
    mean, sd = (jnp.where(jnp.isfinite(part), part, 1e6) for part in (family.mean(), jnp.sqrt(family.variance())))
    reach = GAUSSIAN_REACH if isinstance(family, ExponentialFamily) else _REACH_OF_COUNTS
    first = jnp.maximum(jnp.floor(mean - reach * sd), 0.0)
    last = jnp.ceil(mean + reach * sd) + 20.0
    stride = jnp.maximum(1.0, jnp.ceil((last - first) / (number - 1)))
    points = first + stride * jnp.arange(number)
    level = jax.vmap(family.log_density)(points)
    weights = jnp.exp(level - level.max())
    return points, weights / weights.sum()


def _on_a_line(family: Belief, number: int) -> tuple[Array, Array]:
    """The part of the line that holds the density of a belief, at equal steps of a stretched scale."""
    place, log_slope, _ = LINES["real" if family.kind == "sparse" else family.kind]

    def height(u: Array) -> Array:
        return family.log_density(place(u)) + log_slope(u)

    stretch, _, _ = stretched_grid(height, _FAR)

    def log_mass(t: Array) -> Array:
        u, slope = stretch(t)
        found = height(u) + jnp.log(slope)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    scale = jnp.linspace(-1.0, 1.0, _SCALE)
    level = log_mass(scale)
    least = level.max() + math.log(_NOTHING)
    first, last = (_end(lambda t: log_mass(t) > least, s, level[order] > least) for s, order in _both_ways(scale))
    t = jnp.linspace(first, last, max(number, _LINE))
    level = log_mass(t)
    weights = jnp.exp(level - level.max()).at[jnp.asarray([0, -1])].multiply(0.5)
    return place(stretch(t)[0]), weights / weights.sum()


def _both_ways(scale: Array) -> list[tuple[Array, slice]]:
    return [(scale[order], order) for order in (slice(None), slice(None, None, -1))]


def _end(is_alive: Callable[[Array], Array], scale: Array, alive: Array) -> Array:
    """The place, along a scale, where the first mass is: exact, as a density may end where it is large."""
    at = jnp.argmax(alive)

    def halve(_: Numeric, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        live = is_alive(middle)
        return jnp.where(live, ends[0], middle), jnp.where(live, middle, ends[1])

    return jax.lax.fori_loop(0, _HALVINGS, halve, (scale[jnp.maximum(at - 1, 0)], scale[at]))[1]


def diverges(weights: Array, shares: Array) -> Array:
    """Whether a sum over the points of a belief, on the first axis, has no limit: improbable ends hold a part of it."""
    unlikely = weights < _UNLIKELY * weights.max(0)
    ends = [jnp.where(unlikely[end], shares[end], 0.0) for end in (0, -1)]
    return jnp.maximum(*ends) > _DIVERGES * shares.max(0)
