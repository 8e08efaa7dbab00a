"""The climb to a maximum of a log density of unconstrained coordinates: quasi-Newton steps, then Newton's method.

Where Newton's method ends at a saddle, as where all components of a mixture are alike, the climb goes on from beside
it, the way that the density is curved upwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from ...factors.arrays import Array
from ...factors.errors import DataError, UnsupportedError
from ..checks.reference import spread_of
from ..density.log_density import LogDensity
from ..support.asked_arguments import values_by_name

CLIMBS, NEWTON = 2000, 60  # steps of the first climb, and of Newton's method after it
AT_ONCE = 16  # rows of a Hessian
ARRIVED = 1e-8  # nats that another step of Newton's would gain
SADDLES = 8  # that are left
UNSEEN = 1e-16  # of the largest curvature: below it rounding tells, not the density

Vector: TypeAlias = Float[np.ndarray, " coordinate"]
Slope: TypeAlias = Callable[[Vector], tuple[np.ndarray, np.ndarray]]  # the height, and its gradient
Hessian: TypeAlias = Callable[[Vector], np.ndarray]


class End(NamedTuple):
    """Where a climb ended.

    Attributes:
        place, height: the coordinates, and the log density there.
        slope: its gradient.
        covariance: the inverse of minus the Hessian, of a saddle that of its absolute value.
        proper: whether minus the Hessian is positive definite.
        gain: nats that another step of Newton's would gain, were the density quadratic.
    """

    place: Vector
    height: float
    slope: Vector
    covariance: np.ndarray
    proper: bool
    gain: float


def slopes_of(
    density: LogDensity, name: str, height: Callable[[Array, Mapping[str, Any]], Array]
) -> tuple[Slope, Hessian]:
    """The compiled slope and Hessian of `height`, a function of coordinates and data that `name` stands for."""

    def hessian(z: Array, data: Mapping[str, Any]) -> Array:
        slope = jax.grad(height)
        return jax.lax.map(
            lambda v: jax.jvp(lambda x: slope(x, data), (z,), (v,))[1], jnp.eye(len(z)), batch_size=AT_ONCE
        )

    slope = density.function(f"{name} slope", (), jax.value_and_grad(height))
    curved = density.function(f"{name} hessian", (), hessian)
    data = density.contents.data
    return lambda z: slope(z, data), lambda z: np.asarray(curved(z, data))


def first_place(density: LogDensity, start: Mapping[str, Any] | None) -> Vector:
    """The coordinates where a climb begins: zero, but for variables that `start` gives values of."""
    z = np.zeros(density.dimension)
    start = values_by_name(start, "start=")
    if not start:
        return z
    if unknown := [name for name in start if name not in density.names]:
        raise DataError(f"start= names '{unknown[0]}', which is none of {', '.join(density.names)}.")
    values = {**density.constrain(z), **{name: np.asarray(array, float) for name, array in start.items()}}
    return np.asarray(density.unconstrain(values))


def climbed(slope: Slope, hessian: Hessian, start: Vector) -> End:
    """The end of a climb from `start`: a maximum where it is proper and little would be gained.

    Raises UnsupportedError where the log density is not finite at the start.
    """
    if not np.isfinite(slope(start)[0]):
        raise UnsupportedError("The log density is not finite where the climb begins. Give start= values that fit.")
    end = _newton(slope, hessian, _uphill(slope, start))
    for _ in range(SADDLES):
        beside = None if end.proper else _beside_saddle(slope, hessian, end)
        if beside is None:
            break
        end = _newton(slope, hessian, _uphill(slope, beside))
    return end


def _uphill(slope: Slope, start: Vector) -> Vector:
    """Quasi-Newton steps."""

    def down(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = slope(z)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e300, np.zeros(len(z))
        return -float(value), -np.asarray(gradient)

    return minimize(down, start, jac=True, method="L-BFGS-B", options={"maxiter": CLIMBS}).x


def _newton(slope: Slope, hessian: Hessian, z: Vector) -> End:
    """Newton's method with steps that are halved until they gain."""
    for left in reversed(range(NEWTON)):
        height, gradient = (np.asarray(part) for part in slope(z))
        covariance, proper = _spread(hessian, z)
        step = covariance @ gradient
        end = End(z, float(height), gradient, covariance, proper, float(gradient @ step))
        if proper and end.gain < ARRIVED:
            break
        tried = (z + size * step for size in 0.5 ** np.arange(20))
        higher = next((there for there in tried if slope(there)[0] > height), None)
        if higher is None or not left:
            break
        z = higher
    return end


def _spread(hessian: Hessian, z: Vector) -> tuple[np.ndarray, bool]:
    """The inverse of minus the Hessian, and whether that was positive definite; nothing is, where it is no number."""
    found = hessian(z)
    if not np.isfinite(found).all() or not found.any():
        return np.zeros_like(found), False
    own = np.abs(np.diagonal(found))
    scale = 1.0 / np.sqrt(np.maximum(own, UNSEEN * own.max()) if own.any() else np.ones_like(own))
    covariance, proper = spread_of(-found * np.outer(scale, scale))  # whatever the units of the coordinates
    return covariance * np.outer(scale, scale), proper


def _beside_saddle(slope: Slope, hessian: Hessian, end: End) -> Vector | None:
    """A higher place the way that the density is curved upwards; None where there is none."""
    found = hessian(end.place)
    if not np.isfinite(found).all() or not found.any():
        return None
    values, vectors = np.linalg.eigh(0.5 * (found + found.T))
    if values[-1] <= 1e-10 * np.abs(values).max():
        return None
    way = vectors[:, -1] / np.sqrt(values[-1])
    tried = (end.place + size * way for exponent in range(0, 12, 2) for size in (0.5**exponent, -(0.5**exponent)))
    return next((there for there in tried if slope(there)[0] > end.height), None)
