"""Products of probabilities along a plate, v_1, v_1 v_2, ...: the probability that a row passes all sticks up to one.

Of independent v the logarithm of a product has the sum of expectations, exactly. That of one minus a product has no
closed form. Its multinomial bound sums over which stick is the first to stop the row; the series of the logarithm
encloses it as closely as one likes, under beta beliefs. Sticks lie on the last axis.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..arrays import Array
from ..factor import Link, register
from ..families.dirichlet_functions import solve_concentration
from ..moments import Unit

TERMS = 50


class Enclosed(NamedTuple):
    """Two numbers with the true one between them, for each stick."""

    lower: Float[Array, "*plates stick"]
    upper: Float[Array, "*plates stick"]


def first_stops(sticks: Unit) -> Float[Array, "*plates stick"]:
    """E log(1 - v_i) + sum over m < i of E log v_m: the log weight of stick i as the first that stops a row."""
    passed = jnp.cumsum(sticks.log, axis=-1)
    return sticks.log_complement + jnp.concatenate([jnp.zeros_like(passed[..., :1]), passed[..., :-1]], axis=-1)


def multinomial(sticks: Unit) -> Float[Array, "*plates stick"]:
    """A lower bound of E log(1 - v_1 .. v_k) for every k: the log of the sum over i <= k of exp(first_stops_i).

    1 - v_1 .. v_k = sum over i <= k of (1 - v_i) v_1 .. v_(i-1), and Jensen's inequality under the best belief about i.
    Source: doshivelez2009variational.
    """
    weight = first_stops(sticks)
    return jax.lax.cumlogsumexp(jnp.asarray(weight), axis=weight.ndim - 1)


def enclosed(first: Float[Array, "*plates stick"], second: Float[Array, "*plates stick"], terms: int) -> Enclosed:
    """Bounds of E log(1 - v_1 .. v_k) for v ~ Beta(first, second), from -sum_r E[(v_1 .. v_k)^r] / r up to r = T.

    The moments m_r are products of ratios (a + j) / (a + b + j). Those left out are less than m_(T+1) (1 + c / (T + 1))
    (1 / s + 1 / (c + T + 1)) with c the largest `first` and s the sum of `second`, for m_(r+1) / m_r <= (c + r) / (c +
    r + s) and a series of such ratios telescopes; and more than m_(T+1) / ((1 - q) (T + 1) + q) with q = m_(T+2) /
    m_(T+1), for logarithms of moments are convex in r. Source: doshivelez2009variational.
    """
    r = jnp.arange(terms + 2)
    ratio = jnp.log(first[..., None] + r) - jnp.log(first[..., None] + second[..., None] + r)
    moment = jnp.exp(jnp.cumsum(jnp.cumsum(ratio, axis=-2), axis=-1))  # of orders 1 .. terms + 2
    known = jnp.sum(moment[..., :terms] / (r[:terms] + 1.0), axis=-1)
    last, after, order = moment[..., terms], moment[..., terms + 1], terms + 1.0
    largest, total = jax.lax.cummax(jnp.asarray(first), axis=first.ndim - 1), jnp.cumsum(second, axis=-1)
    most = last * (1.0 + largest / order) * (1.0 / total + 1.0 / (largest + order))
    falls = jnp.where(last > 0.0, after / jnp.where(last > 0.0, last, 1.0), 0.0)
    least = last / ((1.0 - falls) * order + falls)
    return Enclosed(-known - most, -known - least)


def taylor(sticks: Unit) -> Float[Array, "*plates stick"]:
    """The lower end of `enclosed`, of the beta beliefs that have these moments."""
    beliefs = solve_concentration(jnp.stack([sticks.log, sticks.log_complement], axis=-1))
    return enclosed(beliefs[..., 0], beliefs[..., 1], TERMS).lower


BOUNDS = {"multinomial": multinomial, "taylor": taylor}


def _moments(argument: Unit, bound: str = "multinomial") -> Unit:
    return Unit(jnp.cumsum(argument.log, axis=-1), BOUNDS[bound](argument))


register(
    Link(
        "cumprod",
        value=lambda v: jnp.cumprod(v, axis=-1),
        moments=_moments,
        bounds={"multinomial": "bound", "taylor": "bound"},
        of="unit",
        source="doshivelez2009variational",
    )
)
