"""Families of an integrated posterior: mixtures of conditional marginals, and scalars on a grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PyTree

from ...factors.arrays import Array, Key, Numeric
from ...factors.conditional import inverted
from ...factors.conditionals.beliefs import below
from ...factors.families import FOR_DOMAIN, ExponentialFamily, Family
from ...factors.families.base import Levels, Naturals
from ...factors.quadrature import HALF_LOG_2PI
from ...factors.records import fixed
from ...factors.special import ndtr
from ...factors.switches import double_precision
from ..support.compiled import compiled
from .cases import Projected
from .shown import Shown

_BISECTIONS = 80
IMPOSSIBLE = 1e-6  # together: what no number of an answer shows
CERTAIN = 1e-8  # of the variance, within a component: it is a point
ROUNDED = 1e-14  # relative: the rounding of a mean of equal numbers
# Scalars in unconstrained coordinates, and the logarithm of the slope of the way back.
TO_REAL = {"real": lambda x: x, "positive": jnp.log, "unit": lambda p: jnp.log(p) - jnp.log1p(-p)}
FROM_REAL = {
    "real": lambda u: u,
    "positive": jnp.exp,
    "unit": jax.nn.sigmoid,
    "boolean": lambda u: u > 0.5,
    "category": lambda u: jnp.asarray(u, jnp.int32),
}
SATURATED = 35.0  # above this coordinate a probability is next to one and its complement is not known to a digit
LOG_SLOPE = {
    "real": jnp.zeros_like,
    "positive": lambda u: u,
    "unit": lambda u: -jax.nn.softplus(u) - jax.nn.softplus(-u),
    "boolean": jnp.zeros_like,
    "category": jnp.zeros_like,
}


@final
class GridMixture(Family):
    """sum_k weights[k] components[k]: the family `components` has one leading axis more than its plates."""

    components: Family
    weights: Array

    def _average(self, values: Array) -> Array:
        """The mean over the components; without those that have none or an infinite one, where all but impossible."""
        weights = jnp.reshape(self.weights, (-1,) + (1,) * (values.ndim - 1))
        known = jnp.isfinite(values)
        left_out = jnp.sum(jnp.where(known, 0.0, weights), axis=0)
        total = jnp.sum(jnp.where(known, weights * values, 0.0), axis=0) / (1.0 - left_out)
        largest = jnp.max(jnp.where(known, -jnp.inf, values), axis=0)  # nan where one is
        return jnp.where(left_out < IMPOSSIBLE, total, jnp.where(largest == jnp.inf, jnp.inf, jnp.nan))

    def mean(self) -> Array:
        return self._average(self.components.mean())

    def variance(self) -> Array:
        means = self.components.mean()
        middle = self._average(means)
        gap = means - middle
        gap = jnp.where(jnp.abs(gap) > ROUNDED * jnp.abs(middle), gap, 0.0)  # what is observed has no spread at all
        return self._average(self.components.variance() + gap**2)

    @property
    def covariance(self) -> Callable[[], Array]:
        """Cov x of vectors; AttributeError for components that have none."""
        own: PyTree = self.components
        within = own.covariance

        def covariance() -> Array:
            means = own.mean()
            gap = means - self._average(means)
            return self._average(within() + gap[..., :, None] * gap[..., None, :])

        return covariance

    @property
    def probability(self) -> Array:
        """That of the components; AttributeError where they tell of none."""
        own: PyTree = self.components
        return self._average(own.probability)

    def counting(self) -> GridMixture:
        """The mixture without components that have no statistics, where these are all but impossible."""
        stats = _statistics(self.components)
        size = len(self.weights)
        finite = np.all([np.isfinite(np.asarray(s).reshape(size, -1)).all(axis=1) for s in stats], axis=0)
        if finite.all() or not np.sum(np.asarray(self.weights)[~finite]) < IMPOSSIBLE:
            return self
        weights = np.asarray(self.weights)[finite]
        return GridMixture(jax.tree.map(lambda leaf: leaf[finite], self.components), weights / weights.sum())

    def projection(self) -> ExponentialFamily:
        """The member of the components' family with the mixture's expected statistics."""
        with double_precision():
            known = self.counting()
            mean = [np.tensordot(known.weights, np.asarray(s), axes=1) for s in _statistics(known.components)]
            return jax.tree.map(np.asarray, _exponential(self.components).from_stats(tuple(mean)))

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        return "Mixture (projection)" if isinstance(self.components, Projected) else "Mixture"

    def log_density(self, value: Numeric) -> Array:
        """The logarithm of the mixture's density at a value shaped plates + event."""
        parts = jax.vmap(lambda component: component.log_density(value))(self.components)
        return jax.scipy.special.logsumexp(parts, axis=0, b=jnp.reshape(self.weights, (-1,) + (1,) * (parts.ndim - 1)))

    def below(self, x: Array) -> Array:
        """P(X <= x), by element, at a value shaped plates + event (more leading axes allowed)."""
        x = jnp.asarray(x, float)
        mixed = jnp.tensordot(self.weights, jax.vmap(below, in_axes=(0, None))(self.components, x), axes=1)
        return jnp.where(self._is_of_points(), _below_between(self, x), mixed) if self._is_of_numbers else mixed

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        """Draws of the components, chosen anew for every draw of the whole variable."""
        which, inner = jax.random.split(key)
        number = math.prod(shape)
        chosen = jax.random.choice(which, len(self.weights), (number,), p=self.weights)
        draws = self.draws_at(chosen, inner)
        if self._is_of_numbers:
            between = jnp.moveaxis(_between(self, jax.random.uniform(which, (number,))), -1, 0)
            draws = jnp.where(self._is_of_points(), between, draws)
        return draws.reshape((*shape, *draws.shape[1:]))

    @property
    def _is_of_numbers(self) -> bool:
        return getattr(self.components, "kind", "") in ("real", "positive", "unit")

    def _is_of_points(self) -> Array:
        """Whether the components are all but certain numbers, as of an expression of what was integrated: between the
        points of the grid lie others, of which nothing was computed.
        """
        within = jnp.max(self.components.variance(), axis=0)
        return jnp.all((within <= CERTAIN * self.variance()) & (within < jnp.inf))

    def draws_at(self, chosen: Int[Array, " draws"], key: Key) -> Array:
        """One draw of each of the chosen components."""
        components: PyTree = jax.tree.map(lambda leaf: jnp.asarray(leaf)[chosen], self.components)
        return jax.vmap(lambda component, own: component.sample(own))(components, jax.random.split(key, len(chosen)))

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """By bisection of the mixed distribution function."""
        components: PyTree = self.components
        level = np.asarray(level, float)
        with double_precision():
            if self._is_of_numbers and bool(_of_points(self)):
                found = np.asarray(_quantile_between(self, level.ravel()))
                return np.moveaxis(found, -1, 0).reshape(level.shape + found.shape[:-1])
            found = np.asarray(_quantile(components, self.weights, level))
            for end, extreme in ((0.0, np.min), (1.0, np.max)):  # which bisection cannot reach
                at_end = np.reshape(level == end, level.shape + (1,) * (found.ndim - level.ndim))
                if at_end.any():
                    found = np.where(at_end, extreme(np.asarray(components.quantile(end)), axis=0), found)
            return found


def _between(mixture: GridMixture, levels: Array) -> Array:
    """Quantiles of a mixture of points, shaped plates + levels."""
    components: PyTree = mixture.components
    points, cumulative = _spread_out(mixture)
    flat = jax.vmap(lambda own, up_to: jnp.interp(levels, up_to, own))(
        *(each.reshape(-1, each.shape[-1]) for each in (points, cumulative))
    )
    return FROM_REAL[components.kind](flat).reshape(*points.shape[:-1], len(levels))


def _below_between(mixture: GridMixture, x: Array) -> Array:
    """The distribution function of a mixture of points."""
    components: PyTree = mixture.components
    points, cumulative = _spread_out(mixture)
    u = TO_REAL[components.kind](x)
    shape = jnp.broadcast_shapes(u.shape, points.shape[:-1])
    flat = jnp.broadcast_to(u, shape).reshape(-1, math.prod(points.shape[:-1])).T
    each = (each.reshape(-1, each.shape[-1]) for each in (points, cumulative))
    found = jax.vmap(lambda at, own, up_to: jnp.interp(at, own, up_to, left=0.0, right=1.0))(flat, *each)
    return found.T.reshape(shape)


def _spread_out(mixture: GridMixture) -> tuple[Array, Array]:
    """The coordinates of a mixture of points in their order, and the mass up to each, shaped plates + points.

    Mass lies evenly between two points. That makes the distribution wider, so the points are drawn together until the
    variance of their coordinate stays.
    """
    components: PyTree = mixture.components
    values = TO_REAL[components.kind](jnp.asarray(components.mean()))

    def one(points: Array) -> tuple[Array, Array]:
        order = jnp.argsort(points)
        weights, points = jnp.asarray(mixture.weights)[order], points[order]
        mean = weights @ points
        centred = points - mean
        start, end, mass = centred[:-1], centred[1:], 0.5 * (weights[:-1] + weights[1:])
        spread = mass @ (start**2 + start * end + end**2) / 3.0
        spread += 0.5 * (weights[0] * centred[0] ** 2 + weights[-1] * centred[-1] ** 2)
        shrunk = jnp.sqrt(weights @ centred**2 / jnp.maximum(spread, jnp.finfo(points.dtype).tiny))
        return mean + shrunk * centred, jnp.cumsum(weights) - 0.5 * weights

    found = jax.vmap(one, in_axes=1)(values.reshape(len(values), -1))
    points, cumulative = (each.reshape(*values.shape[1:], len(values)) for each in found)
    return points, cumulative


def _exponential(family: Family) -> type[ExponentialFamily]:
    """The family that messages about such a variable belong to."""
    stand_in = family.stand_in() if isinstance(family, Shown) else family
    assert isinstance(stand_in, ExponentialFamily)
    return type(stand_in)


def _statistics(components: PyTree) -> Naturals:
    return components.expected_stats()


def _quantile_of(components: PyTree, weights: Array, level: Array) -> Array:
    plates = jnp.shape(components.mean())[1:]
    shape, target = jnp.shape(level) + plates, jnp.reshape(level, jnp.shape(level) + (1,) * len(plates))

    def is_below(x: Array) -> Array:
        return jnp.tensordot(weights, jax.vmap(below, in_axes=(0, None))(components, x), axes=1) < target

    return inverted(is_below, components.kind, shape)


_quantile = compiled("quantile over a grid", (), _quantile_of)
_quantile_between = compiled("quantile between points", (), _between)
_of_points = compiled("whether of points", (), lambda mixture: mixture._is_of_points())


@final
class OnGrid(Family):
    """A scalar known at grid points: unconstrained `coordinates` (K,) with probabilities `weights` (K,).

    `kind` is the domain that the coordinates are mapped to. Mean and variance are sums over the grid; the density, its
    quantiles and draws spread every point over the standard deviation `width` of its cell, the points being drawn
    together so that the variance of the coordinate stays.
    """

    coordinates: Array
    weights: Array
    width: Numeric
    kind: str = fixed()

    def _values(self) -> Array:
        return FROM_REAL[self.kind](self.coordinates)

    def _centres(self) -> Array:
        mean = jnp.dot(self.weights, self.coordinates)
        variance = jnp.dot(self.weights, (self.coordinates - mean) ** 2)
        return mean + jnp.sqrt(jnp.maximum(1.0 - self.width**2 / variance, 0.0)) * (self.coordinates - mean)

    def mean(self) -> Array:
        return jnp.dot(self.weights, self._values())

    def variance(self) -> Array:
        return jnp.dot(self.weights, (self._values() - self.mean()) ** 2)

    def projection(self) -> ExponentialFamily:
        """The member of the domain's family with the expected statistics of the grid."""
        with double_precision():
            return jax.tree.map(np.asarray, _projected(self))

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    def log_density(self, value: Numeric) -> Array:
        """The logarithm of the smoothed density at `value`."""
        u = jnp.asarray(TO_REAL[self.kind](value))
        gap = (u[..., None] - self._centres()) / self.width
        smooth = jax.scipy.special.logsumexp(-0.5 * gap**2, axis=-1, b=self.weights)
        return smooth - HALF_LOG_2PI - jnp.log(self.width) - LOG_SLOPE[self.kind](u)

    def below(self, x: Array) -> Array:
        """P(X <= x) of the smoothed density."""
        u = jnp.asarray(TO_REAL[self.kind](jnp.asarray(x, float)))
        return ndtr((u[..., None] - self._centres()) / self.width) @ self.weights

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """By bisection of the smoothed distribution function."""
        import scipy.special

        level = np.asarray(level, float)
        with double_precision():
            centres = np.asarray(_centres(self))
        weights, width = np.asarray(self.weights), float(self.width)
        low, high = (np.full(level.shape, end) for end in (centres.min() - 9 * width, centres.max() + 9 * width))
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            below = scipy.special.ndtr((middle[..., None] - centres) / width) @ weights < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        with double_precision():
            return np.asarray(_from_coordinates(self, 0.5 * (low + high)))

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        which, inner = jax.random.split(key)
        chosen = jax.random.choice(which, self._centres(), shape, p=self.weights)
        return self._spread(chosen, inner)

    def draws_at(self, chosen: Int[Array, " draws"], key: Key) -> Array:
        """One draw of the cell around each of the chosen points."""
        return self._spread(self._centres()[chosen], key)

    def _spread(self, centres: Array, key: Key) -> Array:
        return FROM_REAL[self.kind](centres + self.width * jax.random.normal(key, centres.shape, centres.dtype))


def _projection_of(grid: OnGrid) -> ExponentialFamily:
    family = FOR_DOMAIN[grid.kind]
    statistics = family.stats_of(grid._values())
    return family.from_stats(tuple(jnp.tensordot(grid.weights, own, axes=1) for own in statistics))


_centres = compiled("centres of a grid", (), lambda grid: grid._centres())
_from_coordinates = compiled("from coordinates", (), lambda grid, u: FROM_REAL[grid.kind](u))
_projected = compiled("projection of a grid", (), _projection_of)
