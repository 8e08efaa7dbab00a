"""What one run leaves: marginals by name, evidence by factor, and how the run went."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...compiler.algebra.known import latent_names
from ...compiler.data.bind import Binding
from ...compiler.explain import explain_plan
from ...compiler.language.nodes import Let, Random
from ...factors.calls import methods_checked
from ...factors.families import ExponentialFamily, Family, Point
from ...factors.switches import double_precision
from ..data.missing_and_sparse import Arrays
from ..distributions.cases import Projected
from ..distributions.of_pairs import pair_members
from ..distributions.partly_observed import Completed
from ..expressions.after import Run
from ..expressions.cavities import Cavities
from ..expressions.marginal_of import ExpressionMarginal, Shape, check_finite, marginal, remark_on
from ..expressions.own_noise import standard, written_out
from ..options import Request
from ..run.diagnosis import diagnosis
from ..run.fixed_points import SAME, Restart, Restarts
from ..run.machine import Machine
from ..run.progress import Timing
from ..run.result import Result
from ..run.trace import Trace
from ..support import asked_families as asked
from ..support.asked_arguments import known_name
from ..support.concrete import as_numpy
from ..values.first_beliefs import family_of
from ..values.joint_beliefs import member_families
from ..values.scope import Scope
from . import exact_counts
from .inferred import Belief, Inferred
from .integrated_out import recover
from .marginal import Marginal
from .predict_rows import Predictors, predictions
from .predictive import forward

CODES = ("converged", "slow", "oscillating", "diverged", "running", "contradiction")  # by number, from best to worst


@methods_checked("posterior")
class Outcome(Inferred):
    """What one run of a program leaves, as checks, files and predictions read it.

    `result` holds the outputs of the run, and `predictors` the forward passes that were compiled for predictions: they
    are the program's, which an outcome does not know.
    """

    def __init__(
        self,
        request: Request,
        machine: Machine,
        arrays: Arrays,
        binding: Binding,
        result: Result,
        predictors: Predictors,
    ) -> None:
        super().__init__(request, machine, arrays, binding)
        self.result, self.predictors = result, predictors
        self._answers: dict[str, ExpressionMarginal] = {}

    # how the run went -------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence."""
        return float(self.result.number("evidence"))

    @property
    def evidence(self) -> dict[str, float]:
        """log evidence by factor: the parts sum to the total."""
        return {name: float(np.asarray(value)) for name, value in self.result.outputs["parts"].items()}

    @property
    def code(self) -> str:
        """converged, slow, oscillating, diverged or contradiction."""
        return CODES[int(self.result.number("code"))]

    @property
    def iterations(self) -> int:
        """Number of sweeps."""
        return int(self.result.number("iteration"))

    @property
    def trace(self) -> Trace:
        """Evidence and residual by sweep: of the first 131,072, and none for a member of a batch."""
        evidence, residual = (np.asarray(self.result.outputs[name]) for name in ("evidences", "residuals"))
        count = min(self.iterations, len(residual)) if len(residual) > 1 or self.iterations == 1 else 0
        return Trace(evidence[:count], residual[:count])

    @property
    def restarts(self) -> Restarts:
        """The distinct fixed points that the starts met, best first; as an array the log evidence of every start.

        Each is a `Restart`: `log_evidence`, `converged`, `sweeps`, and how many `starts` met it, where evidence agrees
        and the natural parameters do but for the order of elements. Of a member of a batch the best alone is known.
        """
        if self.result.restarts is not None:
            return self.result.restarts
        evidence = np.asarray(self.result.outputs["all_evidence"])
        if modes := self.result.modes:
            return Restarts(tuple(mode.record for mode in modes), evidence)
        met = int(np.sum(np.abs(evidence - self.log_evidence) <= SAME)) if self.converged else 1
        return Restarts((Restart(self.log_evidence, self.converged, self.iterations, max(met, 1)),), evidence)

    @property
    def floored(self) -> dict[str, int]:
        """How often a cavity would have been improper and was floored, by factor."""
        counts = self.result.outputs["floored"]
        return {block.name: int(np.asarray(counts[number])) for number, block in self._machine.ep_blocks.items()}

    @property
    def diagnosis(self) -> str:
        """One sentence on how the run ended and what to do."""
        remark = self.result.remark
        return diagnosis(self.result, self.code) + (f" {remark}" if remark else "")

    def explain(self) -> str:
        """What the compiler chose, factor by factor, and why, with the evidence and the counts of this run."""
        timing = "" if self.timing is None else f"\n{self.timing}"
        return explain_plan(self.graph, self.evidence, self.floored) + "\n" + self.diagnosis + timing

    @property
    def timing(self) -> Timing | None:
        """Who ran the sweeps, and the seconds of each stage; None for one of a batch, or read from a file."""
        return self.result.timing

    # marginals --------------------------------------------------------------------------------------------------------

    def _marginal(self, name: str) -> Marginal:
        note, shape = self._remarks(name)
        return Marginal(self._family(name), name, note, shape)

    def __iter__(self) -> Iterator[str]:
        model = self.model
        return iter(
            [
                *model.randoms,
                *(
                    name
                    for name, node in model.lets.items()
                    if node.domain.kind in ("real", "vector", "boolean", "category", "simplex")
                ),
            ]
        )

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _family(self, name: str) -> Family:
        named = {**self.model.randoms, **self.model.lets}
        if name not in named:
            raise KeyError(f"The model has no variable {name!r}. It has: {', '.join(named)}.")
        with double_precision():
            if name in self.binding.observed and name not in self.families:
                return self._observed(named[name])
            if name in self.families:
                return self._shown(name)
            graph, data = self.graph, self._arrays
            node, found = named[name], None
            if isinstance(node, Let):
                found = self._together(node).family
                written, families = self._written(node)
                if found is None and written is not node:
                    found = forward(written, self._run(families).scope, families)
            if found is None:
                sizes = self._machine.sizes
                call = self._machine.function("forward", (name,), partial(predictions, graph, (name,), sizes))
                found = call(data, self.families)[name]
            if isinstance(node, Let):
                together = self._together(node)
                if together.shape is None:
                    check_finite(node, found)
                return found if together.exact else Projected(found)
            return found

    def _shown(self, name: str) -> Family:
        """The marginal of a variable with a belief: the belief itself but for counts (see `exact_counts.py`)."""
        belief = self.families[name]
        more = exact_counts.says_more(self.graph, name)
        return exact_counts.shown(name, belief, self._run(self.families)) if more else belief

    def _remarks(self, name: str) -> tuple[str, Shape | None]:
        """What stands between a marginal and the exact one, and what makes the distribution of an expression."""
        if name in self.model.randoms and name in self.graph.forward:
            return remark_on(self.graph, self.model.randoms[name]), None
        node = self.model.lets.get(name)
        if node is None or name in self.binding.observed or name in self.families:
            return "", None
        with double_precision():
            found = self._together(node)
            return found.note, found.shape

    def _together(self, node: Let) -> ExpressionMarginal:
        """The marginal of an expression from the joint distribution of its variables, where that says more."""
        if node.name not in self._answers:
            written, families = self._written(node)
            self._answers[node.name] = marginal(written, self._run(families))
        return self._answers[node.name]

    def _written(self, node: Let) -> tuple[Let, dict[str, Belief]]:
        """The expression with predicted variables that share a parent written out, and the families of its numbers."""
        expression, noises = written_out(self.graph, node.expression)
        written = dataclasses.replace(node, expression=expression) if noises else node
        families: dict[str, Any] = {**self.families, **standard(noises, self._machine.sizes)}
        for name in latent_names(self.graph, [written.expression]):
            if name in families and name not in self.families:
                continue
            own = self.graph.latent.get(name)
            if name not in self.binding.observed and (
                name not in families or (own is not None and own.domain.is_count)
            ):
                families[name] = self[name].family
        return written, families

    def _run(self, families: Mapping[str, Belief]) -> Run:
        return Run(self._machine, self.result.outputs, self._arrays, families, self._cavities)

    @cached_property
    def _cavities(self) -> Cavities:
        return Cavities(self._machine, self.result.outputs, self._arrays)

    @cached_property
    def _latent(self) -> dict[str, ExponentialFamily]:
        """The beliefs as families of NumPy arrays."""
        graph = self.graph
        beliefs = self.result.outputs["beliefs"]
        found: dict[str, Any] = {
            name: family_of(graph.latent[name]).from_naturals(as_numpy(tuple(naturals)))
            for name, naturals in beliefs.items()
        }
        with double_precision():
            for joint in graph.joints:
                plates = {plate.name for member in joint.members for plate in member.plates}
                sizes = {name: self._machine.sizes[name] for name in sorted(plates)}
                own = partial(member_families, joint, sizes=sizes)
                members = self._machine.function("members", (joint,), own, (joint, sizes))(found[joint.variable.name])
                found |= as_numpy(members)
            for pair in graph.pairs:
                own = partial(pair_members, pair)
                members = self._machine.function("pair members", (pair,), own)(found[pair.variable.name])
                found |= as_numpy(members)
        return found

    @cached_property
    def families(self) -> dict[str, Belief]:
        """The families of all that has a belief, by name: variables, joint ones, and what was integrated out."""
        found: dict[str, Belief] = {**self._latent, **self._absorbed}
        observed, missing = self.binding.observed, self.binding.missing
        for name in self.graph.partly:
            found[name] = Completed(observed[name], missing[name], found[name])
        return found

    @property
    def _scope(self) -> Scope:
        moments = {name: asked.moments(family) for name, family in self.families.items()}
        return Scope(self._machine.sizes, self._arrays, moments, joints=self.graph.joints, pairs=self.graph.pairs)

    def _observed(self, node: Random | Let) -> Family:
        """A point, with the predictive marginal in the place of missing entries."""
        data = self.binding.observed[node.name]
        missing = self.binding.missing.get(node.name)
        if missing is None:
            return Point(data)
        if isinstance(node, Let) and (found := self._together(node).family) is not None:
            return Completed(data, missing, found)
        hidden = {name: array for name, array in self._arrays.items() if name != node.name}
        scope = self._scope
        predicted = forward(node, dataclasses.replace(scope, data=hidden), self.families)
        return Completed(data, missing, predicted)

    @cached_property
    def _absorbed(self) -> dict[str, ExponentialFamily]:
        """Marginals of variables that were integrated out inside a factor."""
        found: dict[str, ExponentialFamily] = {}
        with double_precision():
            for number, block in self._machine.ep_blocks.items():
                if block.absorbed:
                    found |= recover(self._machine, self.result.outputs, self._arrays, number)
        return found

    def naturals_of(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of the belief called `name`: of a variable, or of a joint belief of the plan.

        Returns them in the order of the sufficient statistics of its family, each shaped plates + event axes. Raises
        KeyError for a name without a belief of its own.
        """
        beliefs = self.result.outputs["beliefs"]
        return as_numpy(tuple(beliefs[known_name(name, beliefs)]))
