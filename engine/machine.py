"""The machine of a plan: start, one sweep, and the reading of the result, as pure functions of data.

State is a pytree: `moving` holds, for each variable that VMP updates, the sum of its messages from energies; `messages`
those of the EP blocks. A belief is the constant messages + the moving ones + the EP ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp

from ..compiler.expressions import Plate, Random
from ..compiler.graph import Block, Graph
from ..compiler.inner_products import in_turn
from ..factors.moments import Vector
from . import tables
from .beliefs import (
    family_of,
    first_element,
    shape_of,
)
from .bilinear import shared_precision
from .energy import block_energy, energy_and_gradient
from .evaluate import Scope
from .evidence import evidence_parts
from .exactly import certainties, certainty_of, exact_blocks
from .joint import joint_sizes
from .kinds import KINDS
from .rotate import Pair, pairs, rotated, rotation
from .rows import Rows, rows_of
from .settle import settle
from .start import constant_of
from .state import Fixed, Naturals, State, Sweep, add, spread, subtract
from .steps import distance, trust_in
from .turns import messages_in_turn


@dataclasses.dataclass
class _Run:
    """Beliefs, their moments and moving parts in the course of one sweep."""

    beliefs: Naturals
    moments: dict[str, Any]
    moving: Naturals
    starts: dict[str, Any]  # moments that replace those of a selector
    first: Any  # while this is true
    energies: dict[Block, tuple[Any, dict[str, Any]]] = dataclasses.field(default_factory=dict)  # and where they hold


@dataclasses.dataclass(frozen=True, eq=False)
class Machine:
    """The functions of a plan for given plate sizes."""

    graph: Graph
    sizes: dict[str, int]
    apart: bool = False  # whether the data are known to give no instance one element twice

    def scope(self, data: dict[str, Any], moments: dict[str, Any] | None = None) -> Scope:
        """What expressions may look up."""
        return self._scope(self.completed(data), moments)

    def _scope(self, data: dict[str, Any], moments: dict[str, Any] | None = None) -> Scope:
        sizes = {**self.sizes, **joint_sizes(self.graph)}
        return Scope(sizes, data, moments or {}, joints=self.graph.joints, rows=self.rows)

    @cached_property
    def rows(self) -> dict[Block, Rows]:
        """How blocks of many rows are cut."""
        return rows_of(self.graph, {**self.sizes, **joint_sizes(self.graph)})

    def completed(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data with the precisions of exact observations, which follow from the rest: made once for a run."""
        exact = exact_blocks(self.graph)
        if not data or all(certainty_of(block).name in data for block in exact):
            return data
        scope = self._scope(data)
        others = tuple(block for block in self.graph.blocks if all(block is not one for one in exact))
        names = {name for block in exact for name in block.latent}
        constant = {name: own for name, own in constant_of(self, others, scope).items() if name in names}
        return {**data, **certainties(exact, constant, self.graph, scope)}

    @cached_property
    def ep_blocks(self) -> dict[str, Block]:
        """Blocks with messages, by number."""
        return {str(i): block for i, block in enumerate(self.graph.blocks) if block.kind != "energy"}

    @cached_property
    def energies(self) -> tuple[Block, ...]:
        """Blocks whose messages are gradients and change during a run."""
        return tuple(block for block in self.graph.blocks if block.kind == "energy" and not block.constant)

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """Variables that these touch, those with most elements first: the first ones need no place in the state."""
        touched = {name for block in self.energies for name in block.latent} | set(self.partners)
        order = [name for name in self.graph.order if name in touched]
        # Elements that take turns read each other, so they always have a place there.
        return tuple(sorted(order, key=lambda name: (name in self.turns, -math.prod(self.plates_shape(name)))))

    @cached_property
    def with_ep(self) -> frozenset[str]:
        """Variables that EP blocks touch."""
        names = set()
        for block in self.ep_blocks.values():
            names |= self._message_names(block)
        return frozenset(names)

    @cached_property
    def partners(self) -> dict[str, tuple[str, ...]]:
        """The parameters of blocks with messages, with the numbers of those blocks."""
        found: dict[str, tuple[str, ...]] = {}
        for number, block in self.ep_blocks.items():
            for name in block.parameters:
                found[name] = (*found.get(name, ()), number)
        return found

    @cached_property
    def transient(self) -> tuple[str, ...]:
        """Moving variables whose incoming belief no update reads.

        They need no place in the state that is accelerated.
        """
        found, updated = [], set()
        for name in self.moving:
            mine = [block for block in self.energies if name in block.latent]
            reads_itself = name in self.turns or any(block.method.name == "ncvmp" for block in mine)
            readers = {other for block in mine for other in block.latent}
            alone = name not in self.with_ep and name not in self.partners
            if alone and not reads_itself and not (readers & updated):
                found.append(name)
            updated.add(name)
        return tuple(found)

    @cached_property
    def direct(self) -> bool:
        """Whether one pass is exact: nothing moves, and each block with messages has its variables to itself."""
        blocks = self.ep_blocks.values()
        touched = [name for block in blocks for name in self._message_names(block)]
        alone = len(touched) == len(set(touched))
        return not self.moving and alone and all(KINDS[block.kind].solve is not None for block in blocks)

    def _message_names(self, block: Block) -> set[str]:
        """The variables that a block sends messages to."""
        names = {*block.latent, *(getattr(tables.root(atom), "name", "") for atom in block.atoms)}
        return (names - set(block.parameters)) & set(self.graph.latent)

    @cached_property
    def partly(self) -> tuple[str, ...]:
        """Latent variables of which some entries are given."""
        return tuple(name for name in self.graph.partly if name in self.graph.latent)

    def prepare_block(self, block: Block, scope: Scope, key: Any) -> Any:
        """One EP block's data in schedule order."""
        return KINDS[block.kind].prepare(block, scope, key, self.apart)

    # one sweep --------------------------------------------------------------------------------------------------------

    def sweep(
        self,
        fixed: Fixed,
        data: dict[str, Any],
        state: State,
        step: Any,
        with_evidence: bool,
        starts: dict[str, Any],
        first: Any,
    ) -> Sweep:
        """EP blocks forward and back, then the moving variables one after the other.

        Residuals are those of the beliefs.
        """
        scope = self.scope(data)
        before = self.beliefs(fixed, state)
        always = step > 0
        moments = {name: settle(self.moments_of(name, naturals), always) for name, naturals in before.items()}
        run = _Run(dict(before), moments, dict(state.moving), starts, first)
        for name in self.transient:
            self._update(run, name, fixed, scope, jnp.ones_like(step), always)
        seen_beliefs, seen = dict(run.beliefs), dict(run.moments)
        proper = self.all_proper(before, self.with_ep)
        run.beliefs, messages, floored = self._ep_pass(fixed, scope, run.beliefs, run.moments, state.messages, step)
        for name in self.with_ep:
            run.moments[name] = self.moments_of(name, run.beliefs[name])
        for name in self.moving:
            if name not in self.transient:
                self._update(run, name, fixed, scope, step, always, messages)
        for pair in self.rotations:
            self._rotate(run, pair, fixed)
        evidence: dict[str, Any] = {}
        if with_evidence:
            known = {block: energy for block, (energy, at) in run.energies.items() if _same(at, seen)}
            evidence = evidence_parts(self, fixed, scope, seen_beliefs, seen, state.messages, energies=known)
        proper = proper & self.all_proper(run.beliefs, run.beliefs)
        watched = [name for name in before if name not in self.transient] or list(before)
        residual = distance(
            self.graph, before, run.beliefs, moments if watched == list(self.transient) else seen, run.moments, watched
        )
        return Sweep(State(run.moving, messages), residual, evidence, proper, floored)

    @cached_property
    def turns(self) -> dict[str, Plate]:
        """Variables whose elements meet in an inner product, with the plate along which they take turns."""
        return {name: over for block in self.energies for name, over in in_turn(block).items()}

    def _update(
        self, run: _Run, name: str, fixed: Fixed, scope: Scope, step: Any, always: Any, messages: Any = None
    ) -> None:
        """One variable's belief from the gradient of its energies; damped where that is not its exact optimum."""
        mine = tuple(block for block in self.energies if name in block.latent)
        others = self._partner_energies(name, fixed, run.beliefs, messages)
        target = self._target(run, name, mine, fixed, scope, others)
        if any(block.method.name == "ncvmp" for block in mine):
            rate = step * trust_in(self.graph.latent[name].domain.kind, run.beliefs[name], target, run.moving[name])
            # A weighted mean, not a step: from a vague start targets are astronomically large, and o + (t - o)
            # is not t.
            target = jax.tree.map(
                lambda t, o: spread(rate, t) * t + spread(1.0 - rate, o) * o, target, run.moving[name]
            )
        constant = self._unmoved(run, name, fixed)
        run.moving[name] = target
        run.beliefs[name] = add(constant, target)
        found = self.moments_of(name, run.beliefs[name])
        if name in run.starts:
            found = jax.tree.map(lambda start, own: jnp.where(run.first, start, own), run.starts[name], found)
        run.moments[name] = settle(found, always)

    def _unmoved(self, run: _Run, name: str, fixed: Fixed) -> tuple[Any, ...]:
        """What a variable's belief is without its moving part."""
        return subtract(run.beliefs[name], run.moving[name]) if name in self.with_ep else fixed.constant[name]

    def _target(
        self, run: _Run, name: str, blocks: tuple[Block, ...], fixed: Fixed, scope: Scope, others: Sequence[Any]
    ) -> tuple[Any, ...]:
        """What the moving part of a variable's belief should be: the messages of these energies."""
        meeting = tuple(block for block in blocks if name in in_turn(block))
        apart = tuple(block for block in blocks if block not in meeting)
        found = self.pull(name, apart, scope, run.moments, run.moments[name], others, run.energies)
        if not meeting:
            return found
        rest, variable = add(self._unmoved(run, name, fixed), found), self.graph.latent[name]
        assert isinstance(variable, Random)
        return add(found, messages_in_turn(variable, self.turns[name], meeting, rest, scope.with_moments(run.moments)))

    def _partner_energies(self, name: str, fixed: Fixed, beliefs: Naturals, messages: Any) -> list[Any]:
        """The energies of the blocks with messages that have the variable for a parameter, as functions of a scope."""

        def energy(number):
            block = self.ep_blocks[number]
            flat = self.flat(block, beliefs)
            function: Any = KINDS[block.kind].energy
            return lambda inside: function(block, fixed.prepared[number], flat, messages[number], inside)

        return [energy(number) for number in self.partners.get(name, ())]

    def _rotate(self, run: _Run, pair: Pair, fixed: Fixed) -> None:
        """Moves two vectors along the symmetry of their inner product to where the bound is best."""
        matrix = rotation(pair, run.moments[pair.left], run.moments[pair.right])
        inverse = jnp.linalg.inv(matrix).T
        for name, here, there in ((pair.left, matrix, inverse), (pair.right, inverse, matrix)):
            mean, covariance = run.moments[name]
            run.beliefs[name] = rotated(run.beliefs[name], there)
            run.moments[name] = Vector(mean @ here.T, here @ covariance @ here.T)
            run.moving[name] = subtract(run.beliefs[name], fixed.constant[name])

    def _ep_pass(self, fixed, scope, beliefs, moments, messages, step):
        messages, floored = dict(messages), {}
        scope = scope.with_moments(moments)
        beliefs = dict(beliefs)
        for number in map(str, self.graph.ep_order):
            block, prepared = self.ep_blocks[number], fixed.prepared[number]
            flat = self.flat(block, beliefs)
            flat, messages[number], count = KINDS[block.kind].update(
                block, prepared, flat, messages[number], step, scope
            )
            for name, naturals in flat.items():
                beliefs[name] = self.shaped(name, naturals)
            floored[number] = floored.get(number, 0) + count
        return beliefs, messages, floored

    def beliefs(self, fixed: Fixed, state: State) -> Naturals:
        """The naturals of all beliefs."""
        beliefs = {
            name: add(naturals, state.moving[name]) if name in state.moving else naturals
            for name, naturals in fixed.constant.items()
        }
        return self.with_messages(fixed, state.messages, beliefs)

    def with_messages(self, fixed: Fixed, messages: dict[str, Any], beliefs: Naturals) -> Naturals:
        """The naturals plus all messages of EP blocks."""
        beliefs = dict(beliefs)
        for number, block in self.ep_blocks.items():
            for name, naturals in (
                KINDS[block.kind]
                .accumulate(block, fixed.prepared[number], messages[number], self.flat(block, beliefs))
                .items()
            ):
                beliefs[name] = self.shaped(name, naturals)
        return beliefs

    def flat(self, block: Block, beliefs: Naturals) -> Naturals:
        """The naturals of the block's variables with all plates in one axis."""
        flat = {}
        for name in sorted(self._message_names(block)):
            plates = len(self.graph.latent[name].plates)
            flat[name] = tuple(n.reshape((-1, *n.shape[plates:])) for n in beliefs[name])
        return flat

    def shaped(self, name: str, naturals: tuple[Any, ...]) -> tuple[Any, ...]:
        """Flat naturals with the plates of their variable."""
        shape = self.plates_shape(name)
        return tuple(n.reshape((*shape, *n.shape[1:])) for n in naturals)

    def moments_of(self, name: str, naturals: tuple[Any, ...]) -> Any:
        """The moments of a belief; one inverse where all elements have the same precision."""
        family = family_of(self.graph.latent[name])
        if name not in self.shared:
            return family.from_naturals(naturals).moments()
        plates = len(self.graph.latent[name].plates)
        covariance = family.from_naturals(first_element(naturals, plates)).moments().covariance
        return Vector(naturals[0] @ covariance, jnp.broadcast_to(covariance, naturals[1].shape))

    @cached_property
    def shared(self) -> frozenset[str]:
        """Vectors whose elements all have the same precision."""
        return shared_precision(self.graph)

    @cached_property
    def rotations(self) -> tuple[Pair, ...]:
        """Pairs of vectors with a symmetry to move along."""
        return pairs(self.graph)

    def pull(
        self,
        name: str,
        blocks: tuple[Block, ...],
        scope: Scope,
        moments: dict[str, Any],
        here: Any,
        others: Sequence[Callable[[Scope], Any]] = (),
        energies: dict[Block, tuple[Any, dict[str, Any]]] | None = None,
    ) -> tuple[Any, ...]:
        """The sum of the blocks' messages to a variable: the gradient of their energies in its moments.

        A pass over blocks of rows gives the energy too: it is noted in `energies`, with the moments that it holds at.
        """
        whole = [block for block in blocks if block not in scope.rows]

        def energy(own):
            inside = scope.with_moments({**moments, name: own})
            return sum(block_energy(block, inside) for block in whole) + sum(other(inside) for other in others)

        gradient = jax.grad(energy)(here) if whole or others else jax.tree.map(jnp.zeros_like, here)
        for block in blocks:
            if block in scope.rows:
                found, own = energy_and_gradient(block, scope.with_moments(moments), name, here)
                gradient = jax.tree.map(jnp.add, gradient, own)
                if energies is not None:
                    energies.setdefault(block, (found, {n: moments[n] for n in block.latent}))
        return family_of(self.graph.latent[name]).pull(here, gradient)

    def all_proper(self, beliefs: Naturals, names: Any) -> Any:
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


def _same(moments: dict[str, Any], others: dict[str, Any]) -> bool:
    """Whether these are the very same moments."""
    return all(others[name] is own for name, own in moments.items())
