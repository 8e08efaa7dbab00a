"""Chains with what gates their transitions, solved jointly, given the messages of all other factors.

A gate that is the same along the chain, the class of its plate's element, makes a chain for each class: independent
lanes, whose evidences are the message to the class. Gates that move along, other chains or regimes of each element,
make a state jointly with the discrete chains. Observed chains are what such states are seen by. All this is exact.
Gaussian states are so given a class, too; under a gate that moves they are mixtures (`switching.py`). Random parameters
are met through their moments. Source: ghahramani1997factorial, zoeter2005change.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ....compiler.blocks.whole import GatedBlock
from ....compiler.language.nodes import Plate, Random
from ....factors.arrays import Array, Key
from ....factors.families.base import ExponentialFamily
from ...values.first_beliefs import discrete_family_of, event_size, family_of
from ...values.instances import count
from ...values.naturals import Naturals, Parts, subtract
from ...values.plated import Placed, spread, to_event, union
from ...values.scope import Scope
from ..discrete import tables
from . import discrete_chain, switching
from .discrete_chain import LogMessages, Transitions
from .gates import Gated, Layout, as_placed, axes_in, layout_of, logs_of, outside, parts_of, plus
from .gaussian_chain import Matrices, Vectors
from .small_matrices import applied, inverse, symmetric
from .transitions import TransitionTables, gaussian_energies, table_energy

logsumexp = jax.scipy.special.logsumexp


class PreparedGates(NamedTuple):
    """Uniform messages: there is nothing else that depends on data only."""

    initial: Naturals


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
    parts = parts_of(block, layout, scope)
    found = solved(block, layout, jax.lax.stop_gradient(parts), cavities)
    log_z, shares = classes_of(block, layout, found.log_z, cavities)
    weight = jnp.exp(shares.own)
    energy = _energy(layout, parts, jax.lax.stop_gradient((found, weight)))
    marginals = jax.lax.stop_gradient(marginals_of(block, layout, found, shares, cavities))
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
    parts = parts_of(block, layout, scope)
    fixed, moments = jax.lax.stop_gradient((parts, scope.moments))
    found = solved(block, layout, fixed, cavities)
    _, shares = classes_of(block, layout, found.log_z, cavities)
    marginals = marginals_of(block, layout, found, shares, cavities)
    found, weight = _as_weighed(block, layout, found, jnp.exp(shares.own), marginals, moments)
    return _energy(layout, parts, jax.lax.stop_gradient((found, weight)))


# the solution ---------------------------------------------------------------------------------------------------------


def solved(block: GatedBlock, layout: Layout, parts: Gated, cavities: Naturals) -> Solved:
    """The block in every lane, given the messages of the other factors."""
    log = parts.seen + outside(block, layout, cavities)
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
    axes, classes = axes_in(node, layout), layout.number(layout.classes)
    shift, half = (jnp.repeat(axes.from_flat(array), classes, axis=-1) for array in (shift, half))
    return -2.0 * half, shift


class Shares(NamedTuple):
    """Log probabilities of the classes, by lane, and by class over its own plates."""

    own: Float[jax.Array, " lanes"]
    by_class: tuple[jax.Array, ...]


def classes_of(
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
        total = plus(total, as_placed(node, logs_of(node, cavities), axis, layout))
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


def marginals_of(block: GatedBlock, layout: Layout, found: Solved, shares: Shares, cavities: Naturals) -> Naturals:
    beliefs: Naturals = {
        node.name: _naturals(node, log) for node, log in zip(block.classes, shares.by_class, strict=True)
    }
    sizes = [plate.size or 1 for plate in layout.states]
    classes = layout.number(layout.classes)
    joint = (found.log_states + shares.own).reshape((found.log_states.shape[0], *sizes, -1, classes))
    joint = logsumexp(joint, axis=-1)
    for number, node in enumerate((*block.states, *block.regimes)):
        others = tuple(1 + other for other in range(len(sizes)) if other != number)
        log = axes_in(node, layout).to_flat(logsumexp(joint, axis=others))
        beliefs[node.name] = _naturals(node, log)
    if block.gaussian is not None and found.gaussian is not None:
        beliefs[block.gaussian.name] = _gaussian_belief(block.gaussian, layout, found, shares)
    return beliefs


def _naturals(node: Random, log: Float[jax.Array, "elements states"]) -> Parts:
    return discrete_family_of(node).from_logits(jnp.asarray(tables.bounded(log, True))).naturals()


def _gaussian_belief(node: Random, layout: Layout, found: Solved, shares: Shares) -> tuple[jax.Array, ...]:
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
    axes = axes_in(node, layout)
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
    logits = logs_of(node, marginals)
    own = jax.nn.softmax(logits, axis=-1)
    given = moments[node.name].probability
    given = jnp.stack([1.0 - given, given], axis=-1) if node.domain.is_boolean else given
    return as_placed(node, given.reshape(own.shape) / jnp.maximum(own, 1e-300), axis, layout)
