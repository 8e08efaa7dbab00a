"""The jitted functions of one machine, and one inference inside a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from . import controller
from .direct import direct
from .evidence import evidence_parts, part_names
from .machine import Machine
from .options import Options, key_of
from .progress import Progress
from .result import Result
from .start import prepare, start
from .state import State


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
        self._whole = jax.jit(self._run_all)
        self._many = jax.jit(jax.vmap(lambda data, key: self._run_all(data, key, trace=1), in_axes=(0, None)))
        self._many_values = jax.jit(
            jax.vmap(lambda data, values, key: self._run_all({**data, **values}, key, trace=1), in_axes=(None, 0, None))
        )
        self._start = jax.jit(self._begin_all)
        self._advance = jax.jit(self._advance_all)
        self._finish = jax.jit(self._finish_all)

    def __call__(self, data: dict[str, Any], seed: int, progress: bool | None) -> Result:
        """One inference; in chunks when somebody watches."""
        key = key_of(seed)
        size = sum(np.size(array) for array in data.values())
        watcher = None if self.machine.direct else Progress.wanted(progress, size)
        outputs = self._watched(data, key, watcher) if watcher else self._whole(data, key)
        return Result(outputs, self.settings)

    def many(self, data: dict[str, Any], seed: int) -> Any:
        """Inferences with stacked data: the outputs, stacked."""
        return jax.tree.map(np.asarray, self._many(data, key_of(seed)))

    def many_values(self, data: dict[str, Any], values: dict[str, Any], seed: int) -> Any:
        """Inferences that differ in `values` alone, which are stacked: the outputs, stacked."""
        return jax.tree.map(np.asarray, self._many_values(data, values, key_of(seed)))

    def _watched(self, data, key, watcher: Progress) -> Any:
        carry = self._start(data, key)
        chunk = 8
        while watcher.running(carry):
            carry = self._advance(
                data, key, carry, np.asarray(int(np.min(np.asarray(carry.iteration))) + chunk, np.int32)
            )
            chunk = watcher.show(carry, chunk)
        watcher.close()
        return self._finish(data, key, carry)

    # traced functions: keys are per restart, data are arguments and never closures ------------------------------------

    def _keys(self, key):
        return jax.random.split(jax.random.wrap_key_data(key), self.options.restarts)

    def _run_all(self, data, key, trace: int | None = None):
        self.on_trace()
        settings = self.settings if trace is None else self.settings._replace(trace=trace)

        def one(key):
            if self.machine.direct:
                return direct(self.machine, settings, data, key)
            task = _Task(self.machine, settings, data, key)
            return task.finish(task.advance(task.begin(), self.settings.max_iterations))

        return self._best(self._over_restarts(one, self._keys(key)), key)

    def _task(self, data, key) -> _Task:
        return _Task(self.machine, self.settings, data, key)

    def _begin_all(self, data, key):
        self.on_trace()
        return self._over_restarts(lambda k: self._task(data, k).begin(), self._keys(key))

    def _advance_all(self, data, key, carry, limit):
        return self._over_restarts(lambda k, c: self._task(data, k).advance(c, limit), self._keys(key), carry)

    def _finish_all(self, data, key, carry):
        return self._best(self._over_restarts(lambda k, c: self._task(data, k).finish(c), self._keys(key), carry), key)

    def _over_restarts(self, function, *stacked):
        """Restarts side by side; a single one without the cost of mapping.

        A mapped loop computes both sides of every choice.
        """
        if self.options.restarts == 1:
            return jax.tree.map(lambda a: a[None], function(*jax.tree.map(lambda a: a[0], stacked)))
        if jax.default_backend() == "cpu":  # one after the other compiles faster, and none waits for the slowest
            return jax.lax.map(lambda arguments: function(*arguments), stacked)
        return jax.vmap(function)(*stacked)

    def _best(self, outputs, key):
        """The restart with the best evidence."""
        evidence = outputs["evidence"]
        best = jnp.argmax(jnp.where(jnp.isnan(evidence), -jnp.inf, evidence))
        chosen = jax.tree.map(lambda a: a[best], outputs)
        return {**chosen, "restart": best, "all_evidence": evidence, "key": jax.random.key_data(self._keys(key)[best])}


HISTORY = 2**25  # numbers that acceleration may keep: 256 MiB


class _Task:
    """One inference inside a trace."""

    def __init__(self, machine: Machine, settings: controller.Settings, data: Any, key: Any) -> None:
        self.machine, self.data = machine, machine.completed(data)
        self.fixed = prepare(self.machine, self.data, key)
        self.state, self.starts = start(self.machine, self.fixed, self.data, key)
        affordable = max(2, HISTORY // (2 * max(1, self.split(self.state)[0].size)))
        self.settings = settings._replace(depth=min(settings.depth, affordable), seeded=bool(self.starts))

    def split(self, state: State) -> tuple[Any, Any, Callable[[Any, Any], State]]:
        """The part of the state that is accelerated, as a vector; the rest; and the way back."""
        transient = self.machine.transient
        live = {name: n for name, n in state.moving.items() if name not in transient}
        rest = {name: n for name, n in state.moving.items() if name in transient}
        x, unravel = ravel_pytree((live, state.messages))

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
            return y, rest, result.residual, result.evidence, result.proper, result.floored

        return controller.advance(sweep, carry, self.settings, limit)

    def finish(self, carry: controller.Carry) -> dict[str, Any]:
        _, _, join = self.split(self.state)
        # With evidence, the answer is the state whose evidence was last seen; without, what the last sweep made of it.
        seen = self.settings.with_evidence
        state = join(
            carry.base if seen else jnp.where(carry.code == controller.DIVERGED, carry.base, carry.good), carry.rest
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
            "code": jnp.where(jnp.isneginf(evidence), controller.CONTRADICTION, carry.code),
        }
