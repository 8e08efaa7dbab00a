"""Chains with what gates their transitions, solved jointly, given the messages of all other factors.

A gate that is the same along the chain, the class of its plate's element, makes a chain for each class: independent
lanes, whose evidences are the message to the class. Gates that move along, other chains or regimes of each element,
make a state jointly with the discrete chains. Observed chains are what such states are seen by. All this is exact.
Gaussian states are so given a class, too; under a gate that moves they are mixtures (`switching.py`). Random parameters
are met through their moments. Source: ghahramani1997factorial, barber2006expectation.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ....compiler.blocks.whole import GatedBlock
from ....compiler.language.nodes import Plate, Random
from ....factors.arrays import Array, Key
from ....factors.families.base import ExponentialFamily
from ....factors.moments import Boolean, Category
from ...values.evaluate import value
from ...values.first_beliefs import event_size, family_of
from ...values.instances import count
from ...values.naturals import Naturals, subtract
from ...values.plated import Placed, mapped, spread, to_event, union
from ...values.scope import Scope
from ..discrete import tables
from . import discrete_chain, switching
from .discrete_chain import LogMessages, Probabilities, Transitions
from .gaussian_chain import Matrices, Vectors
from .small_matrices import applied, inverse, outer, product, symmetric
from .transitions import (
    Axes,
    Gaussians,
    TransitionTables,
    by_case,
    chain_of,
    expected_log,
    gaussian_energies,
    gaussians,
    state_count,
    table_energy,
)

logsumexp = jax.scipy.special.logsumexp


class PreparedGates(NamedTuple):
    """Uniform messages: there is nothing else that depends on data only."""

    initial: Naturals


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


class Solved(NamedTuple):
    """The block solved in every lane: log Z, log probabilities of the joint states, expected pairs, and Gaussians."""

    log_z: Float[jax.Array, " lanes"]
    log_states: LogMessages
    pairs: Transitions
    gaussian: switching.SmoothedSwitches | None


def prepare(block: GatedBlock, scope: Scope, key: Key, apart: bool = False) -> PreparedGates:
    """Uniform messages; there is nothing random in it."""
    return PreparedGates(
        {
            node.name: family_of(node).uniform((count(node, scope.sizes),), event_size(node, scope)).naturals()
            for node in block.reached
        }
    )


def family(block: GatedBlock, name: str) -> type[ExponentialFamily]:
    """The family of one of the variables."""
    return family_of(next(node for node in block.reached if node.name == name))


def solve(
    block: GatedBlock, prepared: PreparedGates, cavities: Naturals, scope: Scope
) -> tuple[Float[jax.Array, ""], Naturals]:
    """log Z and the naturals of all marginals, given the messages of the other factors.

    The gradient of log Z in parameters' moments and in inputs is that of the expected log density under the pairs'
    marginals; in the cavities it is that of log Z itself.
    """
    layout = layout_of(block, scope)
    parts = _parts(block, layout, scope)
    outside = _outside(block, layout, cavities)
    found = _solved(block, layout, jax.lax.stop_gradient(parts), outside, cavities)
    log_z, shares = _classes(block, layout, found.log_z, cavities)
    weight = jnp.exp(shares.own)
    energy = _energy(layout, parts, jax.lax.stop_gradient((found, weight)))
    marginals = jax.lax.stop_gradient(_marginals(block, layout, found, shares, cavities))
    return log_z + energy - jax.lax.stop_gradient(energy), marginals


def energy(
    block: GatedBlock, prepared: PreparedGates, naturals: Naturals, messages: Naturals, scope: Scope
) -> Float[jax.Array, ""]:
    """A scalar with the gradient in the moments of parameters that `solve` gives, where beliefs are up to date.

    Gates weigh as in all other factors, by the moments that they have: in the first sweep the start of classes that
    nothing tells apart.
    """
    layout = layout_of(block, scope)
    cavities = {name: subtract(naturals[name], messages[name]) for name in messages}
    parts = _parts(block, layout, scope)
    fixed, moments = jax.lax.stop_gradient((parts, scope.moments))
    found = _solved(block, layout, fixed, _outside(block, layout, cavities), cavities)
    _, shares = _classes(block, layout, found.log_z, cavities)
    marginals = _marginals(block, layout, found, shares, cavities)
    found, weight = _as_weighed(block, layout, found, jnp.exp(shares.own), marginals, moments)
    return _energy(layout, parts, jax.lax.stop_gradient((found, weight)))


# what the block is made of --------------------------------------------------------------------------------------------


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


def _parts(block: GatedBlock, layout: Layout, scope: Scope) -> Gated:
    discrete = (*block.states, *block.regimes)
    grids = {node.name: _grid(node, axis) for node, axis in zip(discrete, layout.states, strict=True)}
    grids |= {node.name: _grid(node, axis) for node, axis in zip(block.classes, layout.classes, strict=True)}
    inside = dataclasses.replace(scope.with_data(grids), sizes=layout.sizes)
    firsts, moves = [Placed(jnp.zeros(()), ())], [Placed(jnp.zeros(()), ())]
    for node, own, before in zip(block.states, layout.states, layout.before, strict=False):
        first, move = _tables(node, own, before, inside)
        firsts.append(first)
        moves.append(move)
    seen = [Placed(jnp.zeros(()), ())]
    for node in block.observed_chains:
        found = (_seen_states if node.domain.is_discrete else _seen_gaussian)(node, layout, inside)
        seen.append(_summed_to(layout, found))
    moved = functools.reduce(_plus, moves)
    along = layout.over in set(moved.plates)
    table = layout.lay(moved, layout.before, layout.states, time=along)
    gaussian = None
    if block.gaussian is not None:
        axes = Axes(block.gaussian.plates, (layout.over, *layout.lanes, *layout.classes, *layout.states), layout.sizes)
        gaussian = _by_state(layout, gaussians(block.gaussian, inside, _root(layout), axes))
    return Gated(
        layout.lay(functools.reduce(_plus, firsts), layout.states, time=False),
        table[1:] if along and table.shape[0] > 1 else table if along else table[None],
        layout.lay(functools.reduce(_plus, seen), layout.states),
        gaussian,
    )


def _plus(one: Placed, other: Placed) -> Placed:
    return mapped(operator.add, one, other)


def _root(layout: Layout) -> jax.Array:
    return jnp.arange(layout.sizes[layout.over.name]) == 0


def _tables(node: Random, own: Plate, before: Plate, inside: Scope) -> tuple[Placed, Placed]:
    """E log p(first) and E log p(child | parent) of a discrete chain over its states, and over those of its gates."""
    chain, size = chain_of(node), own.size or 0
    states = jnp.arange(size)
    out = Placed(Boolean(1.0 * states) if node.domain.is_boolean else Category(jnp.eye(size)), (own,))
    above = inside.with_data({chain.previous.name: _grid(node, before)})
    first = by_case(chain.first, inside, lambda term: expected_log(term, out, inside))
    return first, by_case(chain.then, above, lambda term: expected_log(term, out, above))


def _seen_states(node: Random, layout: Layout, inside: Scope) -> Placed:
    """The expected log density of each element of an observed discrete chain given the one before."""
    size = state_count(node, inside)
    own, before = Plate(f"states of {node.name}", size), Plate(f"states before of {node.name}", size)
    first, then = _tables(node, own, before, inside)
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


def _logs(node: Random, cavities: Naturals) -> jax.Array:
    """Logarithms by state, with all plates in one axis."""
    (natural,) = cavities[node.name]
    return jnp.stack([jnp.zeros_like(natural), natural], axis=-1) if node.domain.is_boolean else natural


def _as_placed(node: Random, array: jax.Array, axis: Plate, layout: Layout) -> Placed:
    shape = [layout.sizes[plate.name] for plate in node.plates]
    return Placed(array.reshape((*shape, array.shape[-1])), (*node.plates, axis))


def _outside(block: GatedBlock, layout: Layout, cavities: Naturals) -> LogMessages:
    """The messages of the other factors to the joint states."""
    nodes = zip((*block.states, *block.regimes), layout.states, strict=True)
    placed = [_as_placed(node, _logs(node, cavities), axis, layout) for node, axis in nodes]
    return layout.lay(functools.reduce(_plus, placed, Placed(jnp.zeros(()), ())), layout.states)


# the solution ---------------------------------------------------------------------------------------------------------


def _solved(block: GatedBlock, layout: Layout, parts: Gated, outside: LogMessages, cavities: Naturals) -> Solved:
    log = parts.seen + outside
    if parts.gaussian is not None and block.gaussian is not None:
        precision, shift = _messages(block.gaussian, layout, cavities[block.gaussian.name])
        terms = parts.gaussian
        weight = 0.5 * (terms.log_det - terms.log_det_mean) + terms.e0
        log = log + jnp.broadcast_to(weight, terms.links.b[:, 0].shape).reshape(log.shape)
        found = switching.smooth(parts.first, parts.moves, log, terms.links, precision, shift)
        return Solved(found.log_z, found.log_states, found.pairs, found)
    if log.shape[1] == 1:  # classes alone
        total = parts.first[0] + jnp.sum(log[:, 0], axis=0)
        return Solved(total, jnp.zeros_like(log), jnp.zeros((1, 1, 1, log.shape[-1])), None)
    found = discrete_chain.smooth(parts.first, parts.moves, log)
    states = log + found.message
    return Solved(found.log_z, states - logsumexp(states, axis=1, keepdims=True), found.counts, None)


def _messages(node: Random, layout: Layout, naturals: tuple[Array, ...]) -> tuple[Matrices, Vectors]:
    """Precision and shift of the messages to a Gaussian chain, the same for each class."""
    shift, half = naturals
    if node.domain.is_real:
        shift, half = shift[:, None], half[:, None, None]
    axes, classes = _axes(node, layout), layout.number(layout.classes)
    shift, half = (jnp.repeat(axes.from_flat(array), classes, axis=-1) for array in (shift, half))
    return -2.0 * half, shift


def _axes(node: Random, layout: Layout) -> Axes:
    return Axes(node.plates, (layout.over, *layout.lanes), layout.sizes)


class Shares(NamedTuple):
    """Log probabilities of the classes, by lane, and by class over its own plates."""

    own: Float[jax.Array, " lanes"]
    by_class: tuple[jax.Array, ...]


def _classes(
    block: GatedBlock, layout: Layout, log_z: Float[jax.Array, " lanes"], cavities: Naturals
) -> tuple[Float[jax.Array, ""], Shares]:
    """log Z, the classes summed out, and their log probabilities."""
    if not block.classes:
        return jnp.sum(log_z), Shares(jnp.zeros_like(log_z), ())
    total = layout.placed(log_z, time=False)
    own = union(*(node.plates for node in block.classes))
    for plate in [plate for plate in layout.lanes if plate not in set(own)]:
        moved = to_event(total, plate)
        total = Placed(jnp.sum(moved.value, axis=-1), moved.plates)
    for node, axis in zip(block.classes, layout.classes, strict=True):
        total = _plus(total, _as_placed(node, _logs(node, cavities), axis, layout))
    array = spread(total, (*own, *layout.classes), layout.sizes)
    inner = tuple(range(len(own), array.ndim))
    whole = logsumexp(array, axis=inner, keepdims=True)
    shares = array - whole
    by_class = []
    for number, node in enumerate(block.classes):
        others = tuple(axis for axis in inner if axis != len(own) + number)
        log = Placed(logsumexp(shares, axis=others), own)
        by_class.append(spread(log, node.plates, layout.sizes).reshape((-1, array.shape[len(own) + number])))
    return jnp.sum(whole), Shares(layout.lay(Placed(shares, (*own, *layout.classes)), time=False), tuple(by_class))


def _marginals(
    block: GatedBlock, layout: Layout, found: Solved, shares: Shares, cavities: Naturals
) -> Naturals:
    beliefs = {
        node.name: (_natural(node, log),) for node, log in zip(block.classes, shares.by_class, strict=True)
    }
    sizes = [plate.size or 1 for plate in layout.states]
    classes = layout.number(layout.classes)
    joint = (found.log_states + shares.own).reshape((found.log_states.shape[0], *sizes, -1, classes))
    joint = logsumexp(joint, axis=-1)
    for number, node in enumerate((*block.states, *block.regimes)):
        others = tuple(1 + other for other in range(len(sizes)) if other != number)
        log = _axes(node, layout).to_flat(logsumexp(joint, axis=others))
        beliefs[node.name] = (_natural(node, log),)
    if block.gaussian is not None and found.gaussian is not None:
        beliefs[block.gaussian.name] = _gaussian_belief(block.gaussian, layout, found, shares)
    return beliefs


def _natural(node: Random, log: Float[jax.Array, "elements states"]) -> jax.Array:
    log = tables.bounded(log, True)
    return log[:, 1] - log[:, 0] if node.domain.is_boolean else log


def _gaussian_belief(
    node: Random, layout: Layout, found: Solved, shares: Shares
) -> tuple[jax.Array, ...]:
    """The Gaussian with the mean and covariance of the mixture over joint states and classes."""
    assert found.gaussian is not None
    mean, covariance = found.gaussian.own
    times, states, _ = found.log_states.shape
    classes = layout.number(layout.classes)

    def apart(array: jax.Array) -> jax.Array:
        return array.reshape((*array.shape[:-1], states, -1, classes))

    weight = jnp.exp(apart((found.log_states + shares.own).reshape((times, -1))))
    mean, covariance = apart(mean), apart(covariance)
    centre = jnp.sum(weight[:, None] * mean, axis=(2, 4))
    error = mean - centre[:, :, None, :, None]
    spread_out = covariance + error[:, :, None] * error[:, None]
    total = jnp.sum(weight[:, None, None] * spread_out, axis=(3, 5))
    belief = symmetric(inverse(total))
    axes = _axes(node, layout)
    shift, half = axes.to_flat(applied(belief, centre)), -0.5 * axes.to_flat(belief)
    return (shift[:, 0], half[:, 0, 0]) if node.domain.is_real else (shift, half)


# the energy of parameters ---------------------------------------------------------------------------------------------


def _energy(layout: Layout, parts: Gated, known: tuple[Solved, jax.Array]) -> Float[jax.Array, ""]:
    """The expected log densities under the marginals: `known` has these, and what each lane weighs."""
    found, weight = known
    states = jnp.exp(found.log_states) * weight
    pairs = found.pairs * weight
    total = table_energy(TransitionTables(parts.first, parts.moves), states[0], pairs)
    total = total + jnp.sum(jnp.where(states > 0.0, states * jnp.where(states > 0.0, parts.seen, 0.0), 0.0))
    if parts.gaussian is not None and found.gaussian is not None:
        each = gaussian_energies(parts.gaussian, found.gaussian.own, found.gaussian.parent, found.gaussian.cross)
        total = total + jnp.sum(each * states.reshape((states.shape[0], -1)))
    return total


def _as_weighed(
    block: GatedBlock,
    layout: Layout,
    found: Solved,
    weight: Float[jax.Array, " lanes"],
    marginals: Naturals,
    moments: dict,
) -> tuple[Solved, Float[jax.Array, " lanes"]]:
    """The same with the gates at the probabilities that their moments have."""
    for node, axis in zip(block.classes, layout.classes, strict=True):
        weight = weight * layout.lay(_ratio(node, axis, layout, marginals, moments), time=False)
    log = found.log_states
    moving = zip((*block.states, *block.regimes), layout.states, strict=True)
    for node, axis in ((node, axis) for node, axis in moving if node.name in block.gating):
        ratio = layout.lay(_ratio(node, axis, layout, marginals, moments), layout.states)
        log = log + jnp.log(jnp.maximum(ratio, 1e-300))
    return found._replace(log_states=log), weight


def _ratio(node: Random, axis: Plate, layout: Layout, marginals: Naturals, moments: dict) -> Placed:
    """What the moments of a gate say of its states, over the probabilities that these have."""
    logits = _logs(node, marginals)
    own = jax.nn.softmax(logits, axis=-1)
    given = moments[node.name].probability
    given = jnp.stack([1.0 - given, given], axis=-1) if node.domain.is_boolean else given
    return _as_placed(node, given.reshape(own.shape) / jnp.maximum(own, 1e-300), axis, layout)
