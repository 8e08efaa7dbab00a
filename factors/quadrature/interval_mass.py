"""log P(low <= X <= high) of the outcome of any scalar factor, in the tails too.

By the factor's own tails where it declares them, else by quadrature of its density: the interval is stretched over a
whole line, on which a trapezoid rule goes to where the mass is (`tilted.py`). Of counts, the first and the
last `SUMMED` are summed one by one, and those between integrated, where neighbours are alike.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..arrays import Array
from ..factor import Factor
from .tilted import Line, Rule, nodes

SUMMED = 40
COUNTED = 2048
_LOOKS, _NODES = Rule(4, 60), 90
_REACH = 690.0  # logarithms of a distance, on either side of one
_START = np.sinh(np.linspace(-1.0, 1.0, 37) * math.asinh(_REACH))
Nodes: TypeAlias = Float[Array, " node"]
ENDS = {"real": (-math.inf, math.inf), "positive": (0.0, math.inf), "unit": (0.0, 1.0), "count": (0.0, math.inf)}
"""The ends of the line of each kind of scalar."""


def log_mass(factor: Factor, low: Array, high: Array, **arguments: Array) -> Array:
    """log P(low <= X <= high) for one instance of a factor of numbers; the bounds may be infinite, and are counted in.

    An interval that holds all of the factor's line has log mass zero, an empty one minus infinity.
    """
    first, last = ENDS[factor.kind]
    if factor.kind == "count":
        low, high = jnp.ceil(low), jnp.floor(high)
    nothing = (low > high) | (high < first) | (low > last)
    from_first, to_last = (low <= first) | nothing, (high >= last) | nothing
    low, high = jnp.where(from_first, first, low), jnp.where(to_last, last, high)

    def density(out: Array) -> Array:
        return factor.log_density(out, **arguments)

    if factor.log_below is not None and factor.log_above is not None:
        below, above = (functools.partial(tail, **arguments) for tail in (factor.log_below, factor.log_above))
        found = _of_tails(below, above, low, high, from_first, to_last, 1.0 if factor.kind == "count" else 0.0)
    elif factor.kind == "count":
        found = _summed(density, low, high)
    else:
        found = log_integral(density, low, high)
    return jnp.where(nothing, -jnp.inf, jnp.where(from_first & to_last, 0.0, found))


def _of_tails(
    log_below: Callable[[Array], Array],
    log_above: Callable[[Array], Array],
    low: Array,
    high: Array,
    from_first: Array,
    to_last: Array,
    step: float,
) -> Array:
    """One tail, or the difference of two on that side of the interval where they keep their digits.

    `step` is how far the next value is.
    """
    a = jnp.where(from_first, jnp.where(to_last, 0.5 + step, high), low)  # where a bound is none, the other stands in
    b = jnp.where(to_last, a, high)
    above, below = log_above(a), log_below(b)
    upper = above < below
    larger, smaller = jnp.where(upper, above, below), jnp.where(upper, log_above(b + step), log_below(a - step))
    gap = jnp.where(larger > smaller, larger - smaller, 1.0)
    between = larger + jnp.log(-jnp.expm1(-gap))
    return jnp.where(from_first, below, jnp.where(to_last, above, between))


def _summed(density: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """The sum over counts: one by one at both ends, by an integral between, with the first term of Euler and Maclaurin.

    Far from the ends neighbours are alike, or the terms are nothing.
    """
    first = low + jnp.arange(SUMMED)
    last = jnp.where(jnp.isfinite(high), high, low) - jnp.arange(SUMMED)
    at = jnp.concatenate([first, last])
    counted = jnp.concatenate([first <= high, jnp.isfinite(high) & (last > first[-1])])
    terms = jnp.where(counted, jax.vmap(density)(jnp.where(counted, at, low)), -jnp.inf)
    near = jax.scipy.special.logsumexp(terms)
    a, b = first[-1] + 0.5, high - SUMMED + 0.5
    more = b > a
    bounded = more & jnp.isfinite(b)
    end = jnp.where(bounded, b, a + 1.0)
    far = log_integral(density, a, jnp.where(more, b, a + 1.0))
    top = jax.lax.stop_gradient(jnp.where(more, jnp.maximum(near, far), near))

    def slope(x: Array) -> Array:
        height, bend = jax.jvp(density, (x,), (jnp.ones_like(x),))
        return jnp.exp(height - top) * bend

    rest = jnp.exp(far - top) + (slope(a) - jnp.where(bounded, slope(end), 0.0)) / 24.0
    return top + jnp.log(jnp.exp(near - top) + jnp.where(more, rest, 0.0))


def log_integral(log_function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """log of the integral of exp(log_function) from `low` to `high`, of which either may be infinite.

    The function is looked at on a line of logarithmic distances from the finite ends, then by a trapezoid rule that is
    dense where it is largest. Measured to 1e-10 for smooth densities, also in their tails.
    """
    _, logs = _weighed(log_function, low, high)
    empty = jnp.max(logs) == -jnp.inf
    return jnp.where(empty, -jnp.inf, jax.scipy.special.logsumexp(jnp.where(empty, 0.0, logs)))


def nodes_between(factor: Factor, low: Array, high: Array, **arguments: Array) -> tuple[Nodes, Nodes]:
    """Values of the outcome between two bounds, and the logarithm of the mass that each stands for."""
    first, last = ENDS[factor.kind]

    def density(out: Array) -> Array:
        return factor.log_density(out, **arguments)

    if factor.kind != "count":
        return _weighed(density, jnp.maximum(low, first), jnp.minimum(high, last))
    counts = jnp.maximum(jnp.ceil(low), 0.0) + jnp.arange(COUNTED)
    return counts, jnp.where(counts <= high, jax.vmap(density)(jnp.minimum(counts, jnp.floor(high))), -jnp.inf)


def _weighed(log_function: Callable[[Array], Array], low: Array, high: Array) -> tuple[Nodes, Nodes]:
    value, log_slope = _stretched(low, high)

    def height(u: Array) -> Array:
        found = jax.vmap(log_function)(value(u)) + log_slope(u)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    line = Line(value, jnp.zeros_like, lambda u: (), jnp.zeros_like, jnp.asarray(_START))
    u, _ = nodes(height, line, _LOOKS)
    heights = jax.lax.stop_gradient(height(u))
    top, spacing = jnp.argmax(heights), u[1] - u[0]
    centre, scale = u[top], 0.5 * spacing * jnp.maximum(jnp.sum(heights > heights[top] - 0.5), 1)
    t = jnp.linspace(jnp.arcsinh((u[0] - centre) / scale), jnp.arcsinh((u[-1] - centre) / scale), _NODES)
    u = centre + scale * jnp.sinh(t)
    return value(u), height(u) + jnp.log(scale * jnp.cosh(t)) + jnp.log(t[1] - t[0])


def _stretched(low: Array, high: Array) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """The map from the line to the interval, and the logarithm of its slope."""
    from_left, to_right = jnp.isfinite(low), jnp.isfinite(high)
    both, one = from_left & to_right, from_left | to_right
    a, b = jnp.where(from_left, low, 0.0), jnp.where(to_right, high, 1.0)
    width = jnp.where(both, b - a, 1.0)

    def value(u: Array) -> Array:
        half = jnp.where(from_left, a + jnp.exp(u), b - jnp.exp(u))
        return jnp.where(both, a + width * jax.nn.sigmoid(u), jnp.where(one, half, u))

    def log_slope(u: Array) -> Array:
        closed = jnp.log(width) + jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
        return jnp.where(both, closed, jnp.where(one, u, 0.0))

    return value, log_slope
