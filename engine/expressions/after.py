"""What is known once a run has ended, and what of it holds for new rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.graph import Plan
from ..blocks.kinds import KINDS
from ..run.control.result_codes import CONVERGED
from ..run.machine import Machine
from ..run.result import Outputs
from ..support import asked_families as asked
from ..values.naturals import Naturals
from ..values.scope import Scope
from .cavities import Cavities
from .parts import Families
from .tilted_clouds import FOR_MOMENTS, Instanced, Levels, Source
from .whole_clouds import WholeBlock


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What is known after a run: messages, data, the families of the beliefs by name, and VMP's cavities."""

    machine: Machine
    outputs: Outputs
    arrays: dict[str, Any]  # data, each as its domain wants them
    families: Families
    cavities: Cavities

    @cached_property
    def scope(self) -> Scope:
        """What expressions may look up."""
        moments = {name: asked.moments(family) for name, family in self.families.items()}
        return self.machine.scope(self.arrays, moments)

    @cached_property
    def converged(self) -> bool:
        """Whether the run ended in a fixed point, to its tolerance."""
        return int(np.asarray(self.outputs["code"])) == CONVERGED

    @property
    def graph(self) -> Plan:
        """The plan."""
        return self.machine.graph

    @property
    def blocks(self) -> dict[str, Block]:
        """The blocks that keep messages, by number."""
        return self.machine.ep_blocks

    @property
    def energies(self) -> tuple[EnergyBlock, ...]:
        """The blocks of VMP whose instances may be read one by one."""
        return tuple(block for block in self.machine.energies if self.machine.rows.get(block) is None)

    def source(self, number: str, levels: Levels = FOR_MOMENTS) -> Source:
        """The messages of a block with instances."""
        block, prepared, naturals, messages = self._state(number)
        assert isinstance(block, Instanced)
        return Source(block, prepared, naturals, messages, self.scope, levels)

    def source_apart(self, block: EnergyBlock, levels: Levels = FOR_MOMENTS) -> Source:
        """A block of VMP as one of EP that has sent no messages yet, to beliefs that are its cavities."""
        tilted, left = self.cavities.tilted(block), self.cavities.of(block)
        kind = KINDS[type(tilted)]
        prepared = kind.prepare(tilted, self.scope, jax.random.key(0), True)  # rows that share nothing have no order
        return Source(tilted, prepared, left, kind.initial(tilted, prepared, self.scope), self.scope, levels)

    def whole(self, number: str) -> WholeBlock:
        """The messages of a block that is solved as a whole."""
        return WholeBlock(*self._state(number), self.scope)

    def _state(self, number: str) -> tuple[Block, Any, Naturals, Any]:
        """A block by number, its data, the naturals that it reads and its messages: as its kind of block has them."""
        block = self.machine.ep_blocks[number]
        key = jax.random.wrap_key_data(jnp.asarray(self.outputs["key"]))
        prepared = self.machine.prepare_block(block, self.scope, jax.random.fold_in(key, int(number)))
        naturals = {name: tuple(map(jnp.asarray, n)) for name, n in self.outputs["beliefs"].items()}
        messages = jax.tree.map(jnp.asarray, self.outputs["messages"][number])
        return block, prepared, self.machine.flat(block, naturals), messages


@dataclasses.dataclass(frozen=True, eq=False)
class Carried:
    """What is known of new rows: beliefs that were learned, and no messages of any factor."""

    graph: Plan
    scope: Scope
    families: Families
    blocks: Mapping[str, Block] = dataclasses.field(default_factory=dict)
    energies: tuple[EnergyBlock, ...] = ()
