"""A plan for given plate sizes: which blocks hold messages, which variables move, and how messages make beliefs.

State is a pytree: `moving` holds, for each variable that VMP updates, the sum of its messages from energies; `messages`
those of the EP blocks. A belief is the constant messages + the moving ones + the EP ones. Where a run begins, its
sweeps and its evidence are written in these terms.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, PyTree

from ...compiler.algebra.inner_products import in_turn
from ...compiler.algebra.known import told
from ...compiler.algebra.parity import EVEN, parity
from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.whole import ChainBlock, GatedBlock
from ...compiler.graph import Plan
from ...compiler.language.nodes import Plate
from ...factors.arrays import Array, Key
from ...factors.moments import Vector
from ..blocks.energy import block_energy, energy_and_gradient
from ..blocks.inner_product import shared_precision
from ..blocks.kinds import KINDS
from ..values.exact_observations import certainties, certainty_of, exact_blocks
from ..values.first_beliefs import family_of, first_element, first_moments, shape_of, uniform
from ..values.joint_beliefs import joint_sizes
from ..values.naturals import Fixed, Naturals, State, add
from ..values.row_blocks import Rows, rows_of
from ..values.scope import Scope

if TYPE_CHECKING:
    from ..values.dealt import Dealt

Data: TypeAlias = dict[str, PyTree]  # by name, as scopes look it up: arrays, sparse pages, precisions on plates
Moments: TypeAlias = dict[str, PyTree]  # by variable: a tuple of `factors/moments.py`
Messages: TypeAlias = dict[str, PyTree]  # by number of a block, in the form of its kind
Energy: TypeAlias = Callable[[Scope], Float[Array, ""]]  # of moments that the scope holds
Known: TypeAlias = dict[EnergyBlock, tuple[Float[Array, ""], Moments]]  # energies, and the moments that they hold at


@dataclasses.dataclass(frozen=True, eq=False)
class BoundPlan:
    """What depends on a plan and the sizes of its plates, but on no number of the data."""

    graph: Plan
    sizes: dict[str, int]
    apart: bool = False  # whether the data are known to give no instance one element twice
    padded: tuple[Plate, ...] = ()  # the plates of which not all rows count
    dealt: Dealt | None = None  # the rows that are dealt to several devices
    streamed: frozenset[str] = frozenset()  # the inputs that are read from files

    def scope(self, data: Data, moments: Moments | None = None) -> Scope:
        """What expressions may look up."""
        return self._scope(self.completed(data), moments)

    def _scope(self, data: Data, moments: Moments | None = None) -> Scope:
        sizes = {**self.sizes, **joint_sizes(self.graph)}
        return Scope(
            sizes,
            data,
            moments or {},
            joints=self.graph.joints,
            rows=self.rows,
            padded=self.padded,
            turns=self.graph.schedule.rows,
            dealt=self.dealt,
        )

    @cached_property
    def rows(self) -> dict[Block, Rows]:
        """How blocks of many rows are cut."""
        return rows_of(self.graph, {**self.sizes, **joint_sizes(self.graph)}, self.streamed)

    def completed(self, data: Data) -> Data:
        """The data with the precisions of exact observations, which follow from the rest: made once for a run."""
        exact = exact_blocks(self.graph)
        if not data or all(certainty_of(block).name in data for block in exact):
            return data
        scope = self._scope(data)
        others = tuple(block for block in self.graph.blocks if all(block is not one for one in exact))
        names = {name for block in exact for name in block.latent}
        constant = {name: own for name, own in self.constant_of(others, scope).items() if name in names}
        return {**data, **certainties(exact, constant, self.graph, scope)}

    @cached_property
    def ep_blocks(self) -> dict[str, Block]:
        """Blocks with messages, by number."""
        return {str(i): block for i, block in enumerate(self.graph.blocks) if not isinstance(block, EnergyBlock)}

    @cached_property
    def energies(self) -> tuple[EnergyBlock, ...]:
        """Blocks whose messages are gradients and change during a run."""
        return tuple(block for block in self.graph.blocks if isinstance(block, EnergyBlock) and not block.constant)

    @property
    def energies_of_all(self) -> tuple[EnergyBlock, ...]:
        """Those, and the blocks whose messages are constant."""
        return tuple(block for block in self.graph.blocks if isinstance(block, EnergyBlock))

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """Variables that these touch, those with most elements first: the first ones need no place in the state."""
        touched = {name for block in self.energies for name in block.latent} | set(self.partners)
        order = [name for name in self.graph.order if name in touched]
        if self.graph.schedule.variables:
            return tuple(order)
        # Elements that take turns read each other, so they always have a place there.
        return tuple(sorted(order, key=lambda name: (name in self.turns, -math.prod(self.plates_shape(name)))))

    @cached_property
    def climbs(self) -> bool:
        """Whether sweeps head for more evidence: all is VMP, but for chains that are solved jointly beside it."""
        whole = all(isinstance(block, ChainBlock) for block in self.ep_blocks.values())
        return whole and bool(self.moving or not self.ep_blocks)

    @cached_property
    def mirrored(self) -> tuple[str, ...]:
        """Moving real variables that some block sees through an even function: either sign may be the better one."""
        return tuple(
            name
            for name in self.moving
            if self.graph.latent[name].domain.is_real
            and any(
                parity(arg, self.graph.latent[name]) == EVEN for block in self.graph.blocks for arg in block.arguments
            )
        )

    @cached_property
    def with_ep(self) -> frozenset[str]:
        """Variables that EP blocks touch."""
        names = set()
        for block in self.ep_blocks.values():
            names |= self.message_names(block)
        return frozenset(names)

    @cached_property
    def gating_chains(self) -> frozenset[str]:
        """The gates of chains that are solved with them."""
        found = (block.gating for block in self.ep_blocks.values() if isinstance(block, GatedBlock))
        return frozenset().union(*found)

    @cached_property
    def partners(self) -> dict[str, tuple[str, ...]]:
        """The parameters of blocks with messages, with the numbers of those blocks."""
        found: dict[str, tuple[str, ...]] = {}
        for number, block in self.ep_blocks.items():
            for name in block.parameters:
                found[name] = (*found.get(name, ()), number)
        return found

    @cached_property
    def turns(self) -> dict[str, Plate]:
        """Variables whose elements meet in an inner product, with the plate along which they take turns."""
        return {name: over for block in self.energies for name, over in in_turn(block).items()}

    def message_names(self, block: Block) -> set[str]:
        """The variables that a block sends messages to."""
        return set(told(block, self.graph.latent))

    @cached_property
    def partly(self) -> tuple[str, ...]:
        """Latent variables of which some entries are given."""
        return tuple(name for name in self.graph.partly if name in self.graph.latent)

    def prepare_block(self, block: Block, scope: Scope, key: Key) -> PyTree:
        """One EP block's data in schedule order."""
        return KINDS[type(block)].prepare(block, scope, key, self.apart)

    # beliefs ----------------------------------------------------------------------------------------------------------

    def beliefs(self, fixed: Fixed, state: State) -> Naturals:
        """The naturals of all beliefs."""
        beliefs = {
            name: add(naturals, state.moving[name]) if name in state.moving else naturals
            for name, naturals in fixed.constant.items()
        }
        return self.with_messages(fixed, state.messages, beliefs)

    def with_messages(self, fixed: Fixed, messages: Messages, beliefs: Naturals) -> Naturals:
        """The naturals plus all messages of EP blocks."""
        beliefs = dict(beliefs)
        for number, block in self.ep_blocks.items():
            for name, naturals in (
                KINDS[type(block)]
                .accumulate(block, fixed.prepared[number], messages[number], self.flat(block, beliefs))
                .items()
            ):
                beliefs[name] = self.shaped(name, naturals)
        return beliefs

    def flat(self, block: Block, beliefs: Naturals) -> Naturals:
        """The naturals of the block's variables with all plates in one axis."""
        flat = {}
        for name in sorted(self.message_names(block)):
            plates = len(self.graph.latent[name].plates)
            flat[name] = tuple(n.reshape((-1, *n.shape[plates:])) for n in beliefs[name])
        return flat

    def shaped(self, name: str, naturals: tuple[Array, ...]) -> tuple[Array, ...]:
        """Flat naturals with the plates of their variable."""
        shape = self.plates_shape(name)
        return tuple(n.reshape((*shape, *n.shape[1:])) for n in naturals)

    def moments_of(self, name: str, naturals: tuple[Array, ...]) -> PyTree:
        """The moments of a belief; one inverse where all elements have the same precision."""
        family = family_of(self.graph.latent[name])
        if name not in self.shared:
            return family.from_naturals(naturals).moments()
        plates = len(self.graph.latent[name].plates)
        first = family.from_naturals(first_element(naturals, plates)).moments()
        assert isinstance(first, Vector)
        return Vector(naturals[0] @ first.covariance, jnp.broadcast_to(first.covariance, naturals[1].shape))

    @cached_property
    def shared(self) -> frozenset[str]:
        """Vectors whose elements all have the same precision."""
        return shared_precision(self.graph)

    def pull(
        self,
        name: str,
        blocks: tuple[EnergyBlock, ...],
        scope: Scope,
        moments: Moments,
        here: PyTree,
        others: Sequence[Energy] = (),
        energies: Known | None = None,
    ) -> tuple[Array, ...]:
        """The sum of the blocks' messages to a variable: the gradient of their energies in its moments.

        The energies come with it: those not in `energies` are noted there, with the moments that they hold at.
        """
        whole = [block for block in blocks if block not in scope.rows]
        found: dict[EnergyBlock, Float[Array, ""]] = {}

        def energy(own: PyTree) -> tuple[Float[Array, ""], list[Float[Array, ""]]]:
            inside = scope.with_moments({**moments, name: own})
            each = [block_energy(block, inside) for block in whole]
            zero = jnp.zeros(())
            return sum(each, zero) + sum((other(inside) for other in others), zero), each

        if whole or others:
            gradient, each = jax.grad(energy, has_aux=True)(here)
            found.update(zip(whole, each, strict=True))
        else:
            gradient = jax.tree.map(jnp.zeros_like, here)
        for block in blocks:
            if block in scope.rows:
                found[block], own = energy_and_gradient(block, scope.with_moments(moments), name, here)
                gradient = jax.tree.map(jnp.add, gradient, own)
        if energies is not None:
            for block, value in found.items():
                energies.setdefault(block, (value, {n: moments[n] for n in block.latent}))
        return tuple(map(jnp.asarray, family_of(self.graph.latent[name]).pull(here, gradient)))

    def constant_of(self, blocks: tuple[Block, ...], scope: Scope) -> Naturals:
        """The sums of the constant messages of some blocks."""
        constant = {name: uniform(variable, scope) for name, variable in self.graph.latent.items()}
        for block in blocks:
            if isinstance(block, EnergyBlock) and block.constant and block.latent:
                (name,) = block.latent
                here = first_moments(self.graph.latent[name], scope)
                constant[name] = add(constant[name], self.pull(name, (block,), scope, {}, here))
        return constant

    def all_proper(self, beliefs: Naturals, names: Iterable[str]) -> Bool[Array, ""]:
        """Whether the named beliefs can all be normalised."""
        proper = jnp.asarray(True)
        for name in names:
            naturals = beliefs[name]
            if name in self.shared:
                proper = proper & jnp.all(jnp.isfinite(naturals[0]))
                naturals = first_element(naturals, len(self.graph.latent[name].plates))
            proper = proper & jnp.all(family_of(self.graph.latent[name]).from_naturals(naturals).is_proper())
        return proper

    def plates_shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a latent variable's plates."""
        return shape_of(self.graph.latent[name], self.scope({}))
