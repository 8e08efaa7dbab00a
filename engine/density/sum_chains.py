"""Chains and trees of discrete states, summed out of a log density by messages from the last elements to the first.

An element given the one before it is a table over the states of both. With all that is known below it the element is
summed out of it, which leaves a message to the one before: the forward algorithm, from the end. Chains that meet are
summed out together. What else the tables vary over, plates and states of other variables, are independent lanes. Its
derivatives go the way back, which makes it the forward-backward algorithm. Source: rabiner1989hmm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...compiler.language.nodes import Random
from ...factors.arrays import Array
from ...factors.factor import Chain
from ..blocks.chain.trees import tree_of
from ..blocks.discrete.networks import log_sum
from ..values.evaluate import value
from ..values.plated import Placed, Plates, arrange, mapped, spread, to_event, union
from ..values.scope import Scope
from .tables import Read, Summed, checked_size, lengths, sum_of
from .terms import term_density


class Tables(NamedTuple):
    """What a chain, or several that meet, is made of, as log densities over the states.

    `own` are over the states of each element, `moves` also over those of the element before it, where a root reads the
    first state; `firsts` belong to the roots alone.
    """

    firsts: tuple[Placed, ...]
    own: tuple[Placed, ...]
    moves: tuple[Placed, ...]


def chain_of(variable: Random) -> Chain | None:
    """What generates a chain or a tree; None for another variable."""
    return variable.term if isinstance(variable.term, Chain) else None


def chain_densities(one: Summed, chain: Chain, scope: Scope) -> tuple[Placed, Placed]:
    """The log densities of the roots, and of all others given their parents: zero at roots where those differ."""
    plates, over = one.variable.plates, chain.over
    lanes = tuple(plate for plate in plates if plate is not over)
    assert one.before is not None
    scope = scope.with_data({chain.previous.name: Placed(scope.data[one.variable.name].value, (one.before,))})
    first = term_density(chain.first, one.variable, scope)
    then = term_density(chain.then, one.variable, scope)
    if not set(then.plates) <= {one.axis, one.before, *lanes}:
        root = Placed(_roots(chain, scope), (over,))
        then = mapped(lambda log_p, r: jnp.where(r, 0.0, log_p), then, root, order=plates)
    return first, then


def _roots(chain: Chain, scope: Scope) -> Array:
    numbers = jnp.arange(scope.sizes[chain.over.name])
    return numbers == 0 if chain.parent is None else jnp.asarray(value(chain.parent, scope).value) == numbers


def together(first: Summed, others: Mapping[str, Summed], reads: Iterable[Read]) -> dict[str, Summed]:
    """The chains that must be summed out together, by name: `first` and those that meet it, directly or not."""
    found, reads = {first.variable.name: first}, tuple(reads)
    while True:
        met = set().union(*(read.gathers for read in reads if set(found) & set(read.gathers)))
        more = {n: o for n, o in others.items() if n in met and n not in found and alike(first, o)}
        if not more:
            return found
        found |= more


def alike(one: Summed, other: Summed) -> bool:
    """Whether two variables are chains or trees of the same elements."""
    mine, its = chain_of(one.variable), chain_of(other.variable)
    same = mine is not None and its is not None and mine.over is its.over and mine.parent is its.parent
    return same and set(one.variable.plates) == set(other.variable.plates)


def sum_chains(group: tuple[Summed, ...], tables: Tables, scope: Scope) -> Placed:
    """log of the sum over all states of all elements: placed on the lanes."""
    chain = chain_of(group[0].variable)
    assert chain is not None
    over, axes = chain.over, tuple(one.axis for one in group)
    before = tuple(one.before for one in group if one.before is not None)
    everything = [*tables.firsts, *tables.own, *tables.moves]
    sizes = {plate.name: size for table in everything for plate, size in lengths(table).items()}
    sizes[over.name] = scope.sizes[over.name]
    inner = {over, *axes, *before}
    lanes = tuple(plate for plate in union(*(table.plates for table in everything)) if plate not in inner)
    checked_size(group[0].variable.name, math.prod(sizes[plate.name] for plate in (over, *lanes, *axes)))
    known = spread(sum_of([_zero(axes, sizes), *tables.own]), (over, *lanes, *axes), sizes)
    fixed = [table for table in tables.moves if over not in set(table.plates)]
    moving = [arrange(table, (over,)) for table in tables.moves if over in set(table.plates)]
    rest = [tuple(plate for plate in table.plates if plate is not over) for table in moving]
    read = [table.value for table in moving]

    @jax.checkpoint
    def up(known: Array, read: list[Array]) -> Array:
        """The message of an element to the one before it."""
        moves = [*fixed, *map(Placed, read, rest)]
        message = sum_of(_without([Placed(known, (*lanes, *axes)), *moves], axes))
        return spread(message, (*lanes, *before), sizes)

    def top(known: Array, read: list[Array]) -> Array:
        """All that is known of a root, its own states summed out."""
        moves = [_at_first(Placed(a, plates), before) for a, plates in zip(read, rest, strict=True)]
        total = sum_of(_without([Placed(known, (*lanes, *axes)), *moves, *tables.firsts], axes))
        return spread(total, lanes, sizes)

    if chain.parent is None:
        message = _along(up, known[1:], [array[1:] for array in read])
        return Placed(top(known[0] + message, [array[0] for array in read]), lanes)
    tree = tree_of(jnp.asarray(value(chain.parent, scope).value))

    def climb(known: jax.Array, i: Array) -> tuple[jax.Array, None]:
        message = jnp.where(tree.root[i], 0.0, up(known[i], [array[i] for array in read]))
        return known.at[tree.parent[i]].add(message), None

    known, _ = jax.lax.scan(climb, known, tree.order, reverse=True)
    tops = jax.vmap(top)(known, read)
    return Placed(jnp.sum(jnp.where(tree.root.reshape((-1,) + (1,) * len(lanes)), tops, 0.0), axis=0), lanes)


def _along(up, known: Array, read: list[Array]) -> Array:
    """The message that arrives at the first element of a chain."""

    def step(message: Array, element: tuple[Array, list[Array]]) -> tuple[Array, None]:
        own, read = element
        return up(own + message, read), None

    return jax.lax.scan(step, jnp.zeros(known.shape[1:]), (known, read), reverse=True)[0]


def _without(tables: list[Placed], axes: Plates) -> list[Placed]:
    """The tables after the states `axes` are summed out of their product, one variable after the other."""
    for axis in axes:
        mine = [table for table in tables if axis in set(table.plates)]
        total = to_event(sum_of(mine), axis)
        rest = [table for table in tables if axis not in set(table.plates)]
        tables = [*rest, Placed(log_sum(total.value, total.value.ndim - 1), total.plates)]
    return tables


def _zero(plates: Plates, sizes: dict[str, int]) -> Placed:
    return Placed(jnp.zeros([sizes[plate.name] for plate in plates]), plates)


def _at_first(table: Placed, before: Plates) -> Placed:
    """A table where the element before is in its first state."""
    for axis in set(before) & set(table.plates):
        moved = arrange(table, (axis,))
        table = Placed(moved.value[0], moved.plates[1:])
    return table
