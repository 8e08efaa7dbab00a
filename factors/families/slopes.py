"""Families known by the derivative of their log density: natural parameters read off it at a few points.

So whether a density is of a family, and which member it is, is found without a formula for what it is made of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp

from ..arrays import Array, Key
from .base import ExponentialFamily
from .beta import Beta
from .dirichlet import Dirichlet
from .gamma import Gamma
from .wishart import Wishart

Slope = Callable[[Array], Array]  # the derivative of the log density by element
Found = tuple[Array, ...]  # parameters, by element


@dataclasses.dataclass(frozen=True)
class Fit:
    """A family of distributions of numbers, probabilities or matrices.

    `read(slope, x)` gives the parameters from the derivative near x, `slope(parameters, x)` the derivative that they
    have, `belief(parameters)` is the member, of 1 / x where that is `inverted`; `elsewhere(x)` is a point of the domain
    other than those that `read` looks at, `middle(shape)` one for any variable.
    """

    name: str
    read: Callable[[Slope, Array], Found]
    slope: Callable[[Found, Array], Array]
    belief: Callable[[Found], ExponentialFamily]
    elsewhere: Callable[[Array], Array]
    middle: Callable[[tuple[int, ...]], Array]
    inverted: bool = False  # whether the belief is about 1 / x

    def draw(self, key: Key, found: Found) -> Array:
        """A draw of each element."""
        drawn = self.belief(found).sample(key)
        return 1.0 / drawn if self.inverted else drawn

    def log_density(self, found: Found, x: Array) -> Array:
        """Of each element at x."""
        if self.inverted:
            return self.belief(found).log_density(1.0 / x) - 2.0 * jnp.log(x)
        return self.belief(found).log_density(x)


def _gamma(slope: Slope, x: Array) -> Found:
    first, second = slope(x), slope(2.0 * x)
    excess = 2.0 * x * (first - second)
    return excess + 1.0, excess / x - first


def _gamma_belief(found: Found) -> Gamma:
    return Gamma.from_parameters(shape=found[0], rate=found[1])


def _inverse_gamma(slope: Slope, x: Array) -> Found:
    """Of 1 / x: x^2 times the derivative is rate - (shape + 1) x."""
    first, second = x**2 * slope(x), 4.0 * x**2 * slope(2.0 * x)
    falls = (first - second) / x
    return falls - 1.0, first + falls * x


def _beta(slope: Slope, x: Array) -> Found:
    """x (1 - x) times the derivative is (a - 1) (1 - x) - (b - 1) x."""
    left, right = (0.25 * 0.75 * slope(jnp.full_like(x, at)) for at in (0.25, 0.75))
    return 1.0 + 1.5 * left - 0.5 * right, 1.0 + 0.5 * left - 1.5 * right


def _dirichlet(slope: Slope, x: Array) -> Found:
    even = jnp.full_like(x, 1.0 / x.shape[-1])
    return (1.0 + even * slope(even),)


def _wishart(slope: Slope, x: Array) -> Found:
    """The coefficients of the inverse and of the matrix itself in the derivative, (dof - d - 1) / 2 and -rate / 2."""
    size = x.shape[-1]
    first, second = slope(x), slope(2.0 * x)
    power = 2.0 * jnp.trace((first - second) @ x, axis1=-2, axis2=-1) / size
    rate = 2.0 * (power[..., None, None] * jnp.linalg.inv(x) - first)
    return 2.0 * power + size + 1.0, rate


def _wishart_slope(found: Found, x: Array) -> Array:
    dof, rate = found
    return 0.5 * (dof - x.shape[-1] - 1.0)[..., None, None] * jnp.linalg.inv(x) - 0.5 * rate


FITS: dict[str, tuple[Fit, ...]] = {  # by kind of domain
    "positive": (
        Fit("Gamma", _gamma, lambda p, x: (p[0] - 1.0) / x - p[1], _gamma_belief, lambda x: 5.0 * x, jnp.ones),
        Fit(
            "inverse Gamma",
            _inverse_gamma,
            lambda p, x: p[1] / x**2 - (p[0] + 1.0) / x,
            _gamma_belief,
            lambda x: 5.0 * x,
            jnp.ones,
            inverted=True,
        ),
    ),
    "unit": (
        Fit(
            "Beta",
            _beta,
            lambda p, x: (p[0] - 1.0) / x - (p[1] - 1.0) / (1.0 - x),
            lambda p: Beta.from_parameters(a=p[0], b=p[1]),
            lambda x: jnp.full_like(x, 0.6),
            lambda shape: jnp.full(shape, 0.5),
        ),
    ),
    "simplex": (
        Fit(
            "Dirichlet",
            _dirichlet,
            lambda p, x: (p[0] - 1.0) / x,
            lambda p: Dirichlet.from_parameters(concentration=p[0]),
            lambda x: jnp.arange(1.0, x.shape[-1] + 1.0) / (0.5 * x.shape[-1] * (x.shape[-1] + 1.0)) + 0.0 * x,
            lambda shape: jnp.full(shape, 1.0 / shape[-1]),
        ),
    ),
    "posdef": (
        Fit(
            "Wishart",
            _wishart,
            _wishart_slope,
            lambda p: Wishart.from_parameters(dof=p[0], scale=jnp.linalg.inv(p[1])),
            lambda x: x + jnp.eye(x.shape[-1]),
            lambda shape: jnp.broadcast_to(jnp.eye(shape[-1]), shape),
        ),
    ),
}
