"""What is known of an outcome when all arguments of its factor are: mean, variance, distribution function and draws.

A predictive distribution mixes these over the beliefs about the arguments. All functions are for one scalar instance.
Vectors are told element by element, but for draws and densities. A factor without an entry in `conditionals`, such as a
user's, gets one from its log density, by quadrature over the outcome.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypedDict, Unpack

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .arrays import Array, Key
from .errors import UnsupportedError
from .factor import Factor
from .quadrature.predictive import COUNTS, LINES, grid
from .special import TINY


@dataclasses.dataclass(frozen=True, eq=False)
class Conditional:
    """A distribution over outcomes of a `kind` of domain, with known arguments by name.

    `below(x, **arguments)` is P(X <= x), by element; None where the values have no order. `draw(key, **arguments)` is
    one draw; `covariance` is that of a vector. `whole` tells that the values are whole numbers.
    """

    name: str
    kind: str
    log_density: Callable[..., Array]
    mean: Callable[..., Array]
    variance: Callable[..., Array]
    draw: Callable[..., Array]
    below: Callable[..., Array] | None = None
    covariance: Callable[..., Array] | None = None
    whole: bool = False


class Functions(TypedDict, total=False):
    """Those of `Conditional`."""

    log_density: Callable[..., Array]
    mean: Callable[..., Array]
    variance: Callable[..., Array]
    draw: Callable[..., Array]
    below: Callable[..., Array]
    covariance: Callable[..., Array]
    whole: bool


class Named(Functions):
    """These, with the factor and the kind of domain that it generates."""

    name: str
    kind: str


class Table(dict[str, Named]):
    """What conditionals are made of, by the name of the factor, which gives the log density where none is added."""

    def add(self, name: str, kind: str, **functions: Unpack[Functions]) -> None:
        """Adds the functions of `Conditional` for the factor `name`, which generates this kind of domain."""
        self[name] = {"name": name, "kind": kind, **functions}


# The line that quantiles are searched on, its ends, and the steps that its halving takes.
_SEARCH: dict[str, tuple[Callable[[Array], Array], float, float, int]] = {
    "real": (jnp.sinh, -700.0, 700.0, 64),
    "positive": (jnp.exp, -745.0, 709.0, 64),
    "unit": (jax.nn.sigmoid, -745.0, 745.0, 64),
    "count": (jnp.floor, -1.0, 2.0**52, 54),
}
_SEARCH |= {"sparse": _SEARCH["real"], "vector": _SEARCH["real"], "simplex": _SEARCH["unit"]}


def inverted(is_below: Callable[[Array], Array], kind: str, shape: tuple[int, ...] = ()) -> Array:
    """The smallest x of this kind of domain that is not below what `is_below(x)` asks, by halving; shaped `shape`."""
    place, low, high, steps = _SEARCH[kind]

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        middle = jnp.floor(middle) if kind == "count" else middle
        below = is_below(place(middle))
        return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

    start = jnp.full(shape, low), jnp.full(shape, high)
    return place(jax.lax.fori_loop(0, steps, halve, start)[1])


def counted(x: Array, inside: Callable[[Array], Array]) -> Array:
    """A distribution function of counts from that at whole numbers."""
    count = jnp.floor(x)
    return jnp.where(count < 0, 0.0, inside(jnp.maximum(count, 0.0)))


def from_density(factor: Factor, kind: str) -> Conditional:
    """The conditional of what a factor declares, and else of its log density, by quadrature over the outcome.

    UnsupportedError for vectors, simplices and matrices of which it declares none.
    """
    derived = _counts(factor) if kind == "count" else _line(factor, kind) if kind in LINES else {}
    functions = {**derived, **factor.conditional}
    if not functions:
        raise UnsupportedError(
            f"'{factor.name}' generates a {kind}, and the predictive distribution of that cannot be found by "
            "quadrature over it. Observe the variable."
        )
    return Conditional(**{"name": factor.name, "kind": kind, "log_density": factor.log_density, **functions})


def _counts(factor: Factor) -> Functions:
    counts = jnp.arange(COUNTS, dtype=jnp.float32)

    def mass(arguments: dict[str, Array]) -> tuple[Float[Array, " point"], Float[Array, " point"]]:
        x = jnp.asarray(counts, float)
        found = jnp.exp(jax.vmap(lambda out: factor.log_density(out, **arguments))(x))
        return x, found / found.sum()

    def mean(**arguments: Array) -> Array:
        x, weights = mass(arguments)
        return weights @ x

    def variance(**arguments: Array) -> Array:
        x, weights = mass(arguments)
        return weights @ (x - weights @ x) ** 2

    def below(out: Array, **arguments: Array) -> Array:
        x, weights = mass(arguments)
        return weights @ (x <= out)

    def draw(key: Key, **arguments: Array) -> Array:
        x, weights = mass(arguments)
        return jax.random.choice(key, x, p=weights)

    return {"mean": mean, "variance": variance, "below": below, "draw": draw}


_COORDINATE: dict[str, Callable[[Array], Array]] = {
    "real": lambda x: x,
    "positive": lambda x: jnp.log(jnp.maximum(x, TINY)),
    "unit": lambda x: jnp.log(x) - jnp.log1p(-x),
}


def _sum(weights: Float[Array, " point"], values: Float[Array, " point"]) -> Float[Array, ""]:
    """The weighted sum; what has no weight may be infinite."""
    return jnp.where(weights > 0, weights * values, 0.0).sum()


def _line(factor: Factor, kind: str) -> Functions:
    place, log_slope, _ = LINES[kind]

    def mass(arguments: dict[str, Array]) -> tuple[Float[Array, " point"], Float[Array, " point"]]:
        density = jax.vmap(lambda out: factor.log_density(out, **arguments))
        u, weights = grid(lambda u: density(place(u)) + log_slope(u))
        return u, jnp.where(weights > 0, weights, 0.0)

    def mean(**arguments: Array) -> Array:
        u, weights = mass(arguments)
        return _sum(weights, place(u))

    def variance(**arguments: Array) -> Array:
        u, weights = mass(arguments)
        x = place(u)
        return _sum(weights, (x - _sum(weights, x)) ** 2)

    def below(x: Array, **arguments: Array) -> Array:
        u, weights = mass(arguments)
        return jnp.interp(_COORDINATE[kind](x), u, jnp.cumsum(weights) - 0.5 * weights, left=0.0, right=1.0)

    def draw(key: Key, **arguments: Array) -> Array:
        u, weights = mass(arguments)
        return place(jnp.interp(jax.random.uniform(key), jnp.cumsum(weights) - 0.5 * weights, u))

    return {"mean": mean, "variance": variance, "below": below, "draw": draw}


def moment_above(least: float, value: Callable[[Array], Array], shape: Array) -> Array:
    """A moment that exists where a shape, or the degrees of freedom, is above `least`: infinite elsewhere."""
    exists = shape > least
    return jnp.where(exists, value(jnp.where(exists, shape, least + 1.0)), jnp.inf)
