"""VMP for the elements of an inner product: coordinate ascent, one element after the other.

Given the others each of them is conjugate, so every step is the exact optimum of the evidence in one element, for all
plates but that one at once. In the Gram form a step costs one inner product by row, however many data a row has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from ...compiler.algebra.inner_products import sides
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.language.nodes import Plate, Random
from ...factors.arrays import Array
from ..values.first_beliefs import family_of
from ..values.plated import Placed, spread
from ..values.scope import Scope
from .inner_product import gram


class System(NamedTuple):
    """The precision of a block, and the linear and the square part of its Gram form: elements first, all rows last.

    An axis of rows is of length one where nothing varies over them.
    """

    precision: Float[Array, " rows"]
    linear: Float[Array, "elements rows"]
    square: Float[Array, "elements elements rows"]


def messages_in_turn(
    variable: Random, over: Plate, blocks: Iterable[EnergyBlock], rest: tuple[Array, ...], scope: Scope
) -> tuple[Array, ...]:
    """The naturals of the blocks' messages to a variable, whose belief without them has the naturals `rest`.

    Both are shaped as the plates of the variable. Elements along `over` are updated from the first to the last.
    """
    family = family_of(variable)
    rows = tuple(plate for plate in variable.plates if plate is not over)
    position = variable.plates.index(over)
    size, shape = scope.sizes[over.name], tuple(scope.sizes[plate.name] for plate in rows)

    def elements_first(array: Array) -> Float[Array, "elements rows"]:
        return jnp.moveaxis(array, position, 0).reshape(size, -1)

    def back(array: Float[Array, "elements rows"]) -> Array:
        return jnp.moveaxis(array.reshape((size, *shape)), 0, position)

    systems = [_system(block, variable, rows, scope) for block in blocks]
    rest = tuple(elements_first(natural) for natural in rest)
    means = elements_first(scope.moments[variable.name].mean)
    linear = jnp.zeros_like(means)
    half = sum(-0.5 * tau * jnp.stack([square[k, k] for k in range(size)]) for tau, _, square in systems)
    half = jnp.broadcast_to(half, means.shape)

    def step(k: Int[Array, ""], carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        means, linear = carry
        shift = sum(tau * (seen[k] - jnp.sum(square[k] * means, axis=0)) for tau, seen, square in systems)
        shift = shift - 2.0 * half[k] * means[k]
        without = tuple(natural[k] for natural in rest)
        belief = family.from_naturals(tuple(map(jnp.add, without, _message(without, shift, half[k]))))
        return means.at[k].set(belief.mean()), linear.at[k].set(shift)

    _, linear = jax.lax.fori_loop(0, size, step, (means, linear))
    return tuple(map(back, _message(rest, linear, half)))


def _message(like: tuple[Array, ...], linear: Array, half: Array) -> tuple[Array, ...]:
    """Naturals in x and x^2, the last two of the family's statistics."""
    return (*map(jnp.zeros_like, like[:-2]), linear, half)


def _system(block: EnergyBlock, variable: Random, rows: tuple[Plate, ...], scope: Scope) -> System:
    """A block as a system of equations for the elements of the variable."""
    pair = sides(block)
    assert pair is not None, f"{block.name} is no inner product"
    left, right = pair
    own, other = (left, right) if left.expr is variable else (right, left)
    found = gram(block, own, other, scope)
    tau = jnp.ones(1) if found.outside is None else _by_row(found.outside, rows, scope)
    linear = jnp.moveaxis(_by_row(found.linear, rows, scope), -1, 0)
    square = jnp.moveaxis(_by_row(found.square, rows, scope), 0, -1)
    return System(tau, linear, square)


def _by_row(placed: Placed, rows: tuple[Plate, ...], scope: Scope) -> Float[Array, "rows ..."]:
    """The value with one axis for all rows, of length one where nothing varies over them."""
    if not placed.plates:
        return placed.value[None]
    array = spread(placed, rows, scope.sizes)
    return array.reshape((-1, *array.shape[len(rows) :]))
