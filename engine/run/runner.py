"""The jitted functions of one machine, and one inference inside a trace.

What is compiled does at most so many sweeps from a carry: see `chunks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..interpret.interpreter import run_by_numpy
from ..options import Options, key_of
from ..support.recent import Recent
from ..values.naturals import State
from . import controller
from .chunks import DONE, blank, compiled, in_chunks, strong
from .evidence import evidence_parts, part_names
from .machine import Machine
from .one_pass import direct
from .progress import Progress
from .result import Result
from .start import Lane, narrower, prepare, start

BATCHES = 8  # sizes of batches, and layouts of sparse data, that are kept for each set of shapes


class Runner:
    """The jitted functions of one machine."""

    def __init__(self, machine: Machine, options: Options, on_trace: Callable[[], None]) -> None:
        self.machine, self.options = machine, options
        monotone = not machine.ep_blocks
        self.settings = controller.Settings(
            options.tolerance,
            options.max_iterations,
            options.acceleration,
            monotone,
            options.trace_evidence or monotone,
            options.max_iterations,
        )
        self.on_trace = on_trace
        self._made: Recent[tuple[Any, Any]] = Recent(BATCHES)

    def __call__(self, data: dict[str, Any], seed: int, progress: bool | None) -> Result:
        """One inference."""
        with Progress(progress) as watcher:
            outputs = self._run(({}, data, key_of(seed)), watcher, many=False)
        return Result(outputs, self.settings)

    def many(self, data: dict[str, Any], seed: int) -> Any:
        """Inferences with stacked data: the outputs, stacked."""
        return self.many_values({}, data, seed)

    def many_values(self, data: dict[str, Any], values: dict[str, Any], seed: int) -> Any:
        """Inferences that differ in `values` alone, which are stacked: the outputs, stacked."""
        with Progress(False) as watcher:
            outputs = self._run((values, data, key_of(seed)), watcher, many=True)
        return jax.tree.map(np.asarray, outputs)

    def form(self, data: dict[str, Any]) -> Any:
        """Shapes and types of the outputs of one inference."""
        given = {}, data, key_of(0)
        return jax.eval_shape(self._chunk, *given, jax.eval_shape(self._begin, *given), True, 0)[1]

    def _run(self, given: tuple[Any, Any, Any], watcher: Progress, many: bool) -> Any:
        """The outputs for (stacked data, common data, key)."""
        shapes = tuple(np.shape(array) for array in jax.tree.leaves(given))
        chunk, empty = self._made.get((many, shapes), lambda: self._make(given, many))
        return in_chunks(lambda *now: chunk(*given, *now), empty, sum(map(math.prod, shapes)), watcher)

    def _make(self, given: tuple[Any, Any, Any], many: bool) -> tuple[Any, Any]:
        """The chunk for arguments of these shapes, ready to run, and a carry of zeros, which nobody reads."""
        begin, chunk = partial(self._begin, trace=1 if many else None), partial(self._chunk, trace=1 if many else None)
        if many:
            begin, chunk = jax.vmap(begin, (0, None, None)), jax.vmap(chunk, (0, None, None, 0, None, None))
        empty = blank(jax.eval_shape(begin, *given))
        chunk = jax.jit(chunk, donate_argnums=3)  # each carry goes into the next: it may be a quarter of a gigabyte
        traced = chunk.trace(*given, empty, np.asarray(True), np.asarray(0, np.int32))
        if self.options.execution == "interpret" and (interpreted := run_by_numpy(traced)):
            return interpreted, empty
        compiled(traced.lower())
        return chunk, empty

    # traced functions: keys are per restart, data are arguments and never closures ------------------------------------

    def _lanes(self, key) -> Lane:
        """The starts, side by side: as many as asked for, each on both sides where a sign is hard to see."""
        restarts, sides = self.options.restarts, 2 if self.machine.mirrored else 1
        index = jnp.arange(restarts * sides)
        keys = jax.random.split(jax.random.wrap_key_data(key), restarts)[index // sides]
        return Lane(keys, index >= sides if restarts > 1 else None, 1.0 - 2.0 * (index % sides))

    def _settings(self, trace: int | None) -> controller.Settings:
        return self.settings if trace is None else self.settings._replace(trace=trace)

    def _begin(self, values, data, key, trace: int | None = None):
        """The carries of all restarts before their first sweep: only their form is ever asked for."""

        def one(lane):
            if self.machine.direct:
                return DONE
            return _Task(self.machine, self._settings(trace), {**data, **values}, lane, True).begin()

        return self._over_restarts(one, self._lanes(key))

    def _chunk(self, values, data, key, carry, fresh, limit, trace: int | None = None):
        """Sweeps up to number `limit`, from the start or from the carry: the next carry, and the outputs so far."""
        self.on_trace()

        def one(lane, carry):
            if self.machine.direct:
                return DONE, direct(self.machine, self._settings(trace), {**data, **values}, lane.key)
            # A run that has not got away from its start may begin again from a narrower one, in a later chunk too.
            young = fresh | (carry.accepted <= 1)
            task = _Task(self.machine, self._settings(trace), {**data, **values}, lane, young)
            carry = task.advance(jax.lax.cond(fresh, task.begin, lambda: carry), limit)
            return carry, task.finish(carry)

        carries, outputs = self._over_restarts(one, self._lanes(key), carry)
        return strong(carries), self._best(outputs, key)

    def _over_restarts(self, function, *stacked):
        """Restarts side by side; a single one without the cost of mapping.

        A mapped loop computes both sides of every choice.
        """
        if len(jax.tree.leaves(stacked)[0]) == 1:
            return jax.tree.map(lambda a: jnp.asarray(a)[None], function(*jax.tree.map(lambda a: a[0], stacked)))
        if jax.default_backend() == "cpu":  # one after the other compiles faster, and none waits for the slowest
            return jax.lax.map(lambda arguments: function(*arguments), stacked)
        return jax.vmap(function)(*stacked)

    def _best(self, outputs, key):
        """The restart with the best evidence among those that ended best; one without a sound state has none."""
        evidence = jnp.where(outputs["found"], outputs["evidence"], -jnp.inf)
        best = controller.preferred(outputs["code"], outputs["found"], evidence, self.settings.monotone)
        chosen = jax.tree.map(lambda a: a[best], outputs)
        own = {"restart": best, "evidence": evidence[best], "all_evidence": evidence}
        return {**chosen, **own, "key": jax.random.key_data(self._lanes(key).key[best])}


HISTORY = 2**25  # numbers that acceleration may keep: 256 MiB


class _Task:
    """One inference inside a trace."""

    def __init__(self, machine: Machine, settings: controller.Settings, data: Any, lane: Lane, young: Any) -> None:
        self.machine, self.data = machine, machine.completed(data)
        self.fixed = prepare(self.machine, self.data, lane.key)
        begin = partial(start, self.machine, self.fixed, self.data, lane)
        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(begin))
        # Unless the run is young its start is known by its form alone: all else is in the carry.
        self.state, self.starts = jax.lax.cond(young, begin, lambda: blank)
        affordable = max(2, HISTORY // (2 * max(1, self.split(self.state)[0].size)))
        self.settings = settings._replace(depth=min(settings.depth, affordable), seeded=bool(self.starts))

    def split(self, state: State) -> tuple[Any, Any, Callable[[Any, Any], State]]:
        """The part of the state that is accelerated, as a vector; the rest; and the way back."""
        transient = self.machine.transient
        live = {name: n for name, n in state.moving.items() if name not in transient}
        rest = {name: n for name, n in state.moving.items() if name in transient}
        x, unravel = ravel_pytree((live, state.messages))
        x = jnp.asarray(x, float)  # where there is nothing, that is of single precision

        def join(x, rest):
            live, messages = unravel(x)
            return State({name: live[name] if name in live else rest[name] for name in state.moving}, messages)

        return x, rest, join

    def begin(self) -> controller.Carry:
        x, rest, _ = self.split(self.state)
        floored = {number: jnp.zeros((), int) for number in self.machine.ep_blocks}
        parts = {name: jnp.zeros(()) for name in part_names(self.machine)} if self.settings.with_evidence else {}
        return controller.begin(x, rest, floored, parts, self.settings, 1.0)

    def advance(self, carry: controller.Carry, limit: Any) -> controller.Carry:
        _, _, join = self.split(self.state)

        def sweep(x, rest, step, first):
            result = self.machine.sweep(
                self.fixed, self.data, join(x, rest), step, self.settings.with_evidence, self.starts, first
            )
            y, rest, _ = self.split(result.state)
            return y, rest, result.residual, result.evidence, result.sound, result.proper, result.floored

        def start(narrowed):
            moving = narrower(self.machine, self.fixed, self.state.moving, narrowed)
            return self.split(self.state._replace(moving=moving))[0]

        return controller.advance(sweep, start, carry, self.settings, limit)

    def finish(self, carry: controller.Carry) -> dict[str, Any]:
        _, _, join = self.split(self.state)
        # With evidence, the answer is the last sound state; without, what the last sweep made of it.
        seen = self.settings.with_evidence
        state = join(
            carry.sound if seen else jnp.where(carry.code == controller.DIVERGED, carry.sound, carry.good), carry.rest
        )
        beliefs = self.machine.beliefs(self.fixed, state)
        parts = carry.parts
        if not seen:
            moments = {name: self.machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
            parts = evidence_parts(
                self.machine, self.fixed, self.machine.scope(self.data), beliefs, moments, state.messages
            )
        evidence = sum(parts.values(), jnp.zeros(()))
        fields = ("iteration", "code", "error", "residuals", "evidences", "rejected", "damped", "floored", "step")
        return {
            "beliefs": beliefs,
            "messages": state.messages,
            "parts": parts,
            **{field: getattr(carry, field) for field in fields},
            "evidence": evidence,
            "code": jnp.where(carry.found & jnp.isneginf(evidence), controller.CONTRADICTION, carry.code),
            "found": carry.found & (evidence < jnp.inf),
        }
