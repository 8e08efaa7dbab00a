"""Moves of real variables and vectors whose log density, given all others, is a quadratic form: exact Gaussian draws.

Precision and shift are the derivatives of the log density wherever the chain is. Elements that are independent given
the rest have a small matrix each, all others one together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ....compiler.language.nodes import Random
from ....factors import draws
from ....factors.arrays import Array, Key
from ...density.sum_chains import chain_of
from ...support.compiled import for_now
from ..joint import Data, Joint, Values, set_in_order
from ..move import Move, stateless
from .curvature import curvature_of
from .lanes import Lanes
from .predictors import precision_of_predictors, through_predictors
from .smooth import is_conjugate

EQUAL, ROUNDING = 1e-6, 1e-14  # of two second derivatives, and of the largest
DENSE = 400  # numbers that are drawn with one matrix
JOINTLY = "jointly, from the Gaussian that the rest gives"


def size_of(joint: Joint, name: str) -> int:
    """How many numbers a variable has."""
    return math.prod(joint.contents.shape(joint.variables[name]))


def _around(root: Array, shift: Array, noise: Array) -> Array:
    """precision^-1 shift plus noise of that covariance, for one Gaussian with this Cholesky factor of its precision."""
    solve = jax.scipy.linalg.solve_triangular
    return solve(root.T, solve(root, shift, lower=True) + noise, lower=False)


def jointly(joint: Joint, names: tuple[str, ...], values: Values) -> Move:
    """All elements of these variables together; `values` are any of all variables."""
    factors = joint.touching(names)
    start, back = ravel_pytree({name: values[name] for name in names})

    def slope_of(values: Values, data: Data) -> Callable[[jax.Array], Array]:
        return jax.grad(lambda x: joint.finite(factors, {**values, **back(x)}, data))

    def precision(values: Values, data: Data) -> Array:
        slope = slope_of(values, data)
        found = -jax.lax.map(lambda v: jax.jvp(slope, (start,), (v,))[1], jnp.eye(len(start)), batch_size=64)
        return 0.5 * (found + found.T)

    curvature = curvature_of(joint, precision, _others(values, names))

    def draw(key: Key, values: Values, data: Data) -> Values:
        now = ravel_pytree({name: values[name] for name in names})[0]
        root = curvature.root(_others(values, names), data)
        drawn = now + _around(root, slope_of(values, data)(now), draws.normal(key, now.shape))
        return back(jnp.where(jnp.all(jnp.isfinite(drawn)), drawn, now))  # else it is singular to rounding

    return stateless(names, JOINTLY, draw)


def _others(values: Values, names: tuple[str, ...]) -> Values:
    return {name: array for name, array in values.items() if name not in names}


def by_lane(joint: Joint, name: str, lanes: Lanes, values: Values) -> Move:
    """The numbers of each lane together: of each element where elements do not meet; `values` are any."""
    factors = joint.touching([name])

    def log_density_of(values: Values, data: Data) -> Callable[[Array], Array]:
        return lambda x: joint.finite(factors, {**values, name: lanes.back(x)}, data)

    curvature = curvature_of(
        joint,
        lambda values, data: precision_by_lane(joint, name, lanes, factors, values, data),
        _others(values, (name,)),
    )
    around = jnp.vectorize(_around, signature="(d,d),(d),(d)->(d)")

    def draw(key: Key, values: Values, data: Data) -> Values:
        now = lanes.rows(values[name])
        root = curvature.root(_others(values, (name,)), data)
        drawn = now + around(root, jax.grad(log_density_of(values, data))(now), draws.normal(key, now.shape))
        drawn = jnp.where(jnp.all(jnp.isfinite(drawn), axis=-1, keepdims=True), drawn, now)
        return {name: lanes.back(drawn)}

    return stateless((name,), _how(joint.variables[name], lanes), draw)


def _how(variable: Random, lanes: Lanes) -> str:
    if not variable.plates:
        return JOINTLY
    if len(lanes.plates) == len(variable.plates):
        return "each element from its Gaussian conditional"
    return f"for each {', '.join(plate.name for plate in lanes.plates)} jointly, from its Gaussian conditional"


def precision_by_lane(
    joint: Joint, name: str, lanes: Lanes, factors: tuple[str, ...], values: Values, data: Data
) -> jax.Array:
    """The precision (count, n, n) of the rows of a variable, of what these factors say of it."""
    predicted = through_predictors(joint, name, factors)
    left = set_in_order(factors, predicted)
    found = precision_of_predictors(joint, name, lanes, predicted, values, data)
    if not left:
        return found

    def log_density(x: Array) -> Array:
        return joint.finite(left, {**values, name: lanes.back(x)}, data)

    return found + lanes.precision(log_density, jnp.zeros((lanes.count, lanes.size)))


def is_gaussian(joint: Joint, names: tuple[str, ...], starts: list[Values], key: Key) -> bool:
    """Whether the conditional of these variables together is Gaussian, by structure and at several points."""
    return all(is_conjugate(joint, name) for name in names) and is_quadratic(joint, names, starts, joint.arrays, key)


def is_quadratic(
    joint: Joint,
    names: tuple[str, ...],
    states: list[Values],
    data: Data,
    key: Key,
    factors: tuple[str, ...] | None = None,
) -> bool:
    """Whether the log density, of all factors or of these, is a concave quadratic form in these variables.

    It is tried along random lines: a quadratic form has the same second derivative everywhere on one. Each factor is
    tried alone, and each number: a sharp one would hide what another adds.
    """
    read = joint.touching(names) if factors is None else factors

    def along_lines(values: Values, data: Data, words: Array) -> tuple[Array, Array]:
        """Whether the curvature along a line is the same at two places, for every number, and what it is."""
        start, back = ravel_pytree({name: values[name] for name in names})
        own = jax.random.split(jax.random.wrap_key_data(jnp.asarray(words)), 2)
        direction, other = (jax.random.normal(k, start.shape) for k in own)
        straight, total = jnp.asarray(True), jnp.zeros(start.shape)
        for factor in read:

            def curvature(x: Array, factor: str = factor) -> Array:
                slope = jax.grad(lambda x: joint.total((factor,), {**values, **back(x)}, data))
                return jax.jvp(slope, (x,), (direction,))[1]

            here, there = curvature(start), curvature(start + other)
            size = jnp.abs(here) + jnp.abs(there) + ROUNDING * jnp.max(jnp.abs(here))
            straight, total = straight & jnp.all(jnp.abs(here - there) <= EQUAL * size), total + here
        return straight, total @ direction

    tried = for_now(along_lines)
    for i, values in enumerate(states):
        straight, along = tried(values, data, jax.random.key_data(jax.random.fold_in(key, i)))
        if not (bool(straight) and bool(along < 0.0)):
            return False
    return True


def along_chain(joint: Joint, name: str) -> Move:
    """A long chain jointly: its precision has blocks beside the diagonal alone, which few derivatives tell.

    A vector that is one at every third element reads a column of three blocks of each at once. Source: rue2001fast.
    """
    variable, factors = joint.variables[name], joint.touching([name])
    chain = chain_of(variable)
    assert chain is not None
    shape, place = joint.contents.shape(variable), variable.plates.index(chain.over)
    lanes = tuple(size for i, size in enumerate(shape[: len(variable.plates)]) if i != place)
    length, dimension = shape[place], math.prod(shape[len(variable.plates) :])

    def rows(x: Array) -> Array:
        return jnp.moveaxis(x, place, 0).reshape((length, *lanes, dimension))

    def back(x: Array) -> Array:
        return jnp.moveaxis(x.reshape((length, *lanes, *shape[len(variable.plates) :])), 0, place)

    def draw(key: Key, values: Values, data: Data) -> Values:
        start = rows(values[name])
        slope = jax.grad(lambda x: joint.total(factors, {**values, name: back(x)}, data))
        number = jnp.arange(length)

        def column(color: int, unit: Array) -> Array:
            """Of minus the curvature, the blocks of every element with the one of this color next to it."""
            at = jnp.where((number % 3 == color).reshape((-1,) + (1,) * (start.ndim - 1)), unit, 0.0)
            return -jax.jvp(slope, (start,), (jnp.broadcast_to(at, start.shape),))[1]

        found = jnp.stack(
            [jnp.stack([column(color, unit) for unit in jnp.eye(dimension)], axis=-1) for color in range(3)]
        )
        own = found[number % 3, number]
        below = found[(number - 1) % 3, number]  # of an element with the one before it
        noise = draws.normal(key, start.shape)
        drawn = start + _banded(0.5 * (own + jnp.swapaxes(own, -1, -2)), below, slope(start), noise)
        return {name: back(jnp.where(jnp.all(jnp.isfinite(drawn)), drawn, start))}

    return stateless((name,), "the chain jointly, from the Gaussian that the rest gives", draw)


def _banded(own: Array, below: jax.Array, shift: Array, noise: Array) -> Array:
    """P^-1 shift plus noise of that covariance, from the blocks of P on the diagonal and left of it."""
    solve = jnp.vectorize(
        lambda root, b: jax.scipy.linalg.solve_triangular(root, b, lower=True), signature="(d,d),(d,e)->(d,e)"
    )
    solve_up = jnp.vectorize(
        lambda root, b: jax.scipy.linalg.solve_triangular(root.T, b[:, None], lower=False)[:, 0],
        signature="(d,d),(d)->(d)",
    )

    def forward(before: tuple[Array, Array], element: tuple[Array, Array, Array]) -> tuple[tuple, tuple]:
        root, done = before
        diagonal, left, b = element
        gain = jnp.swapaxes(solve(root, jnp.swapaxes(left, -1, -2)), -1, -2)
        lower = jnp.linalg.cholesky(diagonal - gain @ jnp.swapaxes(gain, -1, -2))
        new = solve(lower, (b - (gain @ done[..., None])[..., 0])[..., None])[..., 0]
        return (lower, new), (lower, new, gain)

    first = jnp.broadcast_to(jnp.eye(own.shape[-1]), own.shape[1:]), jnp.zeros(shift.shape[1:])
    _, (roots, b, gains) = jax.lax.scan(forward, first, (own, below.at[0].set(0.0), shift))

    def backward(after: tuple[Array, Array], element: tuple[Array, Array, Array]) -> tuple[tuple, Array]:
        x, gain_after = after
        root, own_b, gain = element
        x = solve_up(root, own_b - (jnp.swapaxes(gain_after, -1, -2) @ x[..., None])[..., 0])
        return (x, gain), x

    start = jnp.zeros(shift.shape[1:]), jnp.zeros(own.shape[1:])
    return jax.lax.scan(backward, start, (roots, b + noise, gains), reverse=True)[1]
