"""A compiled program: bound to a plan, jitted once for each set of shapes, called with data as often as one likes."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..compiler.bind import Binding, bind
from ..compiler.bind_many import Bindings, bind_many
from ..compiler.expressions import Expr
from ..compiler.graph import Graph
from ..compiler.known import known_in
from ..compiler.language import Model
from ..compiler.plan import make_plan
from ..factors.errors import DataError, ModelError
from . import controller
from .evaluate import Scope, value
from .evidence import evidence_parts, part_names
from .forward import marginals
from .machine import Machine, State
from .placed import spread
from .posterior import Posterior, Result
from .progress import Progress
from .site_data import all_apart
from .stream import given_arrays, given_beliefs


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a run: see `infer`."""

    tolerance: float = 1e-6
    max_iterations: int = 1000
    restarts: int = 1
    acceleration: int = 5
    trace_evidence: bool = True
    progress: bool | None = None
    accuracy: str = "default"

    def __post_init__(self) -> None:
        if self.accuracy not in ("default", "best"):
            raise ModelError(
                f"accuracy= is 'default' or 'best'; found {self.accuracy!r}. 'best' treats jointly and exactly what is "
                "affordable, also where a method was asked for."
            )
        for name, low in (("max_iterations", 1), ("restarts", 1), ("acceleration", 0)):
            number = getattr(self, name)
            if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < low:
                raise ModelError(f"{name}= must be a whole number of at least {low}; found {number!r}.")
        if not isinstance(self.tolerance, (int, float, np.number)) or not self.tolerance > 0:
            raise ModelError(
                f"tolerance= is in posterior standard deviations and must be positive; found {self.tolerance!r}. "
                "Try 1e-6."
            )


class Program:
    """A model compiled for a set of observed names: `program(data)` infers, and recompiles only for new shapes.

    `program.traces` counts compilations. `program.plan` is the plan, which `print(program.explain())` tells.
    """

    def __init__(
        self,
        model: Model,
        observed: Sequence[str],
        method: Any = "auto",
        sizes: Mapping[str, int] | None = None,
        options: Options | None = None,
    ) -> None:
        known = {**model.randoms, **model.lets}
        unknown = [name for name in observed if name not in known and name not in model.inputs]
        if unknown:
            raise DataError(
                f"observed= names {unknown[0]!r}, which the model does not have. It has: "
                f"{', '.join([*model.inputs, *known])}."
            )
        self.model, self.method, self.sizes = model, method, dict(sizes or {})
        self.observed = frozenset(name for name in observed if name in known)
        self.options = options or Options()
        self.traces = 0
        self._plans: dict[Any, Graph] = {}
        self._runs: dict[Any, tuple[Machine, Runner]] = {}
        self._predictors: dict[Any, Callable[..., Any]] = {}
        self._conditionals: dict[tuple[str, ...], Program] = {}
        self.plan = self._plan(frozenset(), self._sizes_so_far())
        self._fixed = self._expressions_of_data()

    def _plan(self, missing: frozenset[str], sizes: Mapping[str, int], given: frozenset[str] = frozenset()) -> Graph:
        key = missing, given, tuple(sorted(sizes.items()))
        if key not in self._plans:
            accuracy = self.options.accuracy
            self._plans[key] = make_plan(self.model, self.observed, missing, self.method, given, sizes, accuracy)
        return self._plans[key]

    def _sizes_so_far(self) -> dict[str, int]:
        """The sizes of plates that are known before any data."""
        return {**{name: size for name, (size, _) in self.model.sizes.items()}, **self.sizes}

    def __call__(self, data: Mapping[str, Any], *, seed: int = 0, prior: Any = None) -> Posterior:
        """Infers the posterior given `data`: values by name for all inputs and the observed variables.

        `prior` is what an earlier posterior knows (see `infer`). Returns a `Posterior`. Raises DataError, before
        anything is compiled, for data that do not fit the model. The same seed gives the same result.
        """
        binding = self.bind(data)
        beliefs = given_beliefs(self.model, binding, prior)
        with jax.enable_x64(True):
            machine, run = self._run(binding, binding.inputs, frozenset(beliefs))
            arrays = {**arrays_of(binding), **given_arrays(self.model, beliefs)}
            result = run(arrays, seed, self.options.progress)
        return Posterior(machine, arrays, binding, result, self)

    def bind(self, data: Mapping[str, Any]) -> Binding:
        """Checked data: the names given must be those that the program was compiled for."""
        binding = bind(self.model, data, self.sizes)
        self._check_observed(binding)
        self._check_known(binding)
        return binding

    def _check_known(self, binding: Binding) -> None:
        """What the data fix twice, by observing an expression and all that it is made of, must agree."""
        for name, expr in self._fixed.items():
            observed = {key: array for key, array in binding.observed.items() if key != name}
            with jax.enable_x64(True):
                placed = value(expr, Scope(binding.sizes, {**binding.inputs, **observed}, {}))
                found = np.asarray(spread(placed, expr.plates, binding.sizes), float)
            wanted = np.asarray(binding.observed.get(name, True), float)
            if not np.allclose(found, wanted, rtol=1e-9, atol=1e-12):
                raise DataError(
                    f"The data contradict '{name}' = {expr}: its parts are all given and make it {_brief(found)}, "
                    f"but it is {'observed as ' if name in self.observed else 'constrained to be '}{_brief(wanted)}. "
                    "Correct the data, or leave one of them out."
                )

    def _expressions_of_data(self) -> dict[str, Expr]:
        """Observed lets and constraints whose parts are all observed."""
        known = known_in(self.plan)
        lets = {name: node.expression for name, node in self.model.lets.items() if name in self.observed}
        return {name: expr for name, expr in {**lets, **self.model.constraints}.items() if known(expr)}

    def _check_observed(self, binding: Binding) -> None:
        if frozenset(binding.observed) != self.observed:
            lacks, extra = sorted(self.observed - set(binding.observed)), sorted(set(binding.observed) - self.observed)
            raise DataError(
                f"The program was compiled for observations of {', '.join(sorted(self.observed)) or 'nothing'}; "
                "the data "
                + " and ".join(
                    [f"lack {', '.join(lacks)}"] * bool(lacks) + [f"also give {', '.join(extra)}"] * bool(extra)
                )
                + ". What is observed is part of the program: compile it again with observed=[...]."
            )

    def _run(self, binding: Binding, inputs: Any, given: frozenset[str] = frozenset()) -> tuple[Machine, Runner]:
        plan = self._plan(frozenset(binding.missing), binding.sizes, given)
        apart = all(all_apart(block, inputs) for block in plan.blocks if block.kind == "site")
        signature = (tuple(sorted(binding.sizes.items())), tuple(sorted(binding.missing)), apart, given)
        if signature not in self._runs:
            machine = Machine(plan, dict(binding.sizes), apart)
            self._runs[signature] = machine, Runner(machine, self.options, self._count)
        return self._runs[signature]

    def _count(self) -> None:
        self.traces += 1

    def batch(self, datas: Sequence[Mapping[str, Any]], *, seed: int = 0) -> Batch:
        """Many inferences of equal shapes in one call: a sequence of posteriors, in order.

        All data sets must have the same names and shapes (DataError names the first that differs). They run side by
        side until the last has converged; no trace of the sweeps is kept.
        """
        bindings = bind_many(self.model, datas, self.sizes)
        self._check_observed(bindings.first)
        with jax.enable_x64(True):
            machine, run = self._run(bindings.first, bindings.inputs)
            arrays = arrays_of(bindings)
            outputs = run.many(arrays, seed)
        return Batch(self, machine, bindings, arrays, outputs, run.settings)

    def predictor(
        self, plan: Graph, names: tuple[str, ...], observed: frozenset[str], sizes: dict[str, int]
    ) -> Callable[..., Any]:
        """The jitted forward pass to the named variables, for the given plate sizes."""
        key = (id(plan), names, observed, tuple(sorted(sizes.items())))
        if key not in self._predictors:
            graph = dataclasses.replace(plan, observed=observed)
            self._predictors[key] = jax.jit(lambda data, families: marginals(graph, names, dict(sizes), data, families))
        return self._predictors[key]

    def conditional(self, names: tuple[str, ...]) -> Program:
        """The program that is also given the variables in `names`; made once."""
        if names not in self._conditionals:
            options = dataclasses.replace(self.options, progress=False, restarts=1)
            self._conditionals[names] = Program(self.model, [*self.observed, *names], self.method, self.sizes, options)
        return self._conditionals[names]

    def explain(self) -> str:
        """What the compiler chose, factor by factor, and why."""
        from ..compiler.explain import explain_plan

        return explain_plan(self.plan)


class Batch(Sequence[Posterior]):
    """The posteriors of many data sets; each is made when it is asked for."""

    def __init__(
        self,
        program: Program,
        machine: Machine,
        bindings: Bindings,
        arrays: dict[str, Any],
        outputs: Any,
        settings: Any,
    ) -> None:
        self._program, self._machine, self._bindings = program, machine, bindings
        self._arrays, self._outputs, self._settings = arrays, outputs, settings

    def __len__(self) -> int:
        return self._bindings.number

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        arrays = {name: array[i] for name, array in self._arrays.items()}
        result = Result(jax.tree.map(lambda leaf: leaf[i], self._outputs), self._settings)
        return Posterior(self._machine, arrays, self._bindings.one(i), result, self._program)

    @property
    def log_evidence(self) -> np.ndarray:
        """The log evidence of every data set."""
        return self._outputs["evidence"]

    @property
    def converged(self) -> np.ndarray:
        """Whether each inference converged."""
        return self._outputs["code"] == controller.CONVERGED


def arrays_of(binding: Binding | Bindings) -> dict[str, np.ndarray]:
    """The arrays that enter the jitted program."""
    arrays = {**binding.inputs, **binding.observed}
    for name, missing in binding.missing.items():
        arrays[f"{name} present"] = np.asarray(~missing, float)
    return arrays


def _brief(array: np.ndarray) -> str:
    return np.array2string(array, threshold=6, edgeitems=2)


def key_of(seed: Any) -> np.ndarray:
    """The data of a random key; ModelError for anything but a whole number from 0 to 2^64 - 1."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number < 2**64:
        raise ModelError(
            f"seed= must be a whole number of at least 0; found {seed!r}. The same seed gives the same result."
        )
    return np.asarray([number >> 32, number & 0xFFFFFFFF], np.uint32)


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
        watcher = Progress.wanted(progress, sum(np.size(array) for array in data.values()))
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


class _Task:
    """One inference inside a trace."""

    def __init__(self, machine: Machine, settings: controller.Settings, data: Any, key: Any) -> None:
        self.machine, self.settings, self.data = machine, settings, data
        self.fixed = self.machine.prepare(data, key)
        self.state, self.starts = self.machine.start(self.fixed, data, key)

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
        settings = self.settings._replace(seeded=bool(self.starts))
        return controller.begin(x, rest, floored, parts, settings, 1.0)

    def advance(self, carry: controller.Carry, limit: Any) -> controller.Carry:
        _, _, join = self.split(self.state)

        def sweep(x, rest, step, first):
            result = self.machine.sweep(
                self.fixed, self.data, join(x, rest), step, self.settings.with_evidence, self.starts, first
            )
            y, rest, _ = self.split(result.state)
            return y, rest, result.residual, result.evidence, result.proper, result.floored

        settings = self.settings._replace(seeded=bool(self.starts))
        return controller.advance(sweep, carry, settings, limit)

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
