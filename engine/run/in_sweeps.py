"""Inference by sweeps from one start, inside a trace: the state as a vector, and what the controller leaves of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float, Int

from ...factors.arrays import Array
from ..values.naturals import Naturals, State
from .bound_plan import Data, Messages
from .control import controller
from .control.carry import Carry, Counts, Parts, Point, Settings, Swept, begin
from .control.next_start import either
from .control.result_codes import CONTRADICTION, CONVERGED, DIVERGED, RUNNING, SLOW
from .log_evidence import evidence_parts, part_names, with_contradictions
from .machine import Machine
from .result import Ended
from .start import Lane, narrower

HISTORY = 2**25  # numbers that acceleration may keep: 256 MiB


class Sweeping:
    """Inference from one start; `young` tells whether the run has not got away from it yet."""

    def __init__(
        self, machine: Machine, settings: Settings, data: Data, lane: Lane, young: Bool[Array, ""] | bool
    ) -> None:
        self.machine, self.data = machine, machine.completed(data)
        self.fixed = machine.prepared(self.data, lane.key)
        first = partial(machine.begun, self.fixed, self.data, lane)
        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(first))
        # Unless the run is young its start is known by its form alone: all else is in the carry.
        self.state, self.starts = jax.lax.cond(young, first, lambda: blank)
        affordable = max(2, HISTORY // (2 * max(1, self._numbers)))
        self.settings = settings._replace(depth=min(settings.depth, affordable), seeded=bool(self.starts))

    def split(self, state: State) -> tuple[Point, Any, Callable[[Point, Any], State]]:
        """The part of the state that is accelerated, as a vector; the rest; and the way back.

        Where rows are dealt to devices, both are vectors of what all have, and matrices of what each has by itself.
        """
        transient, dealt = self.machine.transient, self.machine.dealt
        live = {name: n for name, n in state.moving.items() if name not in transient}
        rest = {name: n for name, n in state.moving.items() if name in transient}

        def join(live: Naturals, messages: Messages, rest: Naturals) -> State:
            return State({name: live[name] if name in live else rest[name] for name in state.moving}, messages)

        if dealt is None:
            x, unravel = ravel_pytree((live, state.messages))
            x = jnp.asarray(x, float)  # where there is nothing, that is of single precision

            def whole(x: Point, rest: Any) -> State:
                live, messages = unravel(x)
                return join(live, messages, rest)

            return x, rest, whole
        from .places.dealt_state import packing  # few programs have several devices

        of_x, of_rest = (packing(dealt, self.fixed, tree) for tree in ((live, state.messages), (rest, {})))

        def together(x: Point, rest: Any) -> State:
            live, messages = of_x.tree(x)
            return join(live, messages, of_rest.tree(rest)[0])

        return of_x.packed((live, state.messages)), of_rest.packed((rest, {})), together

    @property
    def _numbers(self) -> int:
        """How many numbers are accelerated."""
        if self.machine.dealt is None:
            return self.split(self.state)[0].size
        from .places.dealt_state import numbers_of

        live = {name: own for name, own in self.state.moving.items() if name not in self.machine.transient}
        return numbers_of(self.fixed, live, self.state.messages)

    def begin(self) -> Carry:
        """The carry before the first sweep."""
        x, rest, _ = self.split(self.state)
        floored: Counts = {number: jnp.zeros((), int) for number in self.machine.ep_blocks}
        parts: Parts = {name: jnp.zeros(()) for name in part_names(self.machine)} if self.settings.with_evidence else {}
        return begin(x, rest, floored, parts, self.settings, RUNNING)

    def advance(self, carry: Carry, limit: Int[Array, ""]) -> Carry:
        """Sweeps up to number `limit`."""
        _, _, join = self.split(self.state)

        def sweep(x: Point, rest: Any, step: Float[Array, ""], first: Bool[Array, ""]) -> Swept:
            result = self.machine.sweep(
                self.fixed,
                self.data,
                join(x, rest),
                step,
                self.settings.with_evidence,
                self.starts,
                first,
                self.settings.longest,
            )
            y, rest, _ = self.split(result.state)
            return Swept(y, rest, result.residual, result.evidence, result.sound, result.proper, result.floored)

        def start(narrowed: Int[Array, ""]) -> Point:
            moving = narrower(self.machine, self.fixed, self.state.moving, narrowed)
            return self.split(self.state._replace(moving=moving))[0]

        agreement = () if self.machine.dealt is None else (self.machine.dealt.agreed,)
        return controller.advance(sweep, start, carry, self.settings, limit, *agreement)

    def finish(self, carry: Carry) -> Ended:
        """What the run leaves.

        With evidence, the answer is the last sound state; without, what the last sweep made of it.
        """
        _, _, join = self.split(self.state)
        seen, sound, tally = self.settings.with_evidence, carry.sound, carry.tally
        state = join(sound.x if seen else either(carry.code == DIVERGED, sound.x, carry.good.y), sound.rest)
        beliefs = self.machine.beliefs(self.fixed, state)
        parts = sound.parts
        if not seen:
            moments = {name: self.machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
            parts = evidence_parts(
                self.machine, self.fixed, self.machine.scope(self.data), beliefs, moments, state.messages
            )
        left = self.machine.left(self.fixed, self.data, beliefs, state.messages)
        improper = self.machine.improper(self.fixed, self.data, beliefs, state.messages)
        parts = with_contradictions(parts)
        evidence = sum(parts.values(), jnp.zeros(()))
        return {
            **self.machine.shown(self.fixed, beliefs, state.messages),
            "parts": parts,
            "iteration": tally.iteration,
            "code": jnp.where(
                sound.found & jnp.isneginf(evidence),
                CONTRADICTION,
                jnp.where((carry.code == CONVERGED) & ((left > 0.0) | (improper > 0)), SLOW, carry.code),
            ),
            "error": jnp.maximum(carry.error, left),
            "residuals": carry.residuals,
            "evidences": carry.evidences,
            "rejected": tally.rejected,
            "damped": tally.damped,
            "floored": tally.floored,
            "improper": improper,
            "step": carry.pace.step,
            "evidence": evidence,
            "found": sound.found & (evidence < jnp.inf),
        }
