"""Many data sets of equal shapes in one program, side by side: on one device, or dealt to those of a mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Bool, Float

from ..compiler.data.bind import Binding
from ..compiler.data.bind_many import Bindings, bind_many
from ..factors.calls import methods_checked
from ..factors.errors import DataError
from ..factors.switches import double_precision
from .checks.flat_priors import of_flat_priors
from .data.missing_and_sparse import arrays_of
from .options import Request
from .posterior import Posterior
from .posteriors import Posteriors
from .run.bound_plan import Data
from .run.control.carry import Settings
from .run.control.result_codes import CONVERGED
from .run.machine import Machine
from .run.result import Outputs, Result
from .support.warn import warn


class Runs(Protocol):
    """What runs many data sets."""

    @property
    def settings(self) -> Settings:
        """Of the sweeps."""
        ...

    def many(self, data: Data, seed: object) -> Outputs:
        """Inferences with stacked data: the outputs, stacked."""
        ...


class Batches(Protocol):
    """A program, as far as a batch needs it."""

    request: Request

    def check(self, binding: Binding) -> None:
        """Raises DataError for data that the program was not compiled for."""
        ...

    def check_observed(self, binding: Any) -> None:
        """Raises DataError for other names than those of the program."""
        ...

    def runner_of_many(self, bindings: Bindings) -> tuple[Machine, Runs]:
        """What runs stacked data of these shapes."""
        ...

    def posterior(self, machine: Machine, arrays: Data, binding: Binding, result: Result) -> Posterior:
        """The posterior of one run."""
        ...


def batch_of(program: Batches, datas: Sequence[Mapping[str, Any]], seed: int) -> Batch:
    """See `Program.batch`."""
    request = program.request
    bindings = bind_many(request.model, datas, request.sizes)
    program.check_observed(bindings.first)
    for i in range(bindings.number):
        try:
            program.check(bindings.one(i))
        except DataError as problem:
            raise DataError(f"Data set {i}: {problem}") from None
    with double_precision():
        machine, run = program.runner_of_many(bindings)
        arrays = arrays_of(bindings, machine.graph)
        outputs = _outputs(run, arrays, bindings.number, request.options.mesh, seed)
    batch = Batch(program, machine, bindings, arrays, outputs, run.settings)
    if (left := np.flatnonzero(~batch.converged)).size:
        warn(
            f"{left.size} of {len(batch)} inferences did not converge, the first at position {left[0]}: see "
            "`batch.converged`, and `diagnosis` of each."
        )
    return batch


def _outputs(run: Runs, arrays: Data, number: int, mesh: Mesh | None, seed: int) -> Outputs:
    """The outputs of all; on a mesh the last data set is repeated until every device has as many."""
    more = 0 if mesh is None else -number % mesh.size
    if not more:
        return run.many(arrays, seed)
    rows = np.minimum(np.arange(number + more), number - 1)
    found = run.many({name: np.take(array, rows, axis=0) for name, array in arrays.items()}, seed)
    return jax.tree.map(lambda leaf: leaf[:number], found)


@methods_checked("batch")
class Batch(Posteriors):
    """The posteriors of many data sets; each is made when it is asked for."""

    def __init__(
        self,
        program: Batches,
        machine: Machine,
        bindings: Bindings,
        arrays: Data,
        outputs: Outputs,
        settings: Settings,
    ) -> None:
        super().__init__()
        self._program, self._machine, self._bindings = program, machine, bindings
        self._arrays, self._outputs, self._settings = arrays, outputs, settings

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by the program and what its runs left; nothing is inferred again."""
        arrays, outputs = (jax.tree.map(np.asarray, tree) for tree in (self._arrays, self._outputs))
        return _again, (self._program, self._bindings, arrays, outputs)

    def __len__(self) -> int:
        return self._bindings.number

    def _one(self, k: int) -> Posterior:
        arrays = {name: array[k] for name, array in self._arrays.items()}
        result = Result(jax.tree.map(lambda leaf: leaf[k], self._outputs), self._settings)
        request = self._program.request
        with of_flat_priors(request.model, request.observed) as proper:
            result.demand_sound(request.model.name)
            return proper(self._program.posterior(self._machine, arrays, self._bindings.one(k), result))

    @property
    def log_evidence(self) -> Float[np.ndarray, " batch"]:
        """The log evidence of every data set; minus infinity where a run met no sound state."""
        return np.asarray(self._outputs["evidence"])

    @property
    def converged(self) -> Bool[np.ndarray, " batch"]:
        """Whether each inference converged."""
        return np.asarray(self._outputs["code"] == CONVERGED)


def _again(program: Batches, bindings: Bindings, arrays: Data, outputs: Outputs) -> Batch:
    """The batch that was pickled; the program only plans."""
    with double_precision():
        machine, run = program.runner_of_many(bindings)
    return Batch(program, machine, bindings, arrays, outputs, run.settings)
