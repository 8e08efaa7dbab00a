"""Fixed quasi-random points for expectations over many arguments at once: the last resort, with a standard error.

The points never change, so a run on them converges. The statistics serve as control variates: the estimate is the
constant of the least-squares fit of the function on them, exact for a function that is linear in the statistics.
Source: owen2013mc (control variates), knowles2011ncvmp (the message is the same regression).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..arrays import Array
from ..families import Dirichlet, Wishart
from ..moments import Moments, PosDef, Positive, Real, Simplex, Unit, Vector
from ..special import TINY
from .nodes import Rule, scalar_rule

Values: TypeAlias = Float[Array, " point"]
Uniform: TypeAlias = Float[np.ndarray, "point dim"]
# Points, features with expectation zero, and the map from their coefficients to the gradient in the moments.
Spread: TypeAlias = tuple[Float[Array, "point ..."], Float[Array, "point feature"], Callable[[Array], Any]]
POINTS = 1024


def cloud(kinds: Mapping[str, str], moments: Mapping[str, Moments]) -> Rule:
    """A rule over all of these arguments jointly; of kinds real, positive, unit, vector, simplex or posdef."""
    own = [moments[edge] for edge in kinds]
    sizes = [each.mean.shape[-1] if isinstance(each, Vector) else 1 for each in own]
    uniform = _sequence(sum(sizes))
    points, features, unpack = {}, [], []
    for number, (edge, kind) in enumerate(kinds.items()):
        start = sum(sizes[:number])
        found = _SPREAD[kind](moments[edge], uniform[:, start : start + sizes[number]], number)
        points[edge] = found[0]
        features.append(found[1])
        unpack.append(found[2])
    design = jnp.concatenate(features, axis=-1)
    widths = np.cumsum([feature.shape[-1] for feature in features])[:-1]
    # The columns have known expectation zero; a constant column belongs to the fit.
    design = jnp.concatenate([jnp.ones((POINTS, 1)), design], axis=-1)
    scale = jnp.sqrt(jnp.mean(design**2, axis=0))
    scale = jnp.where(scale > 0, scale, 1.0)
    scaled = design / scale
    ridge = 1e-12 * jnp.eye(design.shape[-1])
    gram = scaled.T @ scaled / POINTS + ridge

    def fit(values: Values) -> Float[Array, " feature"]:
        return jnp.linalg.solve(gram, scaled.T @ values / POINTS) / scale

    def gradient(values: Values) -> dict[str, Moments]:
        parts = jnp.split(fit(values)[1:], widths)
        return {edge: back(part) for edge, back, part in zip(kinds, unpack, parts, strict=True)}

    return Rule(points, jnp.full(POINTS, 1.0 / POINTS), lambda values: fit(values)[0], gradient)


def _sequence(dimension: int) -> Float[np.ndarray, "point dimension"]:
    """The additive recurrence of the generalised golden ratio: even in every dimension, the same in every run."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    return np.modf(0.5 + np.outer(np.arange(1, POINTS + 1), steps))[0]


def _normal(uniform: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    import scipy.special  # here: it takes a third of a second to import

    return scipy.special.ndtri(uniform)


def _real(moments: Real, uniform: Uniform, number: int) -> Spread:
    z = jnp.asarray(_normal(uniform[:, 0]))
    sd = jnp.sqrt(jnp.maximum(moments.variance, 1e-24))
    return moments.mean + sd * z, jnp.stack([z, z**2 - 1.0], -1), lambda b: Real(b[0] / sd, b[1] / sd**2)


def _scalar_points(kind: str, moments: Positive | Unit, uniform: Uniform) -> Values:
    """Points of a scalar belief at the levels of `uniform`, by interpolation in the coordinate of its rule."""
    rule = scalar_rule("x", kind, moments)
    level = jnp.cumsum(rule.weights) - 0.5 * rule.weights
    x = rule.points["x"]
    coordinate = jnp.log(x) if kind == "positive" else jnp.log(x) - jnp.log1p(-x)
    found = jnp.interp(jnp.asarray(uniform[:, 0]), level, coordinate)
    return jnp.exp(found) if kind == "positive" else jnp.clip(jax.nn.sigmoid(found), TINY, 1.0 - 1e-16)


def _positive(moments: Positive, uniform: Uniform, number: int) -> Spread:
    x = _scalar_points("positive", moments, uniform)
    features = jnp.stack([x / moments.mean - 1.0, jnp.log(x) - moments.log], -1)
    return x, features, lambda b: Positive(b[0] / moments.mean, b[1])


def _unit(moments: Unit, uniform: Uniform, number: int) -> Spread:
    x = _scalar_points("unit", moments, uniform)
    features = jnp.stack([jnp.log(x) - moments.log, jnp.log1p(-x) - moments.log_complement], -1)
    return x, features, lambda b: Unit(b[0], b[1])


def _vector(moments: Vector, uniform: Uniform, number: int) -> Spread:
    z = jnp.asarray(_normal(uniform))
    size = z.shape[-1]
    root = jnp.linalg.cholesky(moments.covariance + 1e-24 * jnp.eye(size))
    rows, columns = np.triu_indices(size)
    features = jnp.concatenate([z, z[:, rows] * z[:, columns] - (rows == columns)], -1)

    def back(b: Array) -> Vector:
        upper = jnp.zeros((size, size)).at[rows, columns].set(b[size:])
        inverse = jnp.linalg.inv(root)
        return Vector(inverse.T @ b[:size], inverse.T @ (0.5 * (upper + upper.T)) @ inverse)

    return moments.mean + z @ root.T, features, back


def _simplex(moments: Simplex, uniform: Uniform, number: int) -> Spread:
    x = Dirichlet.from_stats(tuple(moments)).sample(jax.random.key(number), (POINTS,))
    x = jnp.maximum(x, TINY)
    return x, jnp.log(x) - moments.log, lambda b: Simplex(b)


def _posdef(moments: PosDef, uniform: Uniform, number: int) -> Spread:
    size = moments.mean.shape[-1]
    x = Wishart.from_stats(tuple(moments)).sample(jax.random.key(number), (POINTS,))
    rows, columns = np.triu_indices(size)
    log_det = jnp.linalg.slogdet(x)[1] - moments.log_det
    features = jnp.concatenate([(x - moments.mean)[:, rows, columns], log_det[:, None]], -1)

    def back(b: Array) -> PosDef:
        upper = jnp.zeros((size, size)).at[rows, columns].set(b[:-1])
        return PosDef(0.5 * (upper + upper.T), b[-1])

    return x, features, back


_SPREAD: dict[str, Callable[..., Spread]] = {
    "real": _real,
    "positive": _positive,
    "unit": _unit,
    "vector": _vector,
    "simplex": _simplex,
    "posdef": _posdef,
}
