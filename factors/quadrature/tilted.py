"""Tilted distributions by quadrature whose nodes go to where the mass is.

A random argument lives on a line u: a real number is u itself, a positive one exp(u), a probability sigma(u). The
product of a factor and its cavities is looked at on a grid that is dense near the cavity's centre and reaches far out;
the part within `DEPTH` of the highest value is looked at again, and again, and a trapezoid rule on what is left is
exact in practice for smooth functions that vanish at both ends. Nothing is assumed of the factor but its values: no
derivative, no single mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array
from ..families import Beta, Gamma
from ..special import TINY, lgamma, log_sigmoid, sigmoid
from . import HALF_LOG_2PI

DEPTH = 32.0  # what lies this far below the highest log weight is left out
_REACH = np.logspace(-10.0, 0.0, 36)
_OFFSETS = np.concatenate([-_REACH[::-1], [0.0], _REACH])
_FAR = 60.0  # standard deviations of a cavity beyond which nothing is looked for


class Line(NamedTuple):
    """A random argument on its line, with the cavity's log density of u.

    `value(u)` is the argument, `stats(u)` its family's statistics, `growth(u)` the logarithm of the fastest of them;
    `start` are the first nodes. `whole` is true where u counts: the integral is a sum.
    """

    value: Callable[[Array], Array]
    log_density: Callable[[Array], Array]
    stats: Callable[[Array], tuple[Array, ...]]
    growth: Callable[[Array], Array]
    start: Array
    whole: bool = False


def _start(centre: Array, left: Array, right: Array) -> Array:
    offsets = jnp.asarray(_OFFSETS)
    return centre[..., None] + offsets * jnp.where(offsets < 0.0, left[..., None], right[..., None])


def _real(mean: Array, variance: Array) -> Line:
    sd = jnp.sqrt(variance)
    m, v = mean[..., None], variance[..., None]
    return Line(
        value=lambda u: u,
        log_density=lambda u: -0.5 * (u - m) ** 2 / v - 0.5 * jnp.log(v) - HALF_LOG_2PI,
        stats=lambda u: (u, u**2),
        growth=jnp.zeros_like,
        start=_start(mean, _FAR * sd, _FAR * sd),
    )


def _positive(negative_rate: Array, shape_minus_one: Array) -> Line:
    belief = Gamma(negative_rate, shape_minus_one)
    shape, rate = (jnp.asarray(part)[..., None] for part in (belief.shape, belief.rate))
    partition = belief.log_partition()[..., None]
    reach = 8.0 / jnp.sqrt(belief.shape) + 10.0
    return Line(
        value=jnp.exp,
        log_density=lambda u: shape * u - rate * jnp.exp(u) - partition,
        stats=lambda u: (jnp.exp(u), u),
        growth=lambda u: u,
        start=_start(jnp.log(belief.shape) - jnp.log(belief.rate), reach + 40.0 / belief.shape, reach),
    )


def _unit(a_minus_one: Array, b_minus_one: Array) -> Line:
    belief = Beta(a_minus_one, b_minus_one)
    a, b = (jnp.asarray(part)[..., None] for part in (belief.a, belief.b))
    partition = belief.log_partition()[..., None]
    reach = 8.0 / jnp.sqrt(jnp.minimum(belief.a, belief.b)) + 10.0
    return Line(
        value=lambda u: jnp.clip(sigmoid(u), TINY, 1.0 - 2.0**-53),
        log_density=lambda u: a * log_sigmoid(u) + b * log_sigmoid(-u) - partition,
        stats=lambda u: (log_sigmoid(u), log_sigmoid(-u)),
        growth=jnp.zeros_like,
        start=_start(jnp.log(belief.a) - jnp.log(belief.b), reach + 40.0 / belief.a, reach + 40.0 / belief.b),
    )


def _count(log_rate: Array) -> Line:
    rate = jnp.exp(log_rate)[..., None]
    log_rate = log_rate[..., None]
    numbers = jnp.concatenate([jnp.arange(20.0), jnp.asarray(np.unique(np.rint(np.logspace(1.31, 6.0, 40))))])

    def log_density(u):
        inside = jnp.maximum(u, 0.0)
        return jnp.where(u < 0.0, -jnp.inf, inside * log_rate - rate - lgamma(inside + 1.0))

    return Line(
        value=lambda u: jnp.maximum(u, 0.0),
        log_density=log_density,
        stats=lambda u: (u,),
        growth=lambda u: jnp.log1p(jnp.maximum(u, 0.0)),
        start=jnp.broadcast_to(numbers, (*jnp.shape(rate)[:-1], numbers.shape[0])),
        whole=True,
    )


def _half(mean: Array, variance: Array, end: Array, sign: Array) -> Line:
    """A real number above (sign 1) or below (-1) `end`, where the factor jumps: u is the logarithm of the distance."""
    sd, inside = jnp.sqrt(variance), sign * (mean - end)
    m, v, e, s = (a[..., None] for a in (mean, variance, end, sign))
    typical = jnp.where(inside > sd, inside, variance / (sd + jnp.abs(inside)))
    return Line(
        value=lambda u: e + s * jnp.exp(u),
        log_density=lambda u: u - 0.5 * (e + s * jnp.exp(u) - m) ** 2 / v - 0.5 * jnp.log(v) - HALF_LOG_2PI,
        stats=lambda u: (e + s * jnp.exp(u), (e + s * jnp.exp(u)) ** 2),
        growth=jnp.zeros_like,
        start=_start(jnp.log(typical), jnp.full_like(sd, _FAR), jnp.log1p((jnp.abs(inside) + _FAR * sd) / typical)),
    )


LINES: dict[str, Callable[..., Line]] = {
    "real": _real,
    "positive": _positive,
    "unit": _unit,
    "count": _count,
    "half": _half,
}


def line(kind: str, cavity: tuple[Array, ...]) -> Line:
    """The line of an argument of the given kind.

    `cavity` are the mean and the variance of a real one, with the end and the side of a half line, the naturals of its
    family of any other.
    """
    return LINES[kind](*jnp.broadcast_arrays(*cavity))


def _region(height: Array, growth: Array, grid: Array) -> tuple[Array, Array]:
    """The ends of the part of the grid that matters to the integral and to the statistics, one node further out."""
    keep = jnp.zeros(height.shape, bool)
    for values in (height, height + growth):
        values = jnp.where(jnp.isnan(values), -jnp.inf, values)
        top = jnp.max(values, axis=-1, keepdims=True)
        keep = keep | (values > top - DEPTH) | (top == -jnp.inf)
    numbers = jnp.arange(grid.shape[-1])
    low = jnp.min(jnp.where(keep, numbers, grid.shape[-1]), axis=-1, keepdims=True)
    high = jnp.max(jnp.where(keep, numbers, -1), axis=-1, keepdims=True)
    # Selections rather than gathers: they fuse with what made the heights.
    ends = jnp.maximum(low - 1, 0), jnp.minimum(high + 1, grid.shape[-1] - 1)
    first, final = (jnp.sum(jnp.where(numbers == end, grid, 0.0), axis=-1, keepdims=True) for end in ends)
    return first, final


class Rule(NamedTuple):
    """Sizes of a rule: how often to look closer after the first nodes, then the integral with `number` of them."""

    stages: int
    number: int


def nodes(height: Callable[[Array], Array], of: Line, rule: Rule) -> tuple[Array, Array]:
    """Nodes on the last axis for the integral of exp(height(u)), and the logarithm of their spacing."""
    start = jax.lax.stop_gradient(of.start)
    start = jnp.broadcast_to(start, jax.eval_shape(height, start).shape)
    unit = jnp.linspace(0.0, 1.0, start.shape[-1])

    def closer(_, ends_and_grid):
        grid = ends_and_grid[2]
        low, high = _region(jax.lax.stop_gradient(height(grid)), of.growth(grid), grid)
        return low, high, low + (high - low) * unit

    # The first look is one more turn of the loop: each copy of the factor is compiled.
    low, high, _ = jax.lax.fori_loop(0, rule.stages + 1, closer, (start[..., :1], start[..., -1:], start))
    if of.whole:
        low = jnp.floor(low)
        stride = jnp.maximum(1.0, jnp.ceil((jnp.ceil(high) - low) / (rule.number - 1)))
        return low + stride * jnp.arange(rule.number), jnp.log(stride)
    return low + (high - low) * jnp.linspace(0.0, 1.0, rule.number), jnp.log((high - low) / (rule.number - 1))


SINGLE, PAIR = Rule(5, 200), Rule(3, 60)


def evaluations(arguments: int) -> int:
    """How often `tilted` evaluates a factor of so many arguments, for one instance."""
    first = len(_OFFSETS)
    if arguments == 1:
        return (SINGLE.stages + 1) * first + SINGLE.number
    return ((PAIR.stages + 1) * first + PAIR.number) ** arguments


class Tilted(NamedTuple):
    """The tilted distribution as weighted nodes.

    `log_weights` has one more axis for each argument, their sum in log space is the log evidence; `coordinates` and
    `values` hold each argument's nodes, of shapes that broadcast with it; `lines` tell their statistics.
    """

    log_weights: Array
    coordinates: tuple[Array, ...]
    values: tuple[Array, ...]
    lines: tuple[Line, ...]


def tilted(log_factor: Callable[..., Array], kinds: tuple[str, ...], cavities: tuple[tuple[Array, ...], ...]) -> Tilted:
    """The product of a factor and the cavities of at most two scalar arguments, as weighted nodes.

    `log_factor` maps the values of the arguments elementwise (by broadcasting) to log f; `kinds` are real, positive,
    unit or count, `cavities` as `line` takes them, all of one shape of instances (by broadcasting). Two arguments are
    integrated one inside the other, the inner rule adapted at every outer node. Measured accuracy of the moments:
    docs/decisions/0002-quadrature.md.
    """
    if not kinds:
        return Tilted(log_factor(), (), (), ())
    if len(kinds) == 1:
        only = line(kinds[0], cavities[0])

        def height(u):
            return log_factor(only.value(u)) + only.log_density(u)

        u, step = nodes(height, only, SINGLE)
        return Tilted(height(u) + step, (u,), (only.value(u),), (only,))
    outer, inner = line(kinds[0], cavities[0]), line(kinds[1], tuple(a[..., None] for a in cavities[1]))

    def inside(y):
        """Weighted inner nodes at outer nodes y."""
        known = outer.value(y)[..., None]

        def height(u):
            return log_factor(known, inner.value(u)) + inner.log_density(u)

        u, step = nodes(height, _spread(inner, y), PAIR)
        return u, height(u) + step

    def outside(y):
        return jax.scipy.special.logsumexp(inside(y)[1], axis=-1) + outer.log_density(y)

    y, step = nodes(outside, outer, PAIR)
    u, rows = inside(y)
    log_weights = rows + (outer.log_density(y) + step)[..., None]
    return Tilted(log_weights, (y[..., None], u), (outer.value(y)[..., None], inner.value(u)), (outer, inner))


def _spread(inner: Line, y: Array) -> Line:
    """The inner line with its first nodes at every outer node."""
    return inner._replace(start=jnp.broadcast_to(inner.start, (*y.shape, inner.start.shape[-1])))
