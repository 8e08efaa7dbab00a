"""What chains with gates are made of, as arrays over time, joint states and lanes: expected log densities.

Gates are taken at all their states, along plates of their own. Those that do not vary along the chains, classes, are
lanes; those that do are states jointly with the discrete chains.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from ....compiler.blocks.whole import GatedBlock
from ....compiler.language.nodes import Plate, Random
from ....factors.arrays import Array
from ....factors.factor import Term
from ....factors.moments import Boolean, Category
from ...values.evaluate import value
from ...values.first_beliefs import discrete_family_of
from ...values.naturals import Naturals
from ...values.plated import Placed, mapped, spread, to_event
from ...values.scope import Scope
from .discrete_chain import LogMessages, Probabilities, Transitions
from .transitions import (
    Axes,
    Gaussians,
    by_case,
    chain_of,
    expected_log,
    gaussian_energies,
    gaussians,
    state_count,
)

Evaluate: TypeAlias = Callable[[Term, Placed, Scope], Placed]  # the log probability of an outcome


class Layout(NamedTuple):
    """How arrays are laid out: time, joint states, and lanes, which are independent chains by class.

    `states` has a plate of states for each discrete chain and each regime, `before` one for the element before of each,
    `classes` one for each class. `chains` of these states are chains, the others regimes.
    """

    over: Plate
    lanes: tuple[Plate, ...]
    classes: tuple[Plate, ...]
    states: tuple[Plate, ...]
    before: tuple[Plate, ...]
    sizes: dict[str, int]

    def number(self, plates: Sequence[Plate]) -> int:
        """How many elements these plates have together."""
        return math.prod(self.sizes[plate.name] for plate in plates)

    def lay(self, placed: Placed, *groups: tuple[Plate, ...], time: bool = True) -> jax.Array:
        """An array over (time, each group of plates in one axis, lanes)."""
        lead, lanes = (self.over,) if time else (), (*self.lanes, *self.classes)
        full = spread(placed, (*lead, *lanes, *(plate for group in groups for plate in group)), self.sizes)
        shape = [*([self.sizes[self.over.name]] if time else []), self.number(lanes), *map(self.number, groups)]
        return jnp.moveaxis(full.reshape(shape), len(lead), -1)

    def placed(self, array: jax.Array, *groups: tuple[Plate, ...], time: bool = True) -> Placed:
        """The way back."""
        lead = (self.over,) if time else ()
        plates = (*lead, *self.lanes, *self.classes, *(plate for group in groups for plate in group))
        array = jnp.moveaxis(array, -1, len(lead))
        return Placed(array.reshape([self.sizes[plate.name] for plate in plates]), plates)


class Gated(NamedTuple):
    """What the block is made of, under the moments of its parameters: log densities expected over these.

    `first` and `moves` are those of the joint states, `seen` of what is observed; `gaussian` the terms of a Gaussian
    chain by element, joint state and lane.
    """

    first: Probabilities
    moves: Transitions
    seen: LogMessages
    gaussian: Gaussians | None


def layout_of(block: GatedBlock, scope: Scope) -> Layout:
    """The layout of a block at the sizes of the data."""
    sizes = dict(scope.sizes)

    def axis(node: Random, what: str) -> Plate:
        plate = Plate(f"{what} of {node.name}", state_count(node, scope))
        sizes[plate.name] = plate.size or 0
        return plate

    moving = (*block.states, *block.regimes)
    return Layout(
        block.chain.over,
        block.lanes,
        tuple(axis(node, "states") for node in block.classes),
        tuple(axis(node, "states") for node in moving),
        tuple(axis(node, "states before") for node in moving),
        sizes,
    )


def _grid(node: Random, axis: Plate) -> Placed:
    numbers = jnp.arange(axis.size or 0)
    return Placed(numbers > 0 if node.domain.is_boolean else numbers, (axis,))


def parts_of(block: GatedBlock, layout: Layout, scope: Scope, evaluate: Evaluate = expected_log) -> Gated:
    discrete = (*block.states, *block.regimes)
    grids = {node.name: _grid(node, axis) for node, axis in zip(discrete, layout.states, strict=True)}
    grids |= {node.name: _grid(node, axis) for node, axis in zip(block.classes, layout.classes, strict=True)}
    within = dataclasses.replace(scope.with_data(grids), sizes=layout.sizes)
    firsts, moves = [Placed(jnp.zeros(()), ())], [Placed(jnp.zeros(()), ())]
    for node, own, before in zip(block.states, layout.states, layout.before, strict=False):
        first, move = _tables(node, own, before, within, evaluate)
        firsts.append(first)
        moves.append(move)
    seen = [Placed(jnp.zeros(()), ())]
    for node in block.observed_chains:
        found = (_seen_states if node.domain.is_discrete else _seen_gaussian)(node, layout, within)
        seen.append(_summed_to(layout, found))
    moved = functools.reduce(plus, moves)
    along = layout.over in set(moved.plates)
    table = layout.lay(moved, layout.before, layout.states, time=along)
    gaussian = None
    if block.gaussian is not None:
        axes = Axes(block.gaussian.plates, (layout.over, *layout.lanes, *layout.classes, *layout.states), layout.sizes)
        gaussian = _by_state(layout, gaussians(block.gaussian, within, _root(layout), axes))
    return Gated(
        layout.lay(functools.reduce(plus, firsts), layout.states, time=False),
        table[1:] if along and table.shape[0] > 1 else table if along else table[None],
        layout.lay(functools.reduce(plus, seen), layout.states),
        gaussian,
    )


def plus(one: Placed, other: Placed) -> Placed:
    return mapped(operator.add, one, other)


def _root(layout: Layout) -> jax.Array:
    return jnp.arange(layout.sizes[layout.over.name]) == 0


def _tables(node: Random, own: Plate, before: Plate, inside: Scope, evaluate: Evaluate) -> tuple[Placed, Placed]:
    """E log p(first) and E log p(child | parent) of a discrete chain over its states, and over those of its gates."""
    chain, size = chain_of(node), own.size or 0
    states = jnp.arange(size)
    out = Placed(Boolean(1.0 * states) if node.domain.is_boolean else Category(jnp.eye(size)), (own,))
    above = inside.with_data({chain.previous.name: _grid(node, before)})
    first = by_case(chain.first, inside, lambda term: evaluate(term, out, inside))
    return first, by_case(chain.then, above, lambda term: evaluate(term, out, above))


def _seen_states(node: Random, layout: Layout, inside: Scope) -> Placed:
    """The expected log density of each element of an observed discrete chain given the one before."""
    size = state_count(node, inside)
    own, before = Plate(f"states of {node.name}", size), Plate(f"states before of {node.name}", size)
    first, then = _tables(node, own, before, inside, expected_log)
    data = Placed(jnp.asarray(value(node, inside).value).astype(jnp.int32), node.plates)
    begun = mapped(lambda log, i: log[i], _evented(first, own), data)
    log = mapped(lambda log, i, j: log[i, j], _evented(_evented(then, own), before), _before(data, layout.over), data)
    root = Placed(_root(layout), (layout.over,))
    return mapped(lambda r, one, other: jnp.where(r, one, other), root, begun, log)


def _evented(placed: Placed, axis: Plate) -> Placed:
    """The axis of states as the first of an event, also where all states are alike."""
    if axis in set(placed.plates):
        return to_event(placed, axis)
    return mapped(lambda log: jnp.broadcast_to(log, (axis.size or 0, *jnp.shape(log))), placed)


def _before(data: Placed, over: Plate) -> Placed:
    """The value of the element before; of the first its own."""
    axis = data.plates.index(over)
    places = jnp.maximum(jnp.arange(data.value.shape[axis]) - 1, 0)
    return Placed(jnp.take(data.value, places, axis), data.plates)


def _seen_gaussian(node: Random, layout: Layout, inside: Scope) -> Placed:
    """The same of an observed Gaussian chain."""
    order = (layout.over, *(plate for plate in node.plates if plate is not layout.over))
    axes = Axes(node.plates, (*order, *layout.classes, *layout.states), layout.sizes)
    values = jnp.asarray(value(node, inside).value, float)
    mean = axes.lanes(Placed(values[..., None] if node.domain.is_real else values, node.plates))
    above = jnp.concatenate([jnp.zeros_like(mean[:1]), mean[:-1]])
    certain = jnp.zeros((*mean.shape[:2], *mean.shape[1:]))
    terms = gaussians(node, inside, _root(layout), axes)
    energies = gaussian_energies(terms, (mean, certain), (above, certain), certain)
    return Placed(energies.reshape([layout.sizes[plate.name] for plate in axes.order]), axes.order)


def _summed_to(layout: Layout, placed: Placed) -> Placed:
    """Without the plates of an observed chain that its gates have not."""
    own = {layout.over, *layout.lanes, *layout.classes, *layout.states}
    for plate in [plate for plate in placed.plates if plate not in own]:
        moved = to_event(placed, plate)
        placed = Placed(jnp.sum(moved.value, axis=-1), moved.plates)
    return placed


def _by_state(layout: Layout, terms: Gaussians) -> Gaussians:
    """Terms with joint states before lanes in the last axis."""
    states = layout.number(layout.states)

    def turned(array: jax.Array) -> jax.Array:
        apart = array.reshape((*array.shape[:-1], -1, states))
        return jnp.swapaxes(apart, -1, -2).reshape(array.shape)

    return jax.tree.map(turned, terms)


def logs_of(node: Random, cavities: Naturals) -> Array:
    """Logarithms by state, with all plates in one axis."""
    return discrete_family_of(node).from_naturals(cavities[node.name]).logits_by_state()


def as_placed(node: Random, array: Array, axis: Plate, layout: Layout) -> Placed:
    shape = [layout.sizes[plate.name] for plate in node.plates]
    return Placed(array.reshape((*shape, array.shape[-1])), (*node.plates, axis))


def outside(block: GatedBlock, layout: Layout, cavities: Naturals) -> LogMessages:
    """The messages of the other factors to the joint states."""
    nodes = zip((*block.states, *block.regimes), layout.states, strict=True)
    placed = [as_placed(node, logs_of(node, cavities), axis, layout) for node, axis in nodes]
    return layout.lay(functools.reduce(plus, placed, Placed(jnp.zeros(()), ())), layout.states)


def axes_in(node: Random, layout: Layout) -> Axes:
    return Axes(node.plates, (layout.over, *layout.lanes), layout.sizes)
