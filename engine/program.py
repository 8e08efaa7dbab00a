"""A compiled program: bound to a plan, jitted once for each set of shapes, called with data as often as one likes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..compiler.bind import Binding, bind
from ..compiler.bind_many import Bindings, bind_many
from ..compiler.expressions import Expr
from ..compiler.graph import Graph
from ..compiler.known import known_in
from ..compiler.language import Model
from ..compiler.meeting import check_apart
from ..compiler.plan import make_plan
from ..compiler.roles import below
from ..compiler.sparse import is_sparse
from ..factors.errors import DataError
from . import controller
from .evaluate import Scope, value
from .joint import joint_sizes
from .machine import Machine
from .options import Options
from .pages import paged
from .placed import spread
from .posterior import Posterior
from .predictions import prediction_rows, predictions
from .result import Result
from .rows import Rows, rows_of
from .runner import Runner
from .site_data import all_apart
from .stream import Part, given_arrays, given_beliefs


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
        self.fixed = self._expressions_of_data()

    def _plan(self, missing: frozenset[str], sizes: Mapping[str, int], given: frozenset[Part] = frozenset()) -> Graph:
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
            arrays = {**arrays_of(binding, machine.graph), **given_arrays(self.model, beliefs)}
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
        for name, expr in self.fixed.items():
            if any(getattr(node, "name", None) in binding.missing for node in below([expr])):
                continue  # nothing is fixed twice where a part is missing
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

    def _run(self, binding: Binding, inputs: Any, given: frozenset[Part] = frozenset()) -> tuple[Machine, Runner]:
        plan = self._plan(frozenset(binding.missing), binding.sizes, given)
        for block in plan.blocks:
            if block.kind == "slots":
                check_apart(block, {**binding.observed, **inputs})
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
            arrays = arrays_of(bindings, machine.graph)
            outputs = run.many(arrays, seed)
        return Batch(self, machine, bindings, arrays, outputs, run.settings)

    def predictor(
        self, plan: Graph, names: tuple[str, ...], observed: frozenset[str], sizes: dict[str, int]
    ) -> Callable[..., Any]:
        """The jitted forward pass to the named variables, for the given plate sizes."""
        key = (id(plan), names, observed, tuple(sorted(sizes.items())))
        if key not in self._predictors:
            graph = dataclasses.replace(plan, observed=observed)
            self._predictors[key] = jax.jit(lambda data, found: predictions(graph, names, dict(sizes), data, found))
        return self._predictors[key]

    def inputs_of(self, plan: Graph, names: tuple[str, ...], binding: Binding) -> dict[str, Any]:
        """The inputs as the predictor takes them."""
        rows = prediction_rows(plan, names, binding.sizes) if names else None
        return in_blocks(binding, plan, [] if rows is None else [rows])

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


def arrays_of(binding: Binding | Bindings, graph: Graph) -> dict[str, Any]:
    """The arrays that enter the jitted program."""
    arrays: dict[str, Any] = {**binding.inputs, **binding.observed}
    if isinstance(binding, Binding):
        rows = rows_of(graph, {**binding.sizes, **joint_sizes(graph)})
        arrays |= in_blocks(binding, graph, rows.values())
    for name, missing in binding.missing.items():
        if name not in graph.partly:
            arrays[f"{name} present"] = np.asarray(~missing, float)
            continue
        data = graph.partly[name]
        arrays |= {data.values.name: arrays.pop(name), data.given.name: ~missing}
        arrays[data.missing.name] = np.asarray(missing, float)
    return arrays


def in_blocks(binding: Binding, graph: Graph, cut: Iterable[Rows]) -> dict[str, Any]:
    """The inputs, with those that are sparse laid out in these blocks of rows."""
    found: dict[str, Any] = dict(binding.inputs)
    by_plate = {rows.plate: rows for rows in cut}
    for name, array in binding.inputs.items():
        if is_sparse(array):
            (plate,) = graph.model.inputs[name].plates
            found[name] = paged(name, array, by_plate.get(plate, Rows(plate, *array.shape[:1] * 2)))
    return found


def _brief(array: np.ndarray) -> str:
    return np.array2string(array, threshold=6, edgeitems=2)
