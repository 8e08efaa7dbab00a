"""The posterior: marginals by name, evidence by factor, and how the run went."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..compiler.bind import Binding, bind
from ..compiler.expressions import Let, Random
from ..compiler.graph import Graph
from ..compiler.language import Model
from ..factors.errors import DataError
from ..factors.families import Family, Point
from . import stream
from .beliefs import family_of
from .completed import Completed
from .evaluate import Scope
from .forward import forward
from .joint import member_families
from .machine import Machine
from .marginal import Marginal
from .predictions import predictions
from .processes import anchors
from .recover import recover
from .result import Result, diagnosis
from .stream import Beliefs, Contribution
from .trace import Trace

if TYPE_CHECKING:
    from .loo import LeaveOneOut
    from .nuts_check import Check
    from .program import Program
    from .trust import Trust


class Posterior(Mapping[str, Marginal]):
    """The answer of an inference: `posterior["v"]` is the marginal of the variable v.

    `log_evidence` estimates log p(data): exact on trees of exact operators, the Bethe approximation over EP blocks, a
    lower bound where all factors are VMP with exact or bounding operators. `converged`, `diagnosis` and `trace` tell
    how the run went.
    """

    def __init__(
        self, machine: Machine, arrays: dict[str, Any], binding: Binding, result: Result, program: Program
    ) -> None:
        self._machine, self._arrays, self._binding, self._result, self._program = (
            machine,
            arrays,
            binding,
            result,
            program,
        )
        self._marginals: dict[str, Marginal] = {}
        self._verdict: Trust | None = None  # of the last call of trust(), for summary()

    # how the run went -------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence."""
        return float(self._result.number("evidence"))

    @property
    def evidence(self) -> dict[str, float]:
        """log evidence by factor: the parts sum to the total."""
        return {name: float(np.asarray(value)) for name, value in self._result.outputs["parts"].items()}

    @property
    def converged(self) -> bool:
        """True when the estimated distance from the fixed point is below the tolerance."""
        return self.code == "converged"

    @property
    def code(self) -> str:
        """converged, slow, oscillating, diverged or contradiction."""
        return ("converged", "slow", "oscillating", "diverged", "running", "contradiction")[
            int(self._result.number("code"))
        ]

    @property
    def iterations(self) -> int:
        """Number of sweeps."""
        return int(self._result.number("iteration"))

    @property
    def trace(self) -> Trace:
        """Evidence and residual by sweep (empty for a member of a batch)."""
        evidence, residual = (np.asarray(self._result.outputs[name]) for name in ("evidences", "residuals"))
        count = self.iterations if len(residual) >= self.iterations else 0
        return Trace(evidence[:count], residual[:count])

    @property
    def restarts(self) -> np.ndarray:
        """The log evidence of every restart; the posterior is that of the best."""
        return np.asarray(self._result.outputs["all_evidence"])

    @property
    def floored(self) -> dict[str, int]:
        """How often a cavity would have been improper and was floored, by factor."""
        counts = self._result.outputs["floored"]
        return {block.name: int(np.asarray(counts[number])) for number, block in self._machine.ep_blocks.items()}

    @property
    def diagnosis(self) -> str:
        """One sentence on how the run ended and what to do."""
        return diagnosis(self._result, self.code)

    # marginals --------------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Marginal:
        if name not in self._marginals:
            self._marginals[name] = Marginal(self._family(name), name)
        return self._marginals[name]

    def __iter__(self) -> Iterator[str]:
        model = self._program.model
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

    def _family(self, name: str) -> Any:
        named = {**self._program.model.randoms, **self._program.model.lets}
        if name not in named:
            raise KeyError(f"The model has no variable {name!r}. It has: {', '.join(named)}.")
        with jax.enable_x64(True):
            if name in self._binding.observed and name not in self._families:
                return self._observed(named[name])
            if name in self._families:
                return self._families[name]
            graph, data = self._machine.graph, self._arrays
            return predictions(graph, (name,), self._machine.sizes, data, self._families)[name]

    @cached_property
    def _latent(self) -> dict[str, Family]:
        """The beliefs as families of NumPy arrays."""
        graph = self._machine.graph
        beliefs = self._result.outputs["beliefs"]
        found = {
            name: family_of(graph.latent[name]).from_naturals(tuple(np.asarray(n) for n in naturals))
            for name, naturals in beliefs.items()
        }
        with jax.enable_x64(True):
            for joint in graph.joints:
                members = member_families(joint, found[joint.variable.name], self._machine.sizes)
                found |= {name: jax.tree.map(np.asarray, family) for name, family in members.items()}
        return found

    @cached_property
    def _families(self) -> dict[str, Any]:
        """Beliefs and recovered marginals; forward ones are added as they are asked for."""
        found = {**self._latent, **self._absorbed}
        observed, missing = self._binding.observed, self._binding.missing
        for name in self._machine.graph.partly:
            found[name] = Completed(observed[name], missing[name], found[name])
        return found

    @property
    def _scope(self) -> Scope:
        moments = {name: family.moments() for name, family in self._families.items()}
        return Scope(self._machine.sizes, self._arrays, moments, joints=self._machine.graph.joints)

    def _observed(self, node: Random | Let) -> Any:
        """A point, with the predictive marginal in the place of missing entries."""
        data = self._binding.observed[node.name]
        missing = self._binding.missing.get(node.name)
        if missing is None:
            return Point(data)
        hidden = {name: array for name, array in self._arrays.items() if name != node.name}
        scope = self._scope
        predicted = forward(node, dataclasses.replace(scope, data=hidden), self._families)
        return Completed(data, missing, predicted)

    @cached_property
    def _absorbed(self) -> dict[str, Family]:
        """Marginals of variables that were integrated out inside a factor."""
        found: dict[str, Family] = {}
        with jax.enable_x64(True):
            for number, block in self._machine.ep_blocks.items():
                if block.absorbed:
                    found |= recover(self._machine, self._result.outputs, self._arrays, number)
        return found

    # use --------------------------------------------------------------------------------------------------------------

    def predict(self, data: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> dict[str, Marginal]:
        """Predictive marginals for new inputs: of every variable that lives on a plate of the new data.

        `data` gives all inputs on the plates that change (new rows, new games); `sizes` the sizes of changed plates
        without inputs. Variables on other plates keep their posterior. Returns marginals by name; as an array each is
        its mean, for a category the class probabilities. Raises DataError for inputs that do not fit.
        """
        model = self._program.model
        unknown = [name for name in data if name not in model.inputs]
        if unknown:
            raise DataError(
                f"predict() takes inputs; {unknown[0]!r} is "
                f"{'a variable' if unknown[0] in {**model.randoms, **model.lets} else 'unknown'}. "
                f"The model's inputs are: {', '.join(model.inputs) or 'none'}."
            )
        fresh = {plate.name for name in data for plate in model.inputs[name].plates} | set(sizes or {})
        kept = {
            name: array
            for name, array in self._binding.inputs.items()
            if name not in data and not fresh & {plate.name for plate in model.inputs[name].plates}
        }
        old_sizes = {name: size for name, size in self._binding.sizes.items() if name not in fresh}
        binding = bind(model, {**kept, **data}, {**old_sizes, **(sizes or {})})
        with jax.enable_x64(True):
            return self._predict(binding, fresh)

    def _predict(self, binding: Binding, fresh: set[str]) -> dict[str, Marginal]:
        model = self._program.model

        named = {**model.randoms, **model.lets}
        joints = {joint.variable.name: joint for joint in self._machine.graph.joints}

        def changes(name: str) -> bool:
            """Whether a variable, or a member of a joint belief, lives on a plate of the new data."""
            nodes = joints[name].members if name in joints else (named[name],)
            return bool(fresh & {plate.name for node in nodes for plate in node.plates})

        partly = self._machine.graph.partly
        observed = {n: array for n, array in self._binding.observed.items() if n not in partly and not changes(n)}
        families = {name: family for name, family in self._families.items() if not changes(name)}
        wanted = [name for name in named if changes(name) and name in set(self)]
        machine, outputs = self._machine, self._result.outputs
        functions = anchors(machine.ep_blocks, outputs, machine.flat, machine.scope(self._arrays), fresh)
        inputs = self._program.inputs_of(machine.graph, tuple(wanted), binding)
        data = {**inputs, **observed, **functions}
        predict = self._program.predictor(self._machine.graph, tuple(wanted), frozenset(observed), binding.sizes)
        found = predict(data, {name: jax.tree.map(np.asarray, family) for name, family in families.items()})
        return {name: Marginal(found[name], name) for name in wanted}

    @property
    def model(self) -> Model:
        """The model."""
        return self._program.model

    @property
    def graph(self) -> Graph:
        """The plan that was run."""
        return self._machine.graph

    @property
    def machine(self) -> Machine:
        """The functions of the plan for the plate sizes of the data."""
        return self._machine

    @property
    def arrays(self) -> dict[str, Any]:
        """What the program was called with."""
        return self._arrays

    def naturals_of(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of a belief, also of a joint one."""
        return tuple(map(np.asarray, self._result.outputs["beliefs"][name]))

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The observations by name."""
        return self._binding.observed

    @property
    def beliefs(self) -> dict[str, Any]:
        """The families of the random variables that inference gave a belief, by name."""
        return {name: self._families[name] for name in self.model.randoms if name in self._families}

    def prior_naturals(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of a variable's prior; UnsupportedError where it depends on other variables."""
        return stream.prior_naturals(self._machine, self._arrays, name)

    @property
    def carried(self) -> Beliefs:
        """What the next batch starts from: the beliefs of all variables on plates without data, by name."""
        return stream.carried(self)

    @property
    def contribution(self) -> Contribution:
        """What this run's data added to the carried variables over their priors: beliefs divided by priors.

        Raises UnsupportedError where the prior of one is random and was not given with `prior=`.
        """
        return stream.contribution(self)

    def __add__(self, other: Contribution) -> Beliefs:
        return self.carried + other

    def __sub__(self, other: Contribution) -> Beliefs:
        return self.carried - other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the posterior to a file that `cv.load(path, model)` reads: arrays and JSON, nothing that runs."""
        from .store import save

        save(self, path)

    def to_arviz(self, draws: int = 1000, *, seed: int = 0) -> Any:
        """Independent draws from the marginals, with the data, in the form that ArviZ reads. Needs the extra `arviz`.

        A DataTree with ArviZ 1, an InferenceData before: groups posterior, observed_data and constant_data, dimensions
        named as the plates. The draws of different variables are independent: compare no two of them.
        """
        from .to_arviz import to_arviz

        return to_arviz(self, draws, seed)

    def explain(self) -> str:
        """What the compiler chose, factor by factor, and why, with the evidence and the counts of this run."""
        from ..compiler.explain import explain_plan

        return explain_plan(self._machine.graph, self.evidence, self.floored) + "\n" + self.diagnosis

    def summary(self) -> str:
        """A table of the marginals: name, plates, family, and mean and sd of the first elements."""
        from .summary import summary

        return summary(self)

    def trust(self, *, seed: int = 0) -> Trust:
        """How far to trust these beliefs, against the model's own joint log density: `print(posterior.trust())`.

        Takes seconds; see `engine.trust`. `summary()` repeats the verdict from then on.
        """
        from .trust import trust

        self._verdict = trust(self, seed=seed)
        return self._verdict

    def check(self, against: str = "nuts", **options: Any) -> Check:
        """Runs NUTS beside this posterior and compares: `print(posterior.check())`; see `engine.nuts_check.check`.

        `options` are draws=, warmup=, chains= and seed=. Needs the extra `mcmc`.
        """
        from .nuts_check import check

        return check(self, against, **options)

    def loo(self) -> LeaveOneOut:
        """Leave-one-out log predictive densities by observed variable, from the cavities; see `engine.loo`."""
        from .loo import leave_one_out

        return leave_one_out(self)

    def evidence_gradient(self, *names: str) -> dict[str, np.ndarray]:
        """The gradient of `log_evidence` in the inputs called `names` (all continuous ones by default).

        It holds at the fixed point: infer with a small tolerance. Returns arrays shaped as the inputs. Raises DataError
        for a name that is no continuous input, UnsupportedError when the run has not converged.
        """
        from .gradient import gradient

        return gradient(self, names)

    def plot(self, *names: str) -> Any:
        """A figure of the marginals of the named variables (all latent ones by default) and of convergence.

        Needs the extra `plot`.
        """
        from .plots import plot_posterior

        return plot_posterior(self, names)

    def __repr__(self) -> str:
        return (
            f"<Posterior of {self._program.model.name!r}: {', '.join(self)}; "
            f"log evidence {self.log_evidence:.6g}; {self.code} in {self.iterations} sweeps>"
        )
