"""Moves of counts and vectors of counts: slice sampling on whole numbers.

A count k stands for all numbers between k and k + 1: their density is constant there, and which of them it is is drawn
anew at each move. Of a vector of counts, whose total is given, some are moved from one class to another. Source:
neal2003slice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ...values.plated import spread
from ..joint import Data, Gathers, Joint, Values
from ..move import Move, Stage
from .slices import LEARNS, Density, slice_step

HOW = "by slice sampling on the whole numbers"
FAR = 12.0  # how many doublings of the width a count that is impossible looks around within


def count_move(joint: Joint, name: str) -> Move:
    """The move of a variable that counts."""
    return _of_vectors(joint, name) if joint.variables[name].domain.is_vector else _of_numbers(joint, name)


def _drawn(key: Key, density: Density, count: Array, width: Array) -> tuple[Array, Array]:
    """The next count of each, given log densities of all, and how wide its slice was."""
    keys = jax.random.split(key, 3)

    def log_density(z: Array) -> Array:
        found = density(jnp.floor(z))
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    z = count + draws.uniform(keys[0], count.shape)
    lost = jnp.isneginf(log_density(z))
    wide = width * 2.0 ** (FAR * draws.uniform(keys[1], width.shape))
    found, seen = slice_step(keys[2], log_density, z, jnp.where(lost, wide, width))
    return jnp.floor(found), jnp.where(lost, width, seen)


def _learned(width: Array, seen: Array, stage: Stage) -> Array:
    return jnp.where(stage.warming, (1.0 - LEARNS) * width + LEARNS * jnp.maximum(1.5 * seen, 1.0), width)


def _of_numbers(joint: Joint, name: str) -> Move:
    """Each count at once where they are independent given all others, else one after the other."""
    gathers = joint.gathers(name)
    if gathers is None:
        return _move(joint, name, functools.partial(_in_turn, joint, name), "each in turn")
    return _move(joint, name, functools.partial(_at_once, joint, name, gathers), "each count")


def _at_once(
    joint: Joint, name: str, gathers: Gathers, key: Key, values: Values, width: Array, data: Data
) -> tuple[Array, Array]:
    def density(count: Array) -> Array:
        table = joint.by_element(name, gathers, {**values, name: jnp.maximum(count, 0.0)}, data)
        return jnp.where(count < 0.0, -jnp.inf, spread(table, joint.variables[name].plates, joint.sizes))

    return _drawn(key, density, values[name], width)


def _in_turn(joint: Joint, name: str, key: Key, values: Values, width: Array, data: Data) -> tuple[Array, Array]:
    factors, shape = joint.touching([name]), values[name].shape

    def visit(i: Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        flat, widths = now

        def density(count: Array) -> Array:
            moved = flat.at[i].set(jnp.maximum(count, 0.0)).reshape(shape)
            return jnp.where(count < 0.0, -jnp.inf, joint.total(factors, {**values, name: moved}, data))

        count, seen = _drawn(jax.random.fold_in(key, i), density, flat[i], widths[i])
        return flat.at[i].set(count), widths.at[i].set(seen)

    begin = jnp.ravel(values[name]), jnp.ravel(width)
    flat, seen = jax.lax.fori_loop(0, math.prod(shape), visit, begin)
    return flat.reshape(shape), seen.reshape(shape)


def _of_vectors(joint: Joint, name: str) -> Move:
    """Some of the counts of a class go to another, for as many pairs of classes as there are classes."""
    variable, gathers, factors = joint.variables[name], joint.gathers(name), joint.touching([name])
    classes = joint.contents.shape(variable)[-1]

    def step(key: Key, values: Values, width: Array, data: Data) -> tuple[Array, Array]:
        def density_of(counts: Array) -> Array:
            moved = {**values, name: jnp.maximum(counts, 0.0)}
            if gathers is None:
                found = joint.total(factors, moved, data)
            else:
                found = spread(joint.by_element(name, gathers, moved, data), variable.plates, joint.sizes)
            return jnp.where(jnp.any(counts < 0.0, axis=-1), -jnp.inf, found)

        def exchange(i: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            counts, width = now
            keys = jax.random.split(jax.random.fold_in(key, i))
            one, other = jax.random.choice(keys[0], classes, (2,), replace=False)
            direction = jnp.zeros(classes).at[one].set(1.0).at[other].set(-1.0)

            def density(gone: Array) -> Array:
                return density_of(counts + gone[..., None] * direction)

            gone, seen = _drawn(keys[1], density, jnp.zeros(width.shape), width)
            return counts + gone[..., None] * direction, seen

        return jax.lax.fori_loop(0, classes, exchange, (values[name], width))

    return _move(joint, name, step, "counts from class to class")


def _move(joint: Joint, name: str, step: Callable, what: str) -> Move:
    variable = joint.variables[name]
    shape = joint.contents.shape(variable)[: len(variable.plates)]

    def stepped(key: Key, values: Values, width: Array, data: Data, stage: Stage) -> tuple[Values, Array]:
        found, seen = step(key, values, width, data)
        return {**values, name: found}, _learned(width, seen, stage)

    return Move((name,), f"{what} {HOW}", False, lambda values, data: jnp.full(shape, 2.0), stepped, True)
