"""The posterior of an integration: a mixture of conditional posteriors, read like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ..compiler.bind import Binding
from ..factors.families import Family, Point
from .beliefs import family_of
from .controller import Settings
from .grid import Grid
from .joint import member_families
from .machine import Machine
from .marginal import Marginal
from .mixed import Mixture, OnGrid
from .posterior import Posterior
from .program import Program, arrays_of
from .result import Result


class Integrated(Mapping[str, Marginal]):
    """A posterior whose parameters in `points` were integrated over a grid.

    `points` maps each parameter to its values on the grid, `weights` are the points' posterior probabilities.
    Marginals, `predict`, `summary` and `explain` are those of any posterior; every marginal is a mixture over the grid.
    """

    def __init__(
        self,
        program: Program,
        machine: Machine,
        settings: Settings,
        bindings: Sequence[Binding],
        outputs: Sequence[Any],
        families: Mapping[str, OnGrid],
        weights: np.ndarray,
        grid: Grid,
    ) -> None:
        self._program, self._machine, self._settings = program, machine, settings
        self._bindings, self._outputs, self._grid = bindings, outputs, families
        self.weights, self.log_evidence, self.error = weights, grid.log_total(), grid.error
        self._marginals: dict[str, Marginal] = {}
        self._verdict = None  # of trust(), which compares plain posteriors

    @property
    def points(self) -> dict[str, np.ndarray]:
        """The values of the integrated parameters at the points of the grid."""
        return {name: np.array([binding.observed[name] for binding in self._bindings]) for name in self._grid}

    @cached_property
    def conditionals(self) -> list[Posterior]:
        """The posterior at every point of the grid."""
        pairs = zip(self._bindings, self._outputs, strict=True)
        return [
            Posterior(
                self._machine,
                arrays_of(binding, self._machine.graph),
                binding,
                Result(outputs, self._settings),
                self._program,
            )
            for binding, outputs in pairs
        ]

    def __getitem__(self, name: str) -> Marginal:
        if name not in self._marginals:
            self._marginals[name] = Marginal(self._family(name), name)
        return self._marginals[name]

    def _family(self, name: str) -> Any:
        if name in self._grid:
            return self._grid[name]
        if name in self._stacked:
            return Mixture(self._stacked[name], self.weights)
        return self._mixture([posterior[name].family for posterior in self.conditionals])

    def _mixture(self, families: list[Family]) -> Family:
        if isinstance(families[0], Point):
            return families[0]
        return Mixture(jax.tree.map(lambda *leaves: np.stack(leaves), *families), self.weights)

    @cached_property
    def _stacked(self) -> dict[str, Family]:
        """The beliefs at all points, with one leading axis for the points."""
        graph, sizes = self._machine.graph, self._machine.sizes
        beliefs = jax.tree.map(lambda *leaves: np.stack(leaves), *(outputs["beliefs"] for outputs in self._outputs))
        with jax.enable_x64(True):
            found = {name: family_of(graph.latent[name]).from_naturals(tuple(n)) for name, n in beliefs.items()}
            for joint in graph.joints:
                members = jax.vmap(lambda family, joint=joint: member_families(joint, family, sizes))
                found |= members(found[joint.variable.name])
            return {name: jax.tree.map(np.asarray, family) for name, family in found.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.conditionals[0])

    def __len__(self) -> int:
        return len(self.conditionals[0])

    @property
    def converged(self) -> bool:
        """True when the inference at every point of the grid converged."""
        return self.code == "converged"

    @property
    def code(self) -> str:
        """converged, or the code of the worst point."""
        codes = {posterior.code for posterior in self.conditionals}
        return "converged" if codes == {"converged"} else sorted(codes - {"converged"})[0]

    @property
    def diagnosis(self) -> str:
        """One sentence on how the integration went."""
        size, heaviest = len(self.weights), float(self.weights.max())
        return (
            f"Integrated {', '.join(self._grid)} over {size} points, the heaviest with probability {heaviest:.2g}, "
            f"estimated error of the log evidence {self.error:.1g}; "
            f"the inference at every point {'converged' if self.converged else 'did not converge: ' + self.code}."
        )

    def predict(self, data: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> dict[str, Marginal]:
        """Predictive marginals for new inputs, mixed over the grid: see `Posterior.predict`."""
        found = [posterior.predict(data, sizes) for posterior in self.conditionals]
        return {name: Marginal(self._mixture([one[name].family for one in found]), name) for name in found[0]}

    def explain(self) -> str:
        """What the compiler chose at a point of the grid, and how the integration went."""
        from ..compiler.explain import explain_plan

        return explain_plan(self._machine.graph) + "\n" + self.diagnosis

    def summary(self) -> str:
        """A table of the marginals: name, family, shape, and mean and sd of the first elements."""
        from .summary import summary

        return summary(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<Integrated posterior of {self._program.model.name!r}: {', '.join(self)}; {self.diagnosis}>"
