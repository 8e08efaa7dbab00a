"""The posteriors at the points of a grid, and what is asked of all of them at once.

They are runs of one program that differ in some data and in their outputs. What is asked of all is asked of one whose
data and outputs JAX maps over the points; where an answer depends on values it is asked point by point.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import jax
import numpy as np
from jaxtyping import Float, PyTree

from ...compiler.data.bind import Binding
from ...factors.families import Family
from ...factors.switches import double_precision
from ..data.missing_and_sparse import Arrays
from ..distributions.mixed_over_grid import OnGrid
from ..posterior import Posterior
from ..posteriors import Posteriors
from ..program import Program
from ..run.control.carry import Settings
from ..run.machine import Machine
from ..run.progress import Timing
from ..run.result import Outputs, Result
from ..support.compiled import compiled
from ..support.concrete import as_numpy

TOGETHER = 256  # points that are mapped over at a time
ALIKE = ("key", "code")  # outputs that are known while JAX maps: the key is common, the code that of the worst
Answer = TypeVar("Answer")  # a pytree


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """What an integration found: values of the scalars at the points, the outputs of the runs there, and their weights.

    Values and outputs are stacked; `families` are the marginals of the scalars, `error` estimates that of the
    logarithm of the evidence. `timing` is known where the mixture was read from a file.
    """

    values: Mapping[str, np.ndarray]
    outputs: Outputs
    families: Mapping[str, OnGrid | Family]
    weights: Float[np.ndarray, " K"]
    error: float
    log_evidence: float
    timing: Timing | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Runs:
    """The program that ran, with what its runs have in common."""

    program: Program
    machine: Machine
    arrays: Arrays
    binding: Binding
    settings: Settings

    def posterior(self, values: Mapping[str, Any], outputs: Outputs) -> Posterior:
        """The posterior of one run, given the values in which it differs."""
        binding = dataclasses.replace(self.binding, observed={**self.binding.observed, **values})
        result = Result(outputs, self.settings)
        return self.program.posterior(self.machine, {**self.arrays, **values}, binding, result)


class AtPoints(Posteriors):
    """The posterior at every point, made when it is asked for; `values` and `outputs` are stacked."""

    def __init__(self, runs: Runs, values: Mapping[str, np.ndarray], outputs: Outputs) -> None:
        super().__init__()
        self.runs, self.values, self.outputs = runs, dict(values), outputs

    def __len__(self) -> int:
        return len(self.outputs["code"])

    def _one(self, k: int) -> Posterior:
        return self.runs.posterior(*jax.tree.map(lambda leaf: np.asarray(leaf[k]), (self.values, self.outputs)))

    def every(self, ask: Callable[[Posterior], Answer]) -> Answer:
        """What `ask` gives, arrays in a container, for every point: stacked on a first axis."""
        with double_precision():
            try:
                found = [jax.tree.map(np.asarray, self._mapped(ask, part)) for part in self._parts]
                return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(self)], *found)
            except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError):
                return jax.tree.map(lambda *leaves: np.stack(leaves), *map(ask, self))

    def _mapped(self, ask: Callable[[Posterior], Answer], part: PyTree) -> PyTree:
        common = {name: part[1][name].max(axis=0) for name in ALIKE}

        def one(values: Any, outputs: Any) -> Answer:
            return as_numpy(ask(self.runs.posterior(values, cast(Outputs, {**outputs, **common}))))

        differing = {name: leaf for name, leaf in part[1].items() if name not in ALIKE}
        # Traced anew for every question, and run by NumPy where that is cheap: who asks is not known by structure.
        return compiled("at points", (object(),), jax.vmap(one))(part[0], differing)

    @cached_property
    def _parts(self) -> list[PyTree]:
        """Values and outputs of some points each, as many in every part: the last points are repeated."""
        number = -(-len(self) // TOGETHER)
        each = -(-len(self) // number)
        rows = np.minimum(np.arange(number * each), len(self) - 1).reshape(number, each)
        return [jax.tree.map(partial(np.take, indices=own, axis=0), (self.values, dict(self.outputs))) for own in rows]
