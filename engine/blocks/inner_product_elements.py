"""VMP for the elements of an inner product: coordinate ascent, one element after the other.

Given the others each of them is conjugate, so every step is the exact optimum of the evidence in one element, for all
plates but that one at once. In the Gram form a step costs one inner product by row, however many data a row has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from ...compiler.algebra.inner_products import sides
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.language.nodes import Plate, Random
from ..values.first_beliefs import family_of
from ..values.plated import Placed, spread
from ..values.scope import Scope
from .inner_product import gram


def messages_in_turn(
    variable: Random, over: Plate, blocks: Iterable[EnergyBlock], rest: tuple[Any, ...], scope: Scope
) -> Any:
    """The naturals of the blocks' messages to a variable, whose belief without them has the naturals `rest`.

    Elements along `over` are updated from the first to the last.
    """
    family = family_of(variable)
    rows = tuple(plate for plate in variable.plates if plate is not over)
    position = variable.plates.index(over)
    size, shape = scope.sizes[over.name], tuple(scope.sizes[plate.name] for plate in rows)

    def first(array: Any) -> Any:  # elements on the first axis, all rows on the second
        return jnp.moveaxis(array, position, 0).reshape(size, -1)

    def back(array: Any) -> Any:
        return jnp.moveaxis(array.reshape((size, *shape)), 0, position)

    systems = [_system(block, variable, rows, scope) for block in blocks]
    rest = tuple(first(natural) for natural in rest)
    means = first(scope.moments[variable.name].mean)
    linear = jnp.zeros_like(means)
    half = sum(-0.5 * tau * jnp.stack([square[k, k] for k in range(size)]) for tau, _, square in systems)
    half = jnp.broadcast_to(half, means.shape)

    def step(k: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        means, linear = carry
        own = sum(tau * (seen[k] - jnp.sum(square[k] * means, axis=0)) for tau, seen, square in systems)
        own = own - 2.0 * half[k] * means[k]
        silent = tuple(natural[k] for natural in rest)
        belief = family.from_naturals(tuple(map(jnp.add, silent, _message(silent, own, half[k]))))
        return means.at[k].set(belief.mean()), linear.at[k].set(own)

    _, linear = jax.lax.fori_loop(0, size, step, (means, linear))
    return tuple(map(back, _message(rest, linear, half)))


def _message(like: tuple[Any, ...], linear: Any, half: Any) -> tuple[Any, ...]:
    """Naturals in x and x^2, the last two of the family's statistics."""
    return (*map(jnp.zeros_like, like[:-2]), linear, half)


def _system(block: EnergyBlock, variable: Random, rows: tuple[Plate, ...], scope: Scope) -> tuple[Any, Any, Any]:
    """The precision, the linear and the square part of a block's Gram form, elements first and all rows last."""
    pair = sides(block)
    assert pair is not None, f"{block.name} is no inner product"
    left, right = pair
    own, other = (left, right) if left.expr is variable else (right, left)
    found = gram(block, own, other, scope)
    tau = jnp.ones(1) if found.outside is None else _by_row(found.outside, rows, scope)
    linear = jnp.moveaxis(_by_row(found.linear, rows, scope), -1, 0)
    square = jnp.moveaxis(_by_row(found.square, rows, scope), 0, -1)
    return tau, linear, square


def _by_row(placed: Placed, rows: tuple[Plate, ...], scope: Scope) -> Any:
    """The value with one axis for all rows, of length one where nothing varies over them."""
    if not placed.plates:
        return placed.value[None]
    array = spread(placed, rows, scope.sizes)
    return array.reshape((-1, *array.shape[len(rows) :]))
