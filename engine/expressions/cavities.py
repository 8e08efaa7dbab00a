"""Cavities of VMP beliefs: what they are without the message of one instance of a factor, number by number.

These are the cavities of mean field. Their product with the factor is the joint distribution of its numbers as far as
VMP knows it: exact where nothing else ties them.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property, partial
from typing import Any, TypedDict

import jax
import jax.numpy as jnp

from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.slots import Edge, SlotsBlock
from ...compiler.rules.apart import Apart, apart
from ...factors.arrays import Array, Key
from ...factors.families import FOR_DOMAIN
from ...factors.families.base import Moments
from ..blocks.energy import block_energy
from ..run.machine import Machine
from ..run.result import Outputs
from ..run.start import prepare
from ..values.first_beliefs import family_of
from ..values.instances import count
from ..values.moments import moments
from ..values.naturals import Naturals, add, subtract
from ..values.plated import Placed, spread
from ..values.scope import Scope
from .clouds import NumberKey
from .parts import element_at, number_key


class EndOfRun(TypedDict):
    """Where a run ended: its beliefs, the messages of each block by number, and its random key."""

    beliefs: Naturals
    messages: dict[str, Any]  # as each kind of block has them
    key: Key


@dataclasses.dataclass(frozen=True, eq=False)
class Cavities:
    """Those of a run, block by block, made when they are first asked for."""

    machine: Machine
    outputs: Outputs
    arrays: dict[str, Any]  # data, each as its domain wants them

    def keys(self, block: EnergyBlock) -> dict[NumberKey, int]:
        """The numbers that meet in an instance of a block, with their places in what EP makes of it; perhaps none."""
        if (numbers := self._apart(block)) is None:
            return {}
        places = {edge.variable: place for place, edge in enumerate(numbers.tilted.edges)}
        return {number_key(edge): places[number] for number, edge in numbers.edges.items() if number in places}

    def tilted(self, block: EnergyBlock) -> SlotsBlock:
        """What EP makes of a block with such numbers, over variables that have the names of its cavities."""
        numbers = self._apart(block)
        assert numbers is not None
        return numbers.tilted

    def proper(self, block: EnergyBlock) -> bool:
        """Whether all cavities of a block with such numbers can be normalised."""
        naturals = self.of(block)
        families = (
            family_of(edge.variable).from_naturals(naturals[edge.variable.name]) for edge in self.tilted(block).edges
        )
        return all(bool(jnp.all(family.is_proper())) for family in families)

    def of(self, block: EnergyBlock) -> Naturals:
        """The naturals of the cavities of all instances, flat over the plates of the block, by name."""
        if block not in self._found:
            numbers = self._apart(block)
            assert numbers is not None
            end = EndOfRun(
                beliefs=self.outputs["beliefs"], messages=self.outputs["messages"], key=jnp.asarray(self.outputs["key"])
            )
            find = self.machine.function("cavities", (block,), partial(_cavities, self.machine, block, numbers))
            self._found[block] = find(end, self.arrays)
        return self._found[block]

    def _apart(self, block: EnergyBlock) -> Apart | None:
        if block not in self._read:
            self._read[block] = apart(self.machine.graph, block)
        return self._read[block]

    @cached_property
    def _read(self) -> dict[EnergyBlock, Apart | None]:
        return {}

    @cached_property
    def _found(self) -> dict[EnergyBlock, Naturals]:
        return {}


def _cavities(machine: Machine, block: EnergyBlock, apart: Apart, end: EndOfRun, arrays: dict[str, Any]) -> Naturals:
    seen = {name: machine.moments_of(name, naturals) for name, naturals in end["beliefs"].items()}
    scope = machine.scope(arrays, seen)
    updated = _updated(machine, block, end, scope, arrays)
    after = scope.with_moments({name: machine.moments_of(name, naturals) for name, naturals in updated.items()})
    numbers = {number.name: _moments(block, edge, scope) for number, edge in apart.edges.items()}

    def energy(numbers: dict[str, Moments]) -> Array:
        return block_energy(apart.energy, scope.with_moments({**seen, **numbers}))

    messages = jax.grad(energy)(numbers)
    cavities = {}
    for number, edge in apart.edges.items():
        message = family_of(number).pull(numbers[number.name], messages[number.name])
        left = subtract(_naturals(block, edge, updated, after), message)
        cavities[number.name] = tuple(natural.reshape(count(block, scope.sizes)) for natural in left)
    return cavities


def _moments(block: EnergyBlock, edge: Edge, scope: Scope) -> Moments:
    """The moments of a number in all instances; a number of a vector is an inner product with it."""
    kind = "real" if edge.variable.domain.is_vector else edge.variable.domain.kind
    return spread(moments(edge.expr, scope, kind), block.plates, scope.sizes)


def _naturals(block: EnergyBlock, edge: Edge, beliefs: Naturals, scope: Scope) -> tuple[Array, ...]:
    """The naturals of the belief of a number in all instances; `scope` has the moments of `beliefs`."""
    variable = edge.variable
    if variable.domain.is_gaussian:  # perhaps a part of a vector, or of a belief that several share
        found = FOR_DOMAIN["real"].from_moments(_moments(block, edge, scope))
        return tuple(map(jnp.asarray, found.naturals()))
    placed = element_at(edge.element, Placed(beliefs[variable.name], variable.plates), scope)
    return spread(placed, block.plates, scope.sizes)


def _updated(machine: Machine, block: EnergyBlock, end: EndOfRun, scope: Scope, arrays: dict[str, Any]) -> Naturals:
    """The beliefs that one more update of the block's variables, undamped and all from the same moments, would make.

    Those of the run lag behind these by the last sweep, which is much beside what is left without a sharp message. The
    run itself updates one variable after the other, elements of inner products in turn, and damps what is not
    conjugate: only where it has converged is this its own next update. So a cavity of a run that has stopped before is
    no part of any state of the run, and what is read from it says so (`marginal_of.BEFORE`). Where no other message to
    the variables changes the cavities are their priors, in any state.
    """
    fixed = prepare(machine, arrays, jax.random.wrap_key_data(end["key"]))
    found = dict(end["beliefs"]) | {name: fixed.constant[name] for name in block.latent}
    for name in block.latent:
        mine = tuple(other for other in machine.energies if name in other.latent)
        others = machine.partner_energies(name, fixed, end["beliefs"], end["messages"])
        pulled = machine.pull(name, mine, scope, scope.moments, scope.moments[name], others)
        found[name] = add(found[name], pulled)
    with_messages = machine.with_messages(fixed, end["messages"], found)
    return end["beliefs"] | {name: with_messages[name] for name in block.latent}
