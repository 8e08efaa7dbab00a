"""VMP and NCVMP blocks: the expected log density of all instances of a factor, as one scalar.

The message to a variable, summed over its instances, is the gradient of this scalar in the variable's moments; the
value is its part of the evidence. So a message and the evidence cannot disagree, and no message of a single instance is
ever stored.
"""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
from jaxtyping import Float

from ...compiler.blocks.base import Gate
from ...compiler.blocks.energy import EnergyBlock
from ...factors.arrays import Array
from ...factors.roles import ClassTable
from ..values.evaluate import known, value
from ..values.masks import present
from ..values.moments import moments
from ..values.plated import Placed, mapped
from ..values.row_blocks import Rows, needs_place, nodes_of, summed, summed_with_gradient
from ..values.scope import Scope
from .composed import composed_density
from .inner_product import bilinear_energy

NEVER = -1e12  # log density of a case that cannot be
Moments = tuple[Array, ...]  # of one of the classes of `factors/moments.py`, each a tuple of arrays


def block_energy(block: EnergyBlock, scope: Scope) -> Float[Array, ""]:
    """The sum over all instances of gate probability * E log f, under the moments and the data of `scope`."""
    if (rows := scope.rows.get(block)) is None:
        return _energy(block, scope)
    if _by_device(block, rows, scope):
        from ..values import dealt_blocks

        return dealt_blocks.summed(lambda inside: _energy(block, inside), rows, scope)
    return summed(lambda inside: _energy(block, inside), rows, scope)


def _by_device(block: EnergyBlock, rows: Rows, scope: Scope) -> bool:
    """Whether the rows of a block are dealt to devices, each of which can go through its own."""
    if scope.dealt is None or rows.plate not in set(scope.dealt.plates):
        return False
    return not any(needs_place(node, rows.plate) for node in nodes_of(block))


def energy_and_gradient(block: EnergyBlock, scope: Scope, name: str, at: Moments) -> tuple[Float[Array, ""], Moments]:
    """The same sum, and its gradient in the moments of the variable `name` where these are `at`, by blocks of rows.

    The gradient is shaped as `at`.
    """

    rows = scope.rows[block]
    if _by_device(block, rows, scope):
        from ..values import dealt_blocks  # few programs have several devices

        return dealt_blocks.summed_with_gradient(lambda inside: _energy(block, inside), rows, scope, name, at)

    def energy(inside: Scope, own: Moments) -> Float[Array, ""]:
        return _energy(block, inside.with_moments({**scope.moments, name: own}))

    return summed_with_gradient(energy, rows, scope, at)


def _energy(block: EnergyBlock, scope: Scope) -> Float[Array, ""]:
    scope = dataclasses.replace(scope, bound=block.method.bound)
    if (total := bilinear_energy(block, scope)) is not None:
        return total
    density = _density(block, scope)
    weights = [gate_weight(gate, scope) for gate in block.gates]
    if weights and block.factor.derived:  # an impossible case is told so, and makes no number of the others
        density = mapped(lambda log: jnp.maximum(log, NEVER), density)
    if (mask := present(block, scope)) is not None:
        # What stands in for a missing value may be where the density is zero, such as beyond the bounds of its row.
        density = mapped(lambda log, counts: jnp.where(counts > 0, log, 0.0), density, mask, order=block.plates)
        weights.append(mask)
    # A case without weight costs nothing, even where its density is minus infinity, as only that of a discrete outcome
    # can be.
    weigh = _weighted_if_any if block.out.domain.is_discrete else _weighted
    total = mapped(weigh, density, *weights, order=block.plates) if weights else density
    repeats = math.prod(scope.sizes[plate.name] for plate in block.plates if plate not in total.plates)
    return repeats * jnp.sum(total.value)


def _density(block: EnergyBlock, scope: Scope) -> Placed:
    """E log f of each instance."""
    if block.composed is not None:
        return composed_density(block, block.composed, scope)
    edges = list(block.args)
    args = [moments(block.args[edge], scope, _kind(block, edge)) for edge in edges]
    if isinstance(block.factor.role, ClassTable) and known(block.out, scope):
        classes = value(block.out, scope)
        if not set(classes.plates) <= set(args[0].plates):  # one-hot, each of them would be as long as all classes
            logs = Placed(args[0].value.log, args[0].plates)
            return mapped(lambda log, seen: log[seen], logs, classes, order=block.plates)

    def expected_log(out: Moments, *args: Moments) -> Float[Array, ""]:
        return block.factor.expected_log(out, **dict(zip(edges, args, strict=True)))

    return mapped(expected_log, moments(block.out, scope), *args, order=block.plates)


def _weighted(density: Float[Array, ""], *weights: Float[Array, ""]) -> Float[Array, ""]:
    return math.prod(weights[1:], start=weights[0]) * density


def _weighted_if_any(density: Float[Array, ""], *weights: Float[Array, ""]) -> Float[Array, ""]:
    weight = math.prod(weights[1:], start=weights[0])
    return jnp.where(weight == 0.0, 0.0, density) * weight


def _kind(block: EnergyBlock, edge: str) -> str:
    return block.factor.edges[edge]


def gate_weight(gate: Gate, scope: Scope) -> Placed:
    """The probability that a gate is open, one number for each element of its selector.

    Placed on the plates of the selector; for an index, also on the plate that it chooses from.
    """
    belief = moments(gate.selector, scope)
    if gate.selector.domain.is_boolean:
        p = belief.value.probability
        states = jnp.stack([1.0 - p, p], axis=-1)
    else:
        states = belief.value.probability
    if gate.axis is not None:
        return Placed(states, (*belief.plates, gate.axis))
    return Placed(states[..., gate.case], belief.plates)
