"""One sweep of message passing over the blocks and variables of a plan, as a pure function of data and state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int, PyTree

from ...compiler.algebra.inner_products import in_turn
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.language.nodes import Random
from ...factors.arrays import Array, Key
from ...factors.moments import Vector
from ..blocks.inner_product_elements import messages_in_turn
from ..blocks.kinds import KINDS
from ..support.cache import Recent
from ..support.compiled import Call, compiled
from ..support.computed_once import computed_once
from ..support.concrete import all_finite
from ..support.traced_once import traced_once
from ..values.naturals import Fixed, Naturals, State, Sweep, add, spread, subtract
from ..values.scope import Scope
from .bound_plan import BoundPlan, Data, Energy, Known, Messages, Moments
from .control.damping import trust_in
from .ep_passes import PASSES
from .log_evidence import evidence_parts
from .parameter_expansion import Pair, pairs, rotated, rotation
from .residual import distance
from .result import Shown
from .start import Lane, prepare, start

FUNCTIONS = 64  # that a machine keeps beside its run


@dataclasses.dataclass
class _Run:
    """Beliefs, their moments and moving parts in the course of one sweep."""

    beliefs: Naturals
    moments: Moments
    moving: Naturals
    starts: Moments  # that replace those of a selector
    first: Bool[Array, ""]  # while this is true
    energies: Known = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Machine(BoundPlan):
    """The functions of a plan for given plate sizes; `larger` are those for padded plates, where these run the data."""

    larger: Machine | None = None

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
        touched = [name for block in blocks for name in self.message_names(block)]
        alone = len(touched) == len(set(touched))
        return not self.moving and alone and all(KINDS[type(block)].solve is not None for block in blocks)

    def function(
        self, what: str, of: tuple[Hashable, ...], own: Call, structure: tuple[Any, ...] | None = None
    ) -> Call:
        """`own`, a function of nested arrays, made ready at most once.

        This machine and `of` decide what it computes, or the `structure` alone where that is given.
        """
        decided = (self, *of) if structure is None else structure
        return self._functions.get((what, *of), lambda: compiled(what, decided, own))

    @cached_property
    def _functions(self) -> Recent[Call]:
        return Recent(FUNCTIONS)

    @cached_property
    def prepared(self) -> Callable[[Data, Key], Fixed]:
        """What depends on data only (`start.prepare`)."""
        known = partial(prepare, self)
        # With blocks of rows goes a function of the data, and rows of devices are cut where they are made.
        return known if self.rows or self.dealt else traced_once(known)

    @cached_property
    def begun(self) -> Callable[[Fixed, Data, Lane], tuple[State, Moments]]:
        """The state that a run begins with (`start.start`)."""
        known = partial(start, self)
        return known if self.rows or self.dealt else traced_once(known)

    # one sweep --------------------------------------------------------------------------------------------------------

    def sweep(
        self,
        fixed: Fixed,
        data: Data,
        state: State,
        step: Float[Array, ""],
        with_evidence: bool,
        starts: Moments,
        first: Bool[Array, ""],
        longest: float = 1.0,
    ) -> Sweep:
        """EP blocks forward and back, then the moving variables one after the other.

        Residuals are those of the beliefs. Exact updates go the `longest` step that was asked for; those that are exact
        functions of other beliefs go all of the way.
        """
        scope = self.scope(data)
        before = self.beliefs(fixed, state)
        always = step > 0
        moments = {name: computed_once(self.moments_of(name, naturals), always) for name, naturals in before.items()}
        run = _Run(dict(before), moments, dict(state.moving), starts, first)
        for name in self.transient:
            self._update(run, name, fixed, scope, jnp.ones_like(step), always, state.messages)
        seen_beliefs, seen = dict(run.beliefs), dict(run.moments)
        run.energies.clear()  # those noted so far hold at moments that have moved since
        sound = self.all_proper(seen_beliefs, seen_beliefs) & all_finite(seen)
        passed = PASSES[self.graph.schedule.loop](self, fixed, scope, run.beliefs, run.moments, state.messages, step)
        run.beliefs, messages, floored = passed.beliefs, passed.messages, passed.floored
        for name in self.with_ep:
            run.moments[name] = self.moments_of(name, run.beliefs[name])
            if name in self.gating_chains:
                run.moments[name] = self._begun(run, name, run.moments[name])
        for name in self.moving:
            if name not in self.transient:
                self._update(run, name, fixed, scope, step, always, messages, longest)
        for pair in self.rotations:
            self._rotate(run, pair, fixed)
        evidence: dict[str, Float[Array, ""]] = {}
        if with_evidence:
            known = {block: energy for block, (energy, at) in run.energies.items() if _same(at, seen)}
            evidence = evidence_parts(self, fixed, scope, seen_beliefs, seen, state.messages, energies=known)
        proper = sound & self.all_proper(run.beliefs, run.beliefs)
        watched = [name for name in before if name not in self.transient] or list(before)
        residual = distance(
            self.graph, before, run.beliefs, moments if watched == list(self.transient) else seen, run.moments, watched
        )
        residual = jnp.maximum(residual, passed.left)
        return Sweep(State(run.moving, messages), residual, evidence, sound, proper, floored)

    def _update(
        self,
        run: _Run,
        name: str,
        fixed: Fixed,
        scope: Scope,
        step: Float[Array, ""],
        always: Bool[Array, ""],
        messages: Messages,
        longest: float = 1.0,
    ) -> None:
        """One variable's belief from the gradient of its energies.

        Damped where that is not its exact optimum, or where that was asked for.
        """
        mine = tuple(block for block in self.energies if name in block.latent)
        others = self.partner_energies(name, fixed, run.beliefs, messages)
        target = self._target(run, name, mine, fixed, scope, others)
        rate: Array | float = longest
        if any(block.method.name == "ncvmp" for block in mine):
            rate = step * trust_in(self.graph.latent[name].domain.kind, run.beliefs[name], target, run.moving[name])
        if not (isinstance(rate, float) and rate == 1.0):
            # A weighted mean, not a step: from a vague start targets are astronomically large, and o + (t - o)
            # is not t.
            target = jax.tree.map(
                lambda t, o: spread(rate, t) * t + spread(1.0 - rate, o) * o, target, run.moving[name]
            )
        constant = self._unmoved(run, name, fixed)
        run.moving[name] = target
        run.beliefs[name] = add(constant, target)
        found = self._begun(run, name, self.moments_of(name, run.beliefs[name]))
        run.moments[name] = computed_once(found, always)

    def _begun(self, run: _Run, name: str, found: PyTree) -> PyTree:
        """The moments of a belief; those that a selector starts with, in the first sweep."""
        if name not in run.starts:
            return found
        return jax.tree.map(lambda start, own: jnp.where(run.first, start, own), run.starts[name], found)

    def _unmoved(self, run: _Run, name: str, fixed: Fixed) -> tuple[Array, ...]:
        """What a variable's belief is without its moving part."""
        return subtract(run.beliefs[name], run.moving[name]) if name in self.with_ep else fixed.constant[name]

    def _target(
        self,
        run: _Run,
        name: str,
        blocks: tuple[EnergyBlock, ...],
        fixed: Fixed,
        scope: Scope,
        others: Sequence[Energy],
    ) -> tuple[Array, ...]:
        """What the moving part of a variable's belief should be: the messages of these energies."""
        meeting = tuple(block for block in blocks if name in in_turn(block))
        apart = tuple(block for block in blocks if block not in meeting)
        found = self.pull(name, apart, scope, run.moments, run.moments[name], others, run.energies)
        if not meeting:
            return found
        rest, variable = add(self._unmoved(run, name, fixed), found), self.graph.latent[name]
        assert isinstance(variable, Random)
        return add(found, messages_in_turn(variable, self.turns[name], meeting, rest, scope.with_moments(run.moments)))

    def partner_energies(self, name: str, fixed: Fixed, beliefs: Naturals, messages: Messages) -> list[Energy]:
        """The energies of the blocks with messages that have the variable for a parameter, as functions of a scope."""

        def energy(number: str) -> Energy:
            block = self.ep_blocks[number]
            flat = self.flat(block, beliefs)
            function = KINDS[type(block)].energy
            assert function is not None
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

    def shown(self, fixed: Fixed, beliefs: Naturals, messages: Messages) -> Shown:
        """Beliefs and messages by name, as outputs."""
        if self.dealt is None:
            return {"beliefs": beliefs, "messages": messages}
        from .places.dealt_state import shown  # few programs have several devices

        return shown(self, fixed, beliefs, messages)

    def left(self, fixed: Fixed, data: Data, beliefs: Naturals, messages: Messages) -> Float[Array, ""]:
        """How far blocks that search for their solution are from it, in standard deviations; zero of all others."""
        moments = {name: self.moments_of(name, naturals) for name, naturals in beliefs.items()}
        scope, left = self.scope(data, moments), jnp.zeros(())
        for number, block in self.ep_blocks.items():
            if (watched := KINDS[type(block)].watched) is not None:
                flat = self.flat(block, beliefs)
                outside = {name: subtract(flat[name], own) for name, own in messages[number].items()}
                left = jnp.maximum(left, watched(block, fixed.prepared[number], outside, scope)[2])
        return left

    def improper(self, fixed: Fixed, data: Data, beliefs: Naturals, messages: Messages) -> Int[Array, ""]:
        """Of how many instances a cavity is no distribution, where a fixed point has none such."""
        moments = {name: self.moments_of(name, naturals) for name, naturals in beliefs.items()}
        scope, found = self.scope(data, moments), jnp.zeros((), int)
        for number, block in self.ep_blocks.items():
            if (count := KINDS[type(block)].improper) is not None:
                found = found + count(block, fixed.prepared[number], self.flat(block, beliefs), messages[number], scope)
        return found

    @cached_property
    def rotations(self) -> tuple[Pair, ...]:
        """Pairs of vectors with a symmetry to move along."""
        return pairs(self.graph)


def _same(moments: Moments, others: Moments) -> bool:
    """Whether these are the very same moments."""
    return all(others[name] is own for name, own in moments.items())
