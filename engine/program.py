"""A compiled program: bound to a plan, jitted once for a set of shapes, called with data as often as one likes."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh

from ..compiler.algebra.known import known_in
from ..compiler.blocks.site import SiteBlock
from ..compiler.blocks.slots import SlotsBlock
from ..compiler.data.bind import Binding, plate_sizes
from ..compiler.data.bind_many import Bindings
from ..compiler.data.keys import STARTS
from ..compiler.data.labels import columns_of
from ..compiler.data.same_element import check_apart
from ..compiler.data.sparse_matrices import is_paged, is_rows, is_streamed
from ..compiler.explain import explain_plan
from ..compiler.graph import Plan
from ..compiler.language.balanced_sums import not_too_deep
from ..compiler.language.model import Model
from ..compiler.language.nodes import Expr
from ..compiler.passes.roles import below
from ..compiler.plan import make_plan
from ..compiler.structure import digest
from ..factors.calls import methods_checked
from ..factors.errors import DataError, ModelError, UnsupportedError
from ..factors.switches import double_precision
from .answers.next_prior import Part, given_arrays, given_beliefs
from .answers.predict_rows import Predictors
from .answers.start_from import start_from
from .blocks.site.site_data import all_apart
from .checks.flat_priors import of_flat_priors
from .data.centred import Form, check_centred, linear_forms
from .data.missing_and_sparse import arrays_of
from .data.rules_of_arguments import bind_checked, check_binding
from .options import Asked, Options, Request
from .posterior import Posterior, Prior, Start
from .run.bound_plan import Data
from .run.machine import Machine
from .run.padded import PaddedRunner, padded_plates, with_larger
from .run.result import Result
from .run.runner import Runner
from .support.asked_arguments import list_of_names
from .support.cache import Recent
from .support.warn import warn
from .values.evaluate import value
from .values.plated import spread
from .values.scope import Scope

if TYPE_CHECKING:
    from .batched import Batch
    from .cluster.own_rows import OwnRows
    from .cluster.workers import Workers
    from .files.checkpoint import Keeping
    from .mapped import Mapped

Runs: TypeAlias = Runner | PaddedRunner

PROGRAMS = 8  # that a model keeps, by what is observed and by options
GIVEN = 64  # plans that a program keeps of itself with more given
SHAPES = 16  # that a program keeps, each some megabytes of machine code
GIVEN_UP = 60  # sweeps of an inference at a point of a grid: all points wait for the last


class Bound(NamedTuple):
    """Checked data, and the rows of each process where none has all of them."""

    binding: Binding
    own: OwnRows | None = None

    @property
    def apart(self) -> bool:
        """Whether no process ever has all the data at once: rows of its own, or such as are streamed from files."""
        return self.own is not None or any(is_streamed(array) for array in self.binding.inputs.values())


class Ran(NamedTuple):
    """A run, and what its posterior is made of."""

    machine: Machine
    arrays: Data
    binding: Binding
    result: Result


def the_program(program: object) -> Program:
    """`program`, which must be one."""
    if not isinstance(program, Program):
        raise ModelError(
            f"A compiled program is asked for, cv.compile(model, observed=names); found {type(program).__name__}."
        )
    return program


@methods_checked("program")
class Program:
    """A model compiled for a set of observed names: `program(data)` infers, and recompiles only for new shapes.

    Not for a few rows more, where these meet in sums alone: `explain` says which plates are compiled for each size.

    `model`, the names `observed`, `method` and the plate `sizes` are those of `cv.compile`, `options` the others.
    `program.traces` counts compilations. `program.plan` is the plan, which `print(program.explain())` tells. Raises
    DataError for a name that the model does not have, ModelError and UnsupportedError as `infer`.
    """

    @not_too_deep()
    def __init__(
        self,
        model: Model,
        observed: Sequence[str],
        method: Asked = "auto",
        sizes: Mapping[str, int] | None = None,
        options: Options | None = None,
    ) -> None:
        known = {**model.randoms, **model.lets}
        observed = list_of_names(observed, "observed=")
        unknown = [name for name in observed if name not in known and name not in model.inputs]
        if unknown:
            raise DataError(
                f"observed= names {unknown[0]!r}, which the model does not have. It has: "
                f"{', '.join([*model.inputs, *known])}."
            )
        self.model, self.method, self.sizes = model, method, plate_sizes(sizes)
        self.observed = frozenset(name for name in observed if name in known)
        self.options = options or Options()
        self.request = Request(model, self.observed, method, self.sizes, self.options)
        self.traces = 0
        self._planning = 0.0  # seconds since the last run
        self._plans: Recent[Plan] = Recent(SHAPES)
        self._plans_given: Recent[Plan] = Recent(GIVEN)
        self._runs: Recent[tuple[Machine, Runs]] = Recent(SHAPES)
        self._padded: Recent[Runner] = Recent(SHAPES)
        self._slots: dict[tuple[str, tuple[int, ...]], Any] = {}  # that streamed inputs are read by
        self.predictors: Predictors = Recent(SHAPES)
        self._conditionals: Recent[Program] = Recent(PROGRAMS)
        self.plan = self._plan(frozenset(), self._sizes_so_far())
        self.fixed = self.expressions_of_data(self.plan)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied by what it is made of; what was compiled stays with this one."""
        from .mapped import recipe_of

        return Program, tuple(recipe_of(self.request))

    def _plan(self, missing: frozenset[str], sizes: Mapping[str, int], given: frozenset[Part] = frozenset()) -> Plan:
        key = missing, given, tuple(sorted(sizes.items()))
        accuracy = self.options.of_plan

        def make() -> Plan:
            began = time.monotonic()
            updates = self.options.updates
            plan = make_plan(self.model, self.observed, missing, self.method, given, sizes, accuracy, updates)
            self._planning += time.monotonic() - began
            return plan

        return self._plans.get(key, make)

    def plan_given(self, names: tuple[str, ...], binding: Binding) -> Plan:
        """The plan for data as in `binding`, where the variables called `names` are observed too; no program is made.

        Raises ModelError and UnsupportedError as `infer`.
        """
        if not names:
            return self._plan(frozenset(binding.missing), binding.sizes)
        observed, missing, sizes = self.observed | set(names), frozenset(binding.missing), binding.sizes
        make = partial(
            make_plan, self.model, observed, missing, self.method, sizes=sizes, accuracy=self.options.of_plan
        )
        return self._plans_given.get((observed, missing, tuple(sorted(sizes.items()))), make)

    def _sizes_so_far(self) -> dict[str, int]:
        """The sizes of plates that are known before any data."""
        return {**{name: size for name, (size, _) in self.model.sizes.items()}, **self.sizes}

    @not_too_deep()
    def __call__(
        self,
        data: Mapping[str, Any],
        *,
        seed: int = 0,
        prior: Prior | None = None,
        start: Start | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = 60.0,
    ) -> Posterior:
        """Infers the posterior given `data`: values by name for all inputs and the observed variables.

        `prior` is what an earlier posterior knows, `start` where the run begins, `checkpoint` the file that it is
        written to `every` so many seconds (see `infer`). Returns a `Posterior`, once it is computed. Raises DataError,
        before anything is compiled, for data that do not fit the model, and UnsupportedError for a run that met no
        sound state. Warns (`CavityWarning`) of a run that did not converge. The same seed gives the same result.
        """
        with of_flat_priors(self.model, self.observed, prior) as proper:
            posterior = proper(
                self.run(
                    data, seed=seed, prior=prior, start=start, keeping=self.keeping_in(checkpoint, every, data, seed)
                )
            )
        if not posterior.converged:
            warn(posterior.diagnosis)
        return posterior

    def run(
        self,
        data: Mapping[str, Any],
        *,
        seed: int = 0,
        prior: Prior | None = None,
        start: Start | None = None,
        keeping: Keeping | None = None,
        bound: Bound | None = None,
    ) -> Posterior:
        """As a call, without the warning: for a caller who looks at `posterior.converged`.

        `data`, `seed`, `prior` and `start` are those of a call, `keeping` the file that the run is written to, and
        `bound` is what the data were bound to before. Returns a `Posterior`. Errors as of a call.
        """
        ran = self._ran(data, seed, prior, start, keeping, bound)
        return self.posterior(ran.machine, ran.arrays, ran.binding, ran.result)

    def result_of(self, data: Mapping[str, Any], *, seed: int = 0, keeping: Keeping | None = None) -> Result:
        """What a run leaves, as another process can make a posterior of it: see `posterior_of`.

        `data` and `seed` are those of a call, `keeping` the file that the run is written to. Errors as of a call.
        """
        return self._ran(data, seed, None, None, keeping).result

    def posterior_of(self, data: Mapping[str, Any], result: Result) -> Posterior:
        """The posterior of a run that was made elsewhere, with these `data`, of which it left `result`.

        Raises UnsupportedError where the run met no sound state.
        """
        binding = self.bind(data)
        with double_precision():
            machine, _ = self.machine_and_runner(binding, binding.inputs)
        with of_flat_priors(self.model, self.observed) as proper:
            result.demand_sound(self.model.name)
            return proper(self.posterior(machine, arrays_of(binding, machine.graph), binding, result))

    def _ran(
        self,
        data: Mapping[str, Any],
        seed: int,
        prior: Prior | None,
        start: Start | None,
        keeping: Keeping | None,
        bound: Bound | None = None,
    ) -> Ran:
        """One run, and what its posterior is made of."""
        binding, own = self.bound(data) if bound is None else bound
        with double_precision():
            beliefs = given_beliefs(self.model, binding, prior)
            machine, run = self.machine_and_runner(binding, binding.inputs, frozenset(beliefs), own)
            if keeping is not None and isinstance(run, PaddedRunner):  # a file has the rows of the data
                run = Runner(machine, self.options, self._count)
            arrays = {**arrays_of(binding, machine.graph), **given_arrays(self.model, beliefs)}
            given, remark = ({}, "") if start is None else self._started(machine, binding, start)
            arrays_of_run = {**arrays, **given, **self._streams(arrays)}
            kept = {} if keeping is None else {"keeping": keeping}
            result = run(arrays_of_run, seed, self.options.progress, self.planned(), **kept)
            if machine.streamed:
                from .data.row_sources import check_streams

                check_streams(binding.inputs)
            result = dataclasses.replace(result, remark=" ".join(filter(None, (result.remark, remark))))
        result.demand_sound(self.model.name)
        return Ran(machine, arrays, binding, result)

    def keeping_in(
        self, checkpoint: str | os.PathLike[str] | None, every: float, data: Mapping[str, Any], seed: int
    ) -> Keeping | None:
        """The file that a run is written to, for `checkpoint` and `every` of a call with these `data` and `seed`.

        Raises ModelError or DataError for a path that none can be at.
        """
        if checkpoint is None:
            return None
        from .files.checkpoint import keeping  # few runs are kept in files

        return keeping(checkpoint, every, self.request, data, seed)

    def _streams(self, arrays: Data) -> Data:
        """What is read from files, by way of a slot: a program for one file serves others of as many rows."""
        if not any(hasattr(array, "source") for array in arrays.values()):
            return {}
        from .values.streamed_rows import Slot, StreamedRows

        found = {}
        for name, array in arrays.items():
            if isinstance(array, StreamedRows):
                slot = self._slots.setdefault((name, array.source.shape), Slot(array.source.shape))
                slot.source = array.source
                found[name] = StreamedRows(array.first, slot)
        return found

    def _started(self, machine: Machine, binding: Binding, start: Start) -> tuple[Data, str]:
        """The arrays that say where a run begins, and a sentence on what does not begin there."""
        if self.options.starts > 1:
            raise ModelError(
                f"start= gives the beliefs that one run begins with, and restarts={self.options.starts} asks for "
                "several random starts. Leave one of them out."
            )
        given, remark = start_from(machine, binding, start)
        return {STARTS: given}, remark

    def planned(self) -> float:
        """The seconds that planning took since this was last asked."""
        planning, self._planning = self._planning, 0.0
        return planning

    def posterior(self, machine: Machine, arrays: Data, binding: Binding, result: Result) -> Posterior:
        """The posterior of one run of the program, from what ran and what it left.

        `machine` and `arrays` are what the run was of, `binding` its data, and `result` its outputs.
        """
        return Posterior(self.request, machine, arrays, binding, result, self.predictors)

    def bind(self, data: Mapping[str, Any]) -> Binding:
        """Checked data: the names given must be those that the program was compiled for.

        Raises DataError for data that do not fit the model, that contradict each other, or that are so far from zero
        beside an intercept that rounding would be the answer.
        """
        binding = bind_checked(self.model, arrays_given(data, self.options.mesh), self.sizes)
        self.check_observed(binding)
        self._check_all(binding)
        return binding

    def check(self, binding: Binding) -> None:
        """Raises DataError for the values of a `binding` that do not fit."""
        check_binding(self.model, binding)
        self._check_all(binding)

    def _check_all(self, binding: Binding) -> None:
        self._check_known(binding)
        self._check_centred(binding)

    def _check_centred(self, binding: Binding) -> None:
        """Data far from zero beside an intercept are refused, or warned of."""
        given = {name: array for name, array in binding.observed.items() if name not in binding.missing}
        check_centred(self._linear_forms, {**binding.inputs, **given}, binding.sizes)

    @cached_property
    def _linear_forms(self) -> list[Form]:
        return linear_forms(self.plan)

    def _check_known(self, binding: Binding) -> None:
        """What the data fix twice, by observing an expression and all that it is made of, must agree."""
        for name, expr in self.fixed.items():
            if any(getattr(node, "name", None) in binding.missing for node in below([expr])):
                continue  # nothing is fixed twice where a part is missing
            observed = {key: array for key, array in binding.observed.items() if key != name}
            with double_precision():
                placed = value(expr, Scope(binding.sizes, {**binding.inputs, **observed}, {}))
                found = np.asarray(spread(placed, expr.plates, binding.sizes), float)
            wanted = np.asarray(binding.observed.get(name, True), float)
            if not np.allclose(found, wanted, rtol=1e-9, atol=1e-12):
                raise DataError(
                    f"The data contradict '{name}' = {expr}: its parts are all given and make it {_brief(found)}, "
                    f"but it is {'observed as ' if name in self.observed else 'constrained to be '}{_brief(wanted)}. "
                    "Correct the data, or leave one of them out."
                )

    def expressions_of_data(self, plan: Plan) -> dict[str, Expr]:
        """Observed lets and constraints whose parts are all observed in a plan of this program."""
        known = known_in(plan)
        lets = {name: node.expression for name, node in self.model.lets.items() if name in self.observed}
        return {name: expr for name, expr in {**lets, **self.model.constraints}.items() if known(expr)}

    def check_observed(self, binding: Binding) -> None:
        """Raises DataError where `binding` observes other names than the program was compiled for."""
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

    def bound(self, data: Mapping[str, Any]) -> Bound:
        """Checked data with the rows of each process, where none has all of them; `data` as of a call.

        Processes that share a mesh ask each other, so all of them must come here. Errors as of `bind`, and DataError
        where their data do not fit each other.
        """
        binding, mesh = self.bind(data), self.options.mesh
        if mesh is None or jax.process_count() == 1:
            return Bound(binding)
        from .cluster.own_rows import own_rows

        marked = any(is_rows(value) for value in columns_of(self.model, data).values())
        with double_precision():
            own = own_rows(binding, self._plan(frozenset(binding.missing), binding.sizes), mesh.size, marked)
        return Bound(binding if own is None else own.binding, own)

    def machine_and_runner(
        self,
        binding: Binding,
        inputs: Mapping[str, Any],
        given: frozenset[Part] = frozenset(),
        own: OwnRows | None = None,
    ) -> tuple[Machine, Runs]:
        """What runs data of these shapes, made at most once.

        `binding` has the shapes, `inputs` the input arrays (of many data sets at once, stacked), `given` are the
        parts with beliefs of earlier data, and `own` the rows of each process, where each has some of them.
        """
        sizes = binding.sizes if own is None else own.sizes()
        plan = self._plan(frozenset(binding.missing), sizes, given)
        for block in plan.blocks:
            if isinstance(block, SlotsBlock):
                check_apart(block, {**binding.observed, **inputs}, binding.sizes)
        apart = all(all_apart(block, inputs) for block in plan.blocks if isinstance(block, SiteBlock))
        sparse = frozenset(name for name, array in inputs.items() if is_paged(array))
        shapes = tuple(sorted(binding.sizes.items())), tuple(sorted(sizes.items()))
        signature = (shapes, tuple(sorted(binding.missing)), apart, given, sparse)

        def make() -> tuple[Machine, Runs]:
            streamed = frozenset(name for name in sparse if is_streamed(inputs[name]))
            machine = Machine(plan, dict(binding.sizes), apart, streamed=streamed)
            if self.options.mesh is not None:
                return machine, self._on_devices(machine, self.options.mesh, {**inputs, **binding.observed}, own)
            if plates := padded_plates(plan, binding.sizes, self.sizes, sparse):
                machine = with_larger(machine, plates)
            return machine, self._shared(machine) or Runner(machine, self.options, self._count)

        return self._runs.get(signature, make)

    def _shared(self, machine: Machine) -> PaddedRunner | None:
        """What runs data of about as many rows too; None where no plate is padded, or plans cannot be compared."""
        larger = machine.larger
        key = None if larger is None else digest(larger)
        if larger is None or key is None:
            return None
        return PaddedRunner(self._padded.get(key, lambda: Runner(larger, self.options, self._count)), machine)

    def _on_devices(self, machine: Machine, mesh: Mesh, data: Mapping[str, Any], own: OwnRows | None) -> Runner:
        """What runs data of these shapes on the devices of a mesh."""
        from .run.places.on_devices import (  # few programs have several devices
            OnDevices,
            dealt_rows,
            messages_of_own_rows,
        )

        sizes = machine.sizes if own is None else own.sizes()
        dealt = dealt_rows(mesh, machine.graph, sizes, data)
        place = OnDevices(dealt, own, partial(messages_of_own_rows, machine, own))
        return Runner(dataclasses.replace(machine, sizes=sizes, dealt=dealt), self.options, self._count, place)

    def _count(self) -> None:
        self.traces += 1

    def batch(self, datas: Sequence[Mapping[str, Any]], *, seed: int = 0) -> Batch:
        """Many inferences of equal shapes in one call: a sequence of posteriors, in order.

        `datas` holds the data sets, each as of a call; `seed` decides all random choices. All must have the same names
        and shapes (DataError names the first that differs). They run side by side until the last has converged, on a
        mesh some of them on each device; no trace of the sweeps is kept. Warns of those that did not converge; one that
        met no sound state has evidence minus infinity, and raises UnsupportedError when it is asked for.
        """
        from .batched import batch_of

        return batch_of(self, datas, seed)

    def runner_of_many(self, bindings: Bindings) -> tuple[Machine, Runs]:
        """What runs stacked data sets: on a mesh each device has some of them.

        `bindings` are the data sets. Raises UnsupportedError for a mesh of several processes.
        """
        mesh = self.options.mesh
        if mesh is None:
            return self.machine_and_runner(bindings.first, bindings.inputs)
        if any(device.process_index != jax.process_index() for device in mesh.devices.flat):
            raise UnsupportedError(
                "batch, of a program for a mesh of several processes: no data set needs another. Compile without "
                "mesh=, or for a mesh of jax.local_devices(), and have each process infer data sets of its own."
            )
        from .run.places.side_by_side import SideBySide

        machine, _ = self._alone.machine_and_runner(bindings.first, bindings.inputs)
        key = id(machine), "side by side"
        return self._runs.get(key, lambda: (machine, Runner(machine, self.options, self._count, SideBySide(mesh))))

    @cached_property
    def _alone(self) -> Program:
        """The same program on one device."""
        return self._with(mesh=None)

    def _with(self, more: Sequence[str] = (), **options: Any) -> Program:
        """The same program given `more` variables, with other options."""
        changed = dataclasses.replace(self.options, **options)
        return Program(self.model, [*self.observed, *more], self.method, self.sizes, changed)

    def map(
        self,
        datasets: Sequence[Mapping[str, Any]],
        *,
        workers: Workers = None,
        seed: int = 0,
        retries: int = 3,
        every: float = 60.0,
    ) -> Mapped:
        """Inferences of many data sets, of any shapes, by workers: a sequence of posteriors, in order.

        `datasets` are each as of a call, and `seed` decides the random choices of each. `workers` is a number of
        processes of this machine (by default one for each core), or a pool, such as `cv.workers.ray(8)`. Answers do
        not depend on it. A run whose worker is lost goes on from its checkpoint, written `every` so many seconds, up to
        `retries` times. Many small data sets of equal shapes are faster in one program: `batch`. Returns a sequence of
        `Posterior`. Raises DataError, with the number of the data set, before any worker is started; LostError for one
        that was lost too often. Warns of those that did not converge.
        """
        from .mapped import over_datasets

        return over_datasets(self, _result_of, datasets, seed, workers, retries, every)

    def conditional(self, names: tuple[str, ...]) -> Program:
        """The program that is also given the variables called `names`, as an integration needs it; made once."""
        most = min(self.options.max_iterations, GIVEN_UP)
        updates = dataclasses.replace(self.options.updates, factors=(), variables=())  # there are others
        options = {"progress": False, "restarts": 1, "max_iterations": most, "schedule": updates}
        return self._conditionals.get(names, lambda: self._with(names, **options))

    def started(self, restarts: int) -> Program:
        """The same program with as many `restarts`: returns a `Program`, made once."""
        if restarts == self.options.starts:
            return self
        return self._conditionals.get((restarts,), lambda: self._with(restarts=restarts))

    def _repr_html_(self) -> str:
        """What it is given, its plan and its model, in a notebook."""
        from .html.several import html_of_program

        return html_of_program(self.model, self.observed, self.plan, self.explain())

    def explain(self) -> str:
        """What the compiler chose, factor by factor, and why."""
        return explain_plan(self.plan)


def arrays_given(data: Mapping[str, Any], mesh: Mesh | None) -> Mapping[str, Any]:
    """Data as arrays, or stretches of rows, for what `cv.rows` gave."""
    if not isinstance(data, Mapping) or not any(is_rows(value) for value in data.values()):
        return data
    from .data.row_sources import loaded

    return loaded(data, mesh)


def _brief(array: np.ndarray) -> str:
    return np.array2string(array, threshold=6, edgeitems=2)


_MADE: Recent[Program] = Recent(4)  # programs that this worker has, by their recipe as bytes


def _result_of(recipe: bytes, data: Mapping[str, Any], seed: int, checkpoint: str, every: float) -> Result:
    """What a worker does: one run, from the checkpoint of a worker before it where there is one."""
    from ..compiler.portable import unpacked
    from .files.checkpoint import keeping, read

    program = _MADE.get(recipe, lambda: Program(*unpacked(recipe)))
    found = read(checkpoint) if os.path.exists(checkpoint) else None
    kept = keeping(checkpoint, every, program.request, data, seed, found)
    return program.result_of(data, seed=seed, keeping=kept)
