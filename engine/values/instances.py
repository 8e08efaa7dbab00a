"""How the instances of an EP block reach their variables: index arrays, made from the data once per run.

Everything that depends on an instance is flattened over the block's plates and laid out in batches, so that messages
travel through a scan in schedule order and only marginals are gathered and scattered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...compiler.algebra.known import root
from ...compiler.blocks.base import Block
from ...compiler.language.nodes import Expr, Let, Plate, Random
from ...factors.arrays import Array, Key
from ...factors.errors import UnsupportedError
from .evaluate import value
from .few_sizes import fewest
from .padding import among_padded, numbers_of_rows, padded_plates, shuffled
from .plated import Placed, spread
from .row_blocks import Rows
from .scope import Scope

BATCHES, IN_ORDER = "batches", "in order"  # how rows take turns, beside one by one in a random order
_EACH, _FEWEST, _MOST = 400, 8, 32  # instances of a batch, and batches
_Tree = TypeVar("_Tree")  # a pytree of arrays


class Shares(NamedTuple):
    """How batches are cut among devices: each has as many places, `each` rows of one instance or more.

    `places[b, w]` is the place of an instance in its batch where nothing is cut, and there are `width` of these.
    """

    devices: int
    each: int  # instances that a device has at most
    width: int
    places: Array


class ScheduleLayout(NamedTuple):
    """`order[b, w]` is the instance in place w of batch b; `present[b, w]` is false for padding.

    None where a single batch in natural order will do. A batch consists of `blocks` blocks of consecutive rows. Where
    rows are dealt to devices, `shares` says how, and w runs over the places of the first device, then of the next.
    """

    order: Array
    present: Array
    blocks: int = 1
    shares: Shares | None = None


def count(owner: Block | Random | Let, sizes: Mapping[str, int]) -> int:
    """Number of instances of a block, or of elements of a variable."""
    return math.prod(sizes[plate.name] for plate in owner.plates)


def schedule_shape(plan: ScheduleLayout | None, block: Block, sizes: dict[str, int]) -> tuple[int, ...]:
    """(batches, width) of everything that travels in schedule order."""
    return plan.order.shape if plan is not None else (1, count(block, sizes))


def positions(element: Expr, block: Block, scope: Scope) -> PyTree:
    """The flat position of each instance's element in its variable; None when the variable has a single element."""
    if count(root(element), scope.sizes) == 1:
        return None
    found = flat(numbered(element, scope), block, scope)  # one number where all instances use the same element
    return jnp.broadcast_to(found, (count(block, scope.sizes),))


def numbered(element: Expr, scope: Scope) -> Placed:
    """The flat position of an element in its variable."""
    variable = root(element)
    shape = [scope.sizes[plate.name] for plate in variable.plates]
    numbers = jnp.arange(math.prod(shape), dtype=jnp.int32).reshape(shape)
    return value(element, scope.with_data({variable.name: numbers}))


def flattened(tree: _Tree, plan: ScheduleLayout | None) -> _Tree:
    """What travels in schedule order, (batches, width), with one axis of instances; those of a device stay together."""
    dealt = plan is not None and plan.shares is not None

    def flat(array: Array) -> Array:
        return (jnp.swapaxes(array, 0, 1) if dealt else array).reshape((-1, *array.shape[2:]))

    return jax.tree.map(flat, tree)


def flat(placed: Placed, block: Block, scope: Scope) -> PyTree:
    """A value flattened over the instances of a block; a scalar that is the same for all stays a scalar."""
    if not placed.plates and jnp.ndim(placed.value) == 0:
        return placed.value
    full = spread(placed, block.plates, scope.sizes)
    event = full.shape[len(block.plates) :]
    return full.reshape((count(block, scope.sizes), *event))


def one_to_one(block: Block, edges: tuple[Expr, ...]) -> bool:
    """True when no two instances share an element, so that all of them may be updated at once."""
    return all(isinstance(edge, (Random, Let)) and set(root(edge).plates) == set(block.plates) for edge in edges)


def batches(instances: int, coupled: bool) -> int:
    """How many batches a sweep is cut into: one without conflicts, else 8 to 32 (fewer for very few instances)."""
    if not coupled:
        return 1
    return int(np.clip(instances // _EACH, min(_FEWEST, instances), _MOST))


def layout(block: Block, scope: Scope, edges: tuple[Expr, ...], key: Key) -> ScheduleLayout | None:
    """A random permutation of the instances cut into equal batches; conflicts inside a batch are allowed.

    Where the block is cut into blocks of rows, these are permuted. Where its rows are dealt to devices, the batches are
    the same, and each device has its own rows of each.
    """
    found = _layout(block, scope, edges, key)
    if scope.dealt is None:
        return found
    return _cut_among_devices(found, block, scope)


def _cut_among_devices(found: ScheduleLayout | None, block: Block, scope: Scope) -> ScheduleLayout | None:
    """The same batches, with the instances of the first device before those of the next."""
    dealt = scope.dealt
    if dealt is None or not block.plates or block.plates[0] not in set(dealt.plates):
        return found
    instances, plate = count(block, scope.sizes), block.plates[0]
    each = dealt.each(plate) * (instances // scope.sizes[plate.name])
    if found is None:
        found = ScheduleLayout(jnp.arange(instances)[None], jnp.ones((1, instances), bool))
        most = each
    else:
        most = _most_of_a_batch(block, scope, found, each, dealt.devices)
    order, present = found.order, found.present

    def own(device: Array) -> tuple[Array, Array, Array]:
        mine = present & (order // each == device)
        place = jnp.argsort(~mine, axis=1, stable=True)[:, :most]
        here = jnp.take_along_axis(mine, place, axis=1)
        first = jnp.minimum(device * each, instances - 1)
        return jnp.where(here, jnp.take_along_axis(order, place, axis=1), first), here, place

    def side_by_side(array: Array) -> Array:  # (device, batch, place)
        array = jnp.swapaxes(dealt.held(array, 0), 0, 1)
        return dealt.held(array.reshape((array.shape[0], -1)), 1)

    order, present, places = map(side_by_side, jax.vmap(own)(dealt.held(jnp.arange(dealt.devices), 0)))
    shares = Shares(dealt.devices, each, found.order.shape[1], places.astype(jnp.int32))
    return ScheduleLayout(order.astype(jnp.int32), present, 1, shares)


def _most_of_a_batch(block: Block, scope: Scope, found: ScheduleLayout, each: int, devices: int) -> int:
    """As many places as a device needs for its instances of any batch."""
    batches, width = found.order.shape
    if (rows := scope.rows.get(block)) is not None:  # of every stretch of so many blocks of rows a batch has one
        size = rows.size * (count(block, scope.sizes) // rows.total)
        return min(width, (each // (size * batches) + 2) * size)
    # In random order the number is hypergeometric, and exceeds this with a probability below 1e-16.
    mean = width / devices
    return min(width, math.ceil(mean + 12.0 * math.sqrt(mean)) + 16)


def _layout(block: Block, scope: Scope, edges: tuple[Expr, ...], key: Key) -> ScheduleLayout | None:
    instances = count(block, scope.sizes)
    if (rows := scope.rows.get(block)) is not None:
        if scope.turns != BATCHES:
            raise UnsupportedError(
                f"Asked for rows that take turns {scope.turns!r} in {block.name}, which has {rows.total} of them: "
                "beyond some hundred thousand numbers they go in batches, since one by one takes hours. Leave "
                "schedule= out."
            )
        return layout_of_rows(rows, instances // rows.total, key)
    coupled, groups = _coupled(block, scope.sizes)
    apart = one_to_one(block, edges)
    if padded_plates(block, scope) and not apart:
        return _padded_layout(block, scope, key)
    number = batches(groups, not apart) if scope.turns == BATCHES or apart else groups
    if number == 1:
        return None
    width = -(-groups // number)
    turns = jnp.arange(groups) if scope.turns == IN_ORDER else jax.random.permutation(key, groups)
    order = jnp.concatenate([turns, jnp.full(number * width - groups, groups)])
    order = (order[:, None] * coupled + jnp.arange(coupled)).reshape(number, width * coupled)
    return ScheduleLayout(jnp.minimum(order, instances - 1).astype(jnp.int32), order < instances)


def _coupled(block: Block, sizes: Mapping[str, int]) -> tuple[int, int]:
    """How many instances a site couples, which stay side by side, and the number of such groups."""
    coupled = 1 if block.over is None else sizes[block.over.name]
    return coupled, count(block, sizes) // coupled


def _padded_layout(block: Block, scope: Scope, key: Key) -> ScheduleLayout:
    """The layout of the instances that count, where plates are padded: the same batches as without, with empty places.

    How many count is known inside the program alone.
    """
    coupled, groups = _coupled(block, scope.sizes)
    room, width = padded_room(block, scope.sizes, scope.padded)
    plates = tuple(plate for plate in block.plates if plate is not block.over)
    numbers = numbers_of_rows(plates, scope)
    counted = jnp.prod(jnp.stack([jnp.asarray(number) for number in numbers]))
    number = jnp.clip(counted // _EACH, jnp.minimum(_FEWEST, counted), _MOST)
    each = -(-counted // number)
    column = jnp.arange(width // coupled)
    place = jnp.arange(room)[:, None] * each + column
    present = (column < each) & (place < counted)
    order = shuffled(key, groups, counted)[jnp.where(present, place, 0)]
    order = among_padded(order, numbers, [scope.sizes[plate.name] for plate in plates])
    order = jnp.where(present, order, groups - 1)[..., None] * coupled + jnp.arange(coupled)
    present = jnp.broadcast_to(present[..., None], order.shape)
    return ScheduleLayout(order.reshape(room, width).astype(jnp.int32), present.reshape(room, width))


def padded_room(block: Block, sizes: Mapping[str, int], padded: tuple[Plate, ...]) -> tuple[int, int]:
    """Batches, and instances of each, that are enough for all numbers of rows that are padded to these sizes."""
    coupled, groups = _coupled(block, sizes)
    within = [sizes[plate.name] for plate in block.plates if plate in set(padded)]
    least = groups // math.prod(within) * math.prod(map(fewest, within))
    # Batches grow with the number of groups, until there is one more of them.
    ends = [end for end in range(_EACH - 1, min(groups, _EACH * (_MOST + 1)), _EACH) if end >= least]
    return batches(groups, True), max(-(-end // batches(end, True)) for end in [groups, *ends]) * coupled


def room(block: Block, sizes: Mapping[str, int]) -> tuple[int, int] | None:
    """Batches, and instances of each, that a block has; None where all are one batch in their order."""
    if one_to_one(block, block.elements):
        return None
    coupled, groups = _coupled(block, sizes)
    number = batches(groups, True)
    return number, -(-groups // number) * coupled


def layout_of_rows(rows: Rows, each: int, key: Key) -> ScheduleLayout:
    """Blocks of rows in up to 32 batches; `each` is the number of instances of a row.

    A batch has one block, in random order, of every stretch of as many blocks as there are batches: whoever has some of
    the rows has about as many of each batch.
    """
    blocks = -(-rows.number // _MOST)
    number = -(-rows.number // blocks)
    turns = jax.vmap(partial(jax.random.permutation, x=number))(jax.random.split(key, blocks))
    chosen = jnp.minimum(turns + number * jnp.arange(blocks)[:, None], rows.number)
    window = rows.window(chosen.T.reshape(-1))
    row = window.first[:, None] + jnp.arange(rows.size)
    present = jnp.repeat(row >= window.fresh[:, None], each, axis=1)
    order = (row[..., None] * each + jnp.arange(each)).reshape(present.shape)
    return ScheduleLayout(order.reshape(number, -1).astype(jnp.int32), present.reshape(number, -1), blocks)


def arranged(array: PyTree, plan: ScheduleLayout | None) -> PyTree:
    """Per-instance values in schedule order (batches, width, ...); scalars pass."""
    if array is None or jnp.ndim(array) == 0:
        return array
    if plan is None:
        return array[None]
    if plan.shares is None:
        return array[plan.order]
    return _arranged_by_device(array, plan, plan.shares)


def _arranged_by_device(array: Array, plan: ScheduleLayout, shares: Shares) -> Array:
    """The same, where each device reads what it has."""
    padding = shares.devices * shares.each - array.shape[0]
    rows = jnp.pad(array, [(0, padding)] + [(0, 0)] * (array.ndim - 1))
    rows = rows.reshape((shares.devices, shares.each, *array.shape[1:]))
    place = plan.order.reshape((-1, shares.devices, plan.order.shape[1] // shares.devices))
    place = place - shares.each * jnp.arange(shares.devices)[:, None]
    found = jax.vmap(lambda own, at: own[at], (0, 1), 1)(rows, jnp.maximum(place, 0))
    return found.reshape((*plan.order.shape, *array.shape[1:]))


def restored(array: Array, plan: ScheduleLayout | None, instances: int) -> Array:
    """Schedule order back to instances."""
    if plan is None:
        return array[0]
    back = jnp.zeros((instances + 1, *array.shape[2:]), array.dtype)
    place = jnp.where(plan.present, plan.order, instances)
    return back.at[place].set(array)[:instances]
