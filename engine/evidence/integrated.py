"""The posterior of an integration: a mixture of conditional posteriors, read like any other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from ...compiler.data.bind import Binding
from ...compiler.explain import explain_plan
from ...factors.families import Family, Point
from ..answers.marginal import Marginal
from ..answers.refused import refused, refused_property
from ..data.missing_and_sparse import arrays_of
from ..distributions.mixed_over_grid import GridMixture, OnGrid
from ..posterior import AnyPosterior, Posterior
from ..run.result import Outputs, Result
from ..run.trace import Trace
from ..values.first_beliefs import family_of
from ..values.joint_beliefs import member_families
from .conditionals import Conditionals
from .grid import Grid

if TYPE_CHECKING:
    from ..checks.loo import LeaveOneOut
    from ..checks.trust import Trust

_MIXED = "an integrated posterior is a mixture over a grid: `posterior.plain` has the beliefs before the integration."


class Integrated(AnyPosterior):
    """A posterior whose parameters in `points` were integrated over a grid.

    `points` maps each parameter to its values on the grid, `weights` are the points' posterior probabilities.
    It is read and asked as any posterior; every marginal is a mixture over the grid. What needs one belief of each
    variable is refused: `save`, and what carries beliefs over to later data. `plain` is the posterior that the
    integration started from, which has them.
    """

    def __init__(
        self,
        conditionals: Conditionals,
        bindings: Sequence[Binding],
        outputs: Sequence[Outputs],
        families: Mapping[str, OnGrid | Family],
        weights: Float[np.ndarray, " K"],
        grid: Grid,
    ) -> None:
        whole = conditionals.whole
        super().__init__(whole.request, conditionals.machine, conditionals.plain_arrays, conditionals.plain_binding)
        self._of, self._settings = conditionals, conditionals.runner.settings
        self._bindings, self._outputs, self._grid = bindings, outputs, families
        self.weights, self.error = weights, grid.error
        self._log_evidence = grid.log_total()

    @property
    def plain(self) -> Posterior:
        """The posterior without the integration; it is inferred when it is first asked for."""
        return self._of.plain()

    @property
    def points(self) -> dict[str, np.ndarray]:
        """The values of the integrated parameters at the points of the grid."""
        return {name: np.array([binding.observed[name] for binding in self._bindings]) for name in self._grid}

    @cached_property
    def conditionals(self) -> list[Posterior]:
        """The posterior at every point of the grid."""
        return [
            self._of.program.posterior(
                self.machine, arrays_of(binding, self.graph), binding, Result(outputs, self._settings)
            )
            for binding, outputs in zip(self._bindings, self._outputs, strict=True)
        ]

    def _marginal(self, name: str) -> Marginal:
        return Marginal(self._family(name), name)

    def _family(self, name: str) -> Family | OnGrid | GridMixture:
        if name in self._grid:
            return self._grid[name]
        if name in self._stacked:
            return GridMixture(self._stacked[name], self.weights)
        return self._mixture([posterior[name].family for posterior in self.conditionals])

    def _mixture(self, families: list[Family]) -> Family:
        if isinstance(families[0], Point):
            return families[0]
        return GridMixture(jax.tree.map(lambda *leaves: np.stack(leaves), *families), self.weights)

    @cached_property
    def _stacked(self) -> dict[str, Family]:
        """The beliefs at all points, with one leading axis for the points."""
        graph, sizes = self.graph, self.machine.sizes
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
    def log_evidence(self) -> float:
        """The logarithm of the evidence, integrated over the grid."""
        return self._log_evidence

    @property
    def code(self) -> str:
        """converged, or the code of the worst point."""
        codes = {posterior.code for posterior in self.conditionals}
        return "converged" if codes == {"converged"} else sorted(codes - {"converged"})[0]

    @property
    def timing(self) -> None:
        """None: there were many runs. That of the first is `plain.timing`."""
        return None

    @property
    def diagnosis(self) -> str:
        """One sentence on how the integration went."""
        size, heaviest = len(self.weights), float(self.weights.max())
        return (
            f"Integrated {', '.join(self._grid)} over {size} points, the heaviest with probability {heaviest:.2g}, "
            f"estimated error of the log evidence {self.error:.1g}; "
            f"the inference at every point {'converged' if self.converged else 'did not converge: ' + self.code}."
        )

    def predict(
        self,
        data: Mapping[str, Any],
        sizes: Mapping[str, int] | None = None,
        new: Collection[str] | None = None,
    ) -> dict[str, Marginal]:
        """Predictive marginals for new inputs, mixed over the grid: `data`, `sizes` and `new` as in
        `Posterior.predict`.

        Returns marginals by name. Errors as there.
        """
        found = [posterior.predict(data, sizes, new) for posterior in self.conditionals]
        return {name: Marginal(self._mixture([one[name].family for one in found]), name) for name in found[0]}

    @property
    def evidence(self) -> dict[str, float]:
        """log evidence by factor, averaged over the grid; what the grid itself adds is called "integration".

        The parts sum to the total: with weights w at points of evidence Z, log sum Z = sum w log Z - sum w log w.
        """
        found: dict[str, float] = {}
        for weight, posterior in zip(self.weights, self.conditionals, strict=True):
            for name, part in posterior.evidence.items():
                found[name] = found.get(name, 0.0) + float(weight) * part
        return {**found, "integration": self.log_evidence - sum(found.values())}

    @property
    def iterations(self) -> int:
        """Number of sweeps at the point that took most of them."""
        return max(posterior.iterations for posterior in self.conditionals)

    @property
    def trace(self) -> Trace:
        """Empty: the sweeps at the points of a grid are not recorded."""
        return Trace(np.zeros(0), np.zeros(0))

    @property
    def restarts(self) -> np.ndarray:
        """The log evidence: a grid has no restarts."""
        return np.array([self.log_evidence])

    @property
    def floored(self) -> dict[str, int]:
        """How often a cavity would have been improper and was floored, by factor, at all points together."""
        counts = [posterior.floored for posterior in self.conditionals]
        return {name: sum(count[name] for count in counts) for name in counts[0]}

    @property
    def families(self) -> dict[str, Family | OnGrid | GridMixture]:
        """The families of all that has a belief at the points of the grid, mixed, and of what was integrated."""
        return {name: self[name].family for name in (*self.model.randoms, *self.model.lets) if self._has_belief(name)}

    def _has_belief(self, name: str) -> bool:
        return name in self._grid or name in self._stacked

    def explain(self) -> str:
        """What the compiler chose at a point of the grid, and how the integration went."""
        return explain_plan(self.graph) + "\n" + self.diagnosis

    def trust(self, *, seed: int = 0) -> Trust:
        """How far to trust the mixture, against the model's own joint log density: see `Posterior.trust`.

        The factors whose skewness is told are those at the heaviest point of the grid. `seed` decides the draws.
        """
        from ..checks.trust import trust

        return self._keep(trust(self, self.conditionals[int(np.argmax(self.weights))], seed=seed))

    def loo(self) -> LeaveOneOut:
        """Leave-one-out log predictive densities, mixed over the grid: see `Posterior.loo`.

        A point of weight w keeps w / p(y_i | others, point) of it without y_i, so that the densities combine as a
        weighted harmonic mean.
        """
        from ..checks.loo import mixed_leave_one_out

        return mixed_leave_one_out(self.conditionals, self.weights)

    def evidence_gradient(self, *names: str) -> dict[str, np.ndarray]:
        """The gradient of `log_evidence` in the inputs called `names`: the mean over the grid of those at its points.

        Errors as in `Posterior.evidence_gradient`.
        """
        parts = [posterior.evidence_gradient(*names) for posterior in self.conditionals]
        return {name: np.tensordot(self.weights, [part[name] for part in parts], axes=1) for name in parts[0]}

    save = refused(
        "save()", f"writes one belief for each variable, and {_MIXED} Save that: posterior.plain.save(path)."
    )
    naturals_of = refused("naturals_of()", f"reads one belief, and {_MIXED}")
    prior_naturals = refused("prior_naturals()", f"reads one belief, and {_MIXED}")
    carried = refused_property("carried", f"holds one belief for each variable, and {_MIXED} Carry that over.")
    contribution = refused_property("contribution", f"divides one belief by its prior, and {_MIXED} Take that.")
    __add__ = refused("posterior + contribution", f"multiplies one belief, and {_MIXED} Add to that.")
    __sub__ = refused("posterior - contribution", f"divides one belief, and {_MIXED} Subtract from that.")

    def __repr__(self) -> str:
        return (
            f"<Integrated posterior of {self.model.name!r}: {', '.join(self)}; {self.diagnosis} "
            f"Verdict: {self.verdict.short}>"
        )
