"""The machine of a plan: start, one sweep, and the reading of the result, as pure functions of data.

State is a pytree: `moving` holds, for each variable that VMP updates, the sum of its messages from energies; `messages`
those of the EP blocks. A belief is the constant messages + the moving ones + the EP ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..compiler.expressions import Let, Random
from ..compiler.graph import Block, Graph
from ..factors.moments import Vector
from . import tables
from .beliefs import (
    anchor,
    exchangeable_gates,
    family_of,
    first_element,
    jittered,
    multiplied,
    placeholder,
    proper,
    seeds,
    shape_of,
    stats_from_moments,
    uniform,
)
from .bilinear import shared_precision
from .energy import block_energy
from .evaluate import Scope
from .evidence import evidence_parts
from .exactly import certainties, exact_blocks
from .joint import given_places, joint_sizes
from .kinds import KINDS
from .rotate import Pair, pairs, rotated, rotation
from .settle import settle

Naturals = dict[str, tuple[Any, ...]]


class State(NamedTuple):
    """What a sweep maps to its successor."""

    moving: Naturals
    messages: dict[str, Any]


class Fixed(NamedTuple):
    """What stays during a run: the constant messages and the EP blocks' data in schedule order."""

    constant: Naturals
    prepared: dict[str, Any]


class Sweep(NamedTuple):
    """One sweep's result.

    In order: the new state, the residual in standard deviations, the evidence by factor of the state it began from
    (with its transient variables brought up to date), whether all beliefs are proper, and how many cavities were
    floored by block.
    """

    state: State
    residual: Any
    evidence: dict[str, Any]
    proper: Any
    floored: dict[str, Any]


@dataclasses.dataclass
class _Run:
    """Beliefs, their moments and moving parts in the course of one sweep."""

    beliefs: Naturals
    moments: dict[str, Any]
    moving: Naturals
    starts: dict[str, Any]  # moments that replace those of a selector
    first: Any  # while this is true


@dataclasses.dataclass(frozen=True, eq=False)
class Machine:
    """The functions of a plan for given plate sizes."""

    graph: Graph
    sizes: dict[str, int]
    apart: bool = False  # whether the data are known to give no instance one element twice

    def scope(self, data: dict[str, Any], moments: dict[str, Any] | None = None) -> Scope:
        """What expressions may look up."""
        scope = Scope({**self.sizes, **joint_sizes(self.graph)}, data, moments or {}, joints=self.graph.joints)
        exact = exact_blocks(self.graph)
        if not exact or not data:
            return scope
        others = tuple(block for block in self.graph.blocks if all(block is not one for one in exact))
        names = {name for block in exact for name in block.latent}
        constant = {name: own for name, own in self.constant_of(others, scope).items() if name in names}
        return scope.with_data(certainties(exact, constant, self.graph, scope))

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
        return tuple(sorted(order, key=lambda name: -math.prod(self.plates_shape(name))))

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
            reads_itself = any(block.method.name == "ncvmp" for block in mine)
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

    # start ------------------------------------------------------------------------------------------------------------

    def prepare(self, data: dict[str, Any], key: Any) -> Fixed:
        """Everything that depends on data only."""
        scope = self.scope(data)
        prepared = {}
        for number, block in self.ep_blocks.items():
            prepared[number] = self.prepare_block(block, scope, jax.random.fold_in(key, int(number)))
        constant = self.constant_of(self.graph.blocks, scope)
        for name in dict.fromkeys(block.latent[0] for block in self.graph.blocks if block.constant and block.latent):
            kind = self.graph.latent[name].domain.kind
            if kind in ("boolean", "category"):  # a certain state must stay finite to be subtracted
                constant[name] = (tables.bounded(constant[name][0], kind == "category"),)
        for name in self.partly:
            given, own = self._given(name, scope), anchor(self.graph.latent[name], scope)
            constant[name] = tuple(c + _spread(given, a) * a for c, a in zip(constant[name], own, strict=True))
        for joint in self.graph.joints:
            if (given := given_places(joint, self.graph.partly, data, self.sizes)) is not None:
                shift, half = constant[joint.variable.name]
                constant[joint.variable.name] = shift, half - 0.5 * given[..., None] * jnp.eye(given.shape[-1])
        return Fixed(constant, prepared)

    def constant_of(self, blocks: tuple[Block, ...], scope: Scope) -> Naturals:
        """The sums of the constant messages of some blocks."""
        constant = {name: uniform(variable, scope) for name, variable in self.graph.latent.items()}
        for block in blocks:
            if block.constant and block.latent:
                (name,) = block.latent
                variable = self.graph.latent[name]
                here = placeholder(variable, scope)
                constant[name] = _add(constant[name], self._pull(name, (block,), scope, {}, here))
        return constant

    @cached_property
    def partly(self) -> tuple[str, ...]:
        """Latent variables of which some entries are given."""
        return tuple(name for name in self.graph.partly if name in self.graph.latent)

    def _given(self, name: str, scope: Scope) -> Any:
        """One where an entry is given, zero where it is missing."""
        return jnp.asarray(scope.data[self.graph.partly[name].given.name], float)

    def prepare_block(self, block: Block, scope: Scope, key: Any) -> Any:
        """One EP block's data in schedule order."""
        return KINDS[block.kind].prepare(block, scope, key, self.apart)

    def start(self, fixed: Fixed, data: dict[str, Any], key: Any) -> tuple[State, dict[str, Any]]:
        """Beliefs from the priors in order of declaration, with symmetries broken by the random key.

        Also returns the moments that the selectors of gates have in the first sweep. Those are seeds, or the prior:
        wiser than what they would be under components so vague that no case but the tightest survives.
        """
        scope = self.scope(data)
        beliefs, moments = dict(fixed.constant), {}
        multiply = multiplied(self.graph)
        for i, (name, variable) in enumerate(self.graph.latent.items()):
            own = tuple(block for block in self.energies if block.out is variable or self._joins(block, name))
            if own:
                around = {n: placeholder(v, scope) for n, v in self.graph.latent.items()} | moments
                pulled = _add(beliefs[name], self._pull(name, own, scope, around, placeholder(variable, scope)))
                beliefs[name] = proper(variable, pulled, scope)
            if name in multiply:
                beliefs[name] = jittered(variable, beliefs[name], jax.random.fold_in(key, 1000 + i))
            moments[name] = (
                self.moments_of(name, beliefs[name])
                if name not in self.with_ep or own or self._has_prior(name)
                else placeholder(variable, scope)
            )
        selectors = [gate.selector for block in self.energies for gate in block.gates]
        chosen = {selector.name for selector in selectors if isinstance(selector, (Random, Let))}
        starts = {name: moments[name] for name in self.moving if name in chosen}
        for i, (selector, _) in enumerate(exchangeable_gates(self.graph)):
            data_of = self.graph.partly.get(selector.name)
            starts[selector.name] = seeds(selector, scope, jax.random.fold_in(key, 2000 + i), data_of)
        moving = {name: _subtract(beliefs[name], fixed.constant[name]) for name in self.moving}
        messages = {
            number: KINDS[block.kind].initial(block, fixed.prepared[number], scope)
            for number, block in self.ep_blocks.items()
        }
        return State(moving, messages), starts

    def _joins(self, block: Block, name: str) -> bool:
        """Whether a block adds to a joint belief, whose precision may need all of them to be proper."""
        return name in block.latent and any(joint.variable.name == name for joint in self.graph.joints)

    def _has_prior(self, name: str) -> bool:
        return any(block.constant and block.latent == (name,) for block in self.graph.blocks)

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
        evidence = evidence_parts(self, fixed, scope, run.beliefs, run.moments, state.messages) if with_evidence else {}
        seen = dict(run.moments)
        proper = self.all_proper(before, self.with_ep)
        run.beliefs, messages, floored = self._ep_pass(fixed, scope, run.beliefs, run.moments, state.messages, step)
        for name in self.with_ep:
            run.moments[name] = self.moments_of(name, run.beliefs[name])
        for name in self.moving:
            if name not in self.transient:
                self._update(run, name, fixed, scope, step, always, messages)
        for pair in self.rotations:
            self._rotate(run, pair, fixed)
        proper = proper & self.all_proper(run.beliefs, run.beliefs)
        watched = [name for name in before if name not in self.transient] or list(before)
        residual = self._residual(
            before, run.beliefs, moments if watched == list(self.transient) else seen, run.moments, watched
        )
        return Sweep(State(run.moving, messages), residual, evidence, proper, floored)

    def _update(
        self, run: _Run, name: str, fixed: Fixed, scope: Scope, step: Any, always: Any, messages: Any = None
    ) -> None:
        """One variable's belief from the gradient of its energies; damped where that is not its exact optimum."""
        mine = tuple(block for block in self.energies if name in block.latent)
        others = self._partner_energies(name, fixed, run.beliefs, messages)
        target = self._pull(name, mine, scope, run.moments, run.moments[name], others)
        if any(block.method.name == "ncvmp" for block in mine):
            rate = step * _trust(name, self.graph, run.beliefs[name], target, run.moving[name])
            # A weighted mean, not a step: from a vague start targets are astronomically large, and o + (t - o)
            # is not t.
            target = jax.tree.map(
                lambda t, o: _spread(rate, t) * t + _spread(1.0 - rate, o) * o, target, run.moving[name]
            )
        constant = (
            jax.tree.map(jnp.subtract, run.beliefs[name], run.moving[name])
            if name in self.with_ep
            else fixed.constant[name]
        )
        run.moving[name] = target
        run.beliefs[name] = _add(constant, target)
        found = self.moments_of(name, run.beliefs[name])
        if name in run.starts:
            found = jax.tree.map(lambda start, own: jnp.where(run.first, start, own), run.starts[name], found)
        run.moments[name] = settle(found, always)

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
            run.moving[name] = _subtract(run.beliefs[name], fixed.constant[name])

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
            name: _add(naturals, state.moving[name]) if name in state.moving else naturals
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

    def _pull(
        self,
        name: str,
        blocks: tuple[Block, ...],
        scope: Scope,
        moments: dict[str, Any],
        here: Any,
        others: Sequence[Callable[[Scope], Any]] = (),
    ) -> tuple[Any, ...]:
        """The sum of the blocks' messages to a variable: the gradient of their energies in its moments."""

        def energy(own):
            inside = scope.with_moments({**moments, name: own})
            return sum(block_energy(block, inside) for block in blocks) + sum(other(inside) for other in others)

        return family_of(self.graph.latent[name]).pull(here, jax.grad(energy)(here))

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

    def _residual(
        self, before: Naturals, after: Naturals, seen: dict[str, Any], found: dict[str, Any], names: list[str]
    ) -> Any:
        """The largest change of a belief in its own standard deviations.

        That is the square root of the symmetric divergence (new - old) . (E new - E old).
        """
        worst = jnp.zeros(())
        for name in names:
            plates = len(self.graph.latent[name].plates)
            total = 0.0
            for a, b, s, t in zip(
                before[name], after[name], stats_from_moments(seen[name]), stats_from_moments(found[name]), strict=True
            ):
                product = (b - a) * (t - s)
                total = total + product.sum(axis=tuple(range(plates, product.ndim)))
            worst = jnp.maximum(worst, jnp.max(jnp.where(jnp.isfinite(total), jnp.abs(total), jnp.inf)))
        return jnp.sqrt(worst)

    def plates_shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a latent variable's plates."""
        return shape_of(self.graph.latent[name], self.scope({}))


def _trust(name: str, graph: Graph, belief: tuple[Any, ...], target: tuple[Any, ...], current: tuple[Any, ...]) -> Any:
    """By element, the part of an NCVMP step that multiplies no precision by more than a million.

    The start may be so vague that the full step is meaningless.
    """
    if graph.latent[name].domain.kind not in ("real", "vector"):
        return 1.0
    old, change = belief[1], target[1] - current[1]
    if graph.latent[name].domain.kind == "vector":
        old, change = (jnp.diagonal(matrix, axis1=-2, axis2=-1) for matrix in (old, change))
    growth = change / jnp.where(old < 0, old, -1.0)
    growth = growth.max(-1) if graph.latent[name].domain.kind == "vector" else growth
    return jnp.minimum(1.0, 1e6 / jnp.maximum(growth, 1e-300))


def _spread(rate: Any, array: Any) -> Any:
    """A rate by element against naturals with event axes."""
    return jnp.reshape(rate, jnp.shape(rate) + (1,) * (jnp.ndim(array) - jnp.ndim(rate))) if jnp.ndim(rate) else rate


def _add(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return jax.tree.map(jnp.add, tuple(a), tuple(b))


def _subtract(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return jax.tree.map(jnp.subtract, tuple(a), tuple(b))
