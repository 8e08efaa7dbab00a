"""The posterior of an integration: a mixture of conditional posteriors, read like any other."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler.explain import explain_plan
from ...compiler.passes.given import Part
from ...factors.calls import methods_checked
from ...factors.families import DiscreteFamily, ExponentialFamily, Family, Point
from ..answers import next_prior
from ..answers.exact_counts import says_more
from ..answers.marginal import Marginal
from ..answers.next_prior import Beliefs, Naturals
from ..answers.outcome import CODES
from ..distributions.mixed_over_grid import GridMixture, OnGrid
from ..distributions.partly_observed import Completed
from ..options import seed_of
from ..posterior import AnyPosterior, Posterior
from ..run.fixed_points import Restarts, single
from ..run.progress import Timing
from ..run.trace import Trace
from ..values.first_beliefs import family_of
from .at_points import AtPoints, Mixture, Runs
from .between_points import table_between
from .choice import Choice, at_any_price
from .conditionals import Conditionals
from .why import integration_in_words

if TYPE_CHECKING:
    from ..answers.arviz import ArvizData
    from ..checks.loo import LeaveOneOut
    from ..checks.trust import Trust
    from ..files.save import Contents

NO_WEIGHT = 1e-3  # of the points, all together, that may not have converged


@methods_checked("posterior")
class Integrated(AnyPosterior):
    """A posterior whose parameters in `points` were integrated over a grid.

    `points` maps each parameter to its values on the grid, `weights` are the points' posterior probabilities.
    It is read and asked as any posterior; every marginal is a mixture over the grid. What later data start from
    (`carried`, `contribution`, `naturals_of`) is the projection of the mixture: the members of the beliefs' families
    with its expected statistics. `plain` is the posterior without the integration.
    """

    def __init__(self, conditionals: Conditionals, mixture: Mixture, choice: Choice | None = None) -> None:
        whole = conditionals.whole
        super().__init__(whole.request, conditionals.machine, conditionals.plain_arrays, conditionals.plain_binding)
        self._of, self.mixture, self._choice = conditionals, mixture, choice
        self.weights, self.error, self._grid = mixture.weights, mixture.error, mixture.families
        self._mixtures: dict[str, GridMixture] = {}

    @property
    def plain(self) -> Posterior:
        """The posterior without the integration; it is inferred when it is first asked for."""
        return self._of.plain()

    @property
    def seed(self) -> int:
        """What decided all random choices."""
        return self._of.seed

    @property
    def points(self) -> dict[str, np.ndarray]:
        """The values of the integrated parameters at the points of the grid."""
        return dict(self.mixture.values)

    @cached_property
    def conditionals(self) -> AtPoints:
        """The posterior at every point of the grid."""
        of = self._of
        runs = Runs(of.program, of.machine, of.arrays, of.binding, of.runner.settings)
        return AtPoints(runs, self.points, self.mixture.outputs)

    @property
    def heaviest(self) -> Posterior:
        """The posterior at the point of the grid that has most weight."""
        return self.conditionals[int(np.argmax(self.weights))]

    # marginals --------------------------------------------------------------------------------------------------------

    def _marginal(self, name: str) -> Marginal:
        if name in self._grid:
            return Marginal(self._grid[name], name)
        if self._is_belief(name):
            return Marginal(self._mixed(self._stacked[name]), name)
        alone = self.heaviest[name]
        if isinstance(alone.family, Point):
            return Marginal(alone.family, name)
        mixed = self._mixed(self.mixture_of(name).components)
        return Marginal(mixed, name, alone.note, self._between(name))

    def _between(self, name: str) -> Callable[[Family], Family | None] | None:
        """What makes the distribution of an expression of what was integrated, of which the points know too little."""
        node = self.model.lets.get(name)
        if node is None:
            return None
        return partial(table_between, node, self.mixture, self.arrays, self.machine.sizes)

    def mixture_of(self, name: str) -> GridMixture:
        """The marginals of what is called `name`, a variable or an expression, at all points, and their weights."""
        if name not in self._mixtures:
            belief = self._is_belief(name)
            stacked = self._stacked[name] if belief else self.conditionals.every(lambda one: one[name].distribution)
            self._mixtures[name] = GridMixture(stacked, self.weights)
        return self._mixtures[name]

    def _is_belief(self, name: str) -> bool:
        """Whether a marginal at a point is a belief as it is."""
        return name in self._stacked and not says_more(self.graph, name)

    def _mixed(self, stacked: Family) -> Family:
        """The mixture of the families at all points; of finitely many values it is one of their own kind."""
        if isinstance(stacked, Completed):  # what was given is the same at all points
            given, missing = (np.asarray(part)[0] for part in (stacked.value, stacked.missing))
            return Completed(given, missing, self._mixed(stacked.predicted))
        found = GridMixture(stacked, self.weights)
        return found.projection() if isinstance(stacked, DiscreteFamily) else found

    @cached_property
    def _stacked(self) -> dict[str, Any]:
        """The beliefs at all points, with one leading axis for the points."""
        return self.conditionals.every(lambda posterior: dict(posterior.families))

    def __iter__(self) -> Iterator[str]:
        return iter(self.heaviest)

    def __len__(self) -> int:
        return len(self.heaviest)

    @property
    def families(self) -> dict[str, Family | OnGrid | GridMixture]:
        """The families of all that has a belief at the points of the grid, mixed, and of what was integrated."""
        return {name: self[name].family for name in (*self.model.randoms, *self.model.lets) if self._has_belief(name)}

    def _has_belief(self, name: str) -> bool:
        return name in self._grid or name in self._stacked

    # how it went ------------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence, integrated over the grid."""
        return self.mixture.log_evidence

    @property
    def evidence(self) -> dict[str, float]:
        """log evidence by factor, averaged over the grid; what the grid itself adds is called "integration".

        The parts sum to the total: with weights w at points of evidence Z, log sum Z = sum w log Z - sum w log w.
        """
        parts, some = self.mixture.outputs["parts"], self.weights > 0
        found = {name: float(self.weights[some] @ np.asarray(part)[some]) for name, part in parts.items()}
        return {**found, "integration": self.log_evidence - sum(found.values())}

    @property
    def code(self) -> str:
        """converged, or the code of the worst point but for those that together have no weight to speak of."""
        lightest = np.argsort(self.weights)
        light = lightest[np.cumsum(self.weights[lightest]) <= NO_WEIGHT]
        return CODES[int(np.max(np.delete(np.asarray(self.mixture.outputs["code"]), light)))]

    @property
    def iterations(self) -> int:
        """Number of sweeps at the point that took most of them."""
        return int(np.max(self.mixture.outputs["iteration"]))

    @property
    def trace(self) -> Trace:
        """Empty: the sweeps at the points of a grid are not recorded."""
        return Trace(np.zeros(0), np.zeros(0))

    @property
    def restarts(self) -> Restarts:
        """One: a grid has no restarts. Those of the beliefs are in `plain.restarts`."""
        return single(self.log_evidence, self.converged, self.iterations)

    @property
    def floored(self) -> dict[str, int]:
        """How often a cavity would have been improper and was floored, by factor, at all points together."""
        counts = self.mixture.outputs["floored"]
        return {block.name: int(np.sum(counts[number])) for number, block in self.machine.ep_blocks.items()}

    @property
    def timing(self) -> Timing:
        """Who ran the sweeps, and the seconds of each stage: of all inferences that the grid took, together."""
        return self._of.timing if self.mixture.timing is None else self.mixture.timing

    @property
    def diagnosis(self) -> str:
        """One sentence on how the integration went."""
        size, heaviest = len(self.weights), float(self.weights.max())
        left = int(np.sum(np.asarray(self.mixture.outputs["code"]) > 0)) if self.converged else 0
        which = f"all points but {left}, of next to no weight," if left else "every point"
        return (
            f"Integrated {', '.join(self._grid)} over {size} points, the heaviest with probability {heaviest:.2g}, "
            f"estimated error of the log evidence {self.error:.1g}; "
            f"the inference at {which} {'converged' if self.converged else 'did not converge: ' + self.code}."
        )

    def explain(self) -> str:
        """What the compiler chose at a point of the grid, what was integrated and why, and how that went."""
        of = self._of
        choice = self._choice or at_any_price(of.whole, of.plain_binding, of.names)  # of a file the design is forgotten
        words = integration_in_words(of.whole, of.plain_binding, choice, self.graph, len(self.weights))
        plan = explain_plan(self.graph, self.evidence, self.floored, gridded=of.names)
        return "\n".join([plan, words, self.diagnosis, str(self.timing)])

    # questions --------------------------------------------------------------------------------------------------------

    def _predicted(
        self, data: Mapping[str, Any], sizes: Mapping[str, int] | None, new: Collection[str] | None
    ) -> dict[str, Marginal]:
        """Mixed over the grid."""
        alone = self.heaviest._predicted(data, sizes, new)
        stacked = self.conditionals.every(lambda posterior: _families(posterior._predicted(data, sizes, new)))
        return {n: Marginal(self._mixed(stacked[n]), n, one.note).along(one.axes) for n, one in alone.items()}

    def trust(self, *, seed: int = 0) -> Trust:
        """How far to trust the mixture, against the model's own joint log density: see `Posterior.trust`.

        The factors whose skewness is told are those at the heaviest point of the grid. `seed` decides the draws.
        """
        from ..checks.trust import trust

        return self._keep(trust(self, self.heaviest, seed=seed))

    def loo(self) -> LeaveOneOut:
        """Leave-one-out log predictive densities, mixed over the grid: see `Posterior.loo`.

        A point of weight w keeps w / p(y_i | others, point) of it without y_i, so that the densities combine as a
        weighted harmonic mean.
        """
        from ..checks.loo import leave_one_out, mixed_leave_one_out, with_draws

        unavailable = leave_one_out(self.heaviest).unavailable
        stacked = self.conditionals.every(lambda posterior: leave_one_out(posterior).densities)
        densities = {name: own for name, own in stacked.items() if name not in self._grid}
        reasons = {name: reason for name, reason in unavailable.items() if name not in self._grid}
        return with_draws(mixed_leave_one_out(densities, self.weights, reasons), self)

    def evidence_gradient(self, *names: str) -> dict[str, np.ndarray]:
        """The gradient of `log_evidence` in the inputs called `names`: the mean over the grid of those at its points.

        Errors as in `Posterior.evidence_gradient`.
        """
        self.heaviest.evidence_gradient(*names)  # refuses what has none
        parts = self.conditionals.every(lambda posterior: posterior.evidence_gradient(*names))
        return {name: np.tensordot(self.weights, part, axes=1) for name, part in parts.items()}

    def _joint_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """Of weighted draws of the joint density, where these are usable, else of the points of the grid."""
        from ..sampling.from_weights import of_beliefs
        from .joint_draws import joint_draws

        def at_points() -> dict[str, np.ndarray]:
            found = joint_draws(self.mixture, self.mixture_of, self, n, seed)
            return {name: array for name, array in found.items() if self._has_belief(name)}

        return of_beliefs(self, self._weighted_draws, at_points, n, seed)

    def to_arviz(self, draws: int = 1000, *, seed: int = 0) -> ArvizData:
        """Joint draws, with the data, in the form that ArviZ reads: as `Posterior.to_arviz`, but for the draws.

        Each of the `draws` is of a point of the grid, then of the beliefs there, so that it has the dependences that
        the integrated parameters make; members of a joint belief are drawn together. What is named by `m.let` is drawn
        from its marginal at the point. `seed` decides them all. Errors as there.
        """
        from ..answers.arviz import as_arviz, groups
        from .joint_draws import NOTE, joint_draws

        drawing = partial(joint_draws, self.mixture, self.mixture_of)
        return as_arviz(*groups(self, draws, seed_of(seed), drawing), NOTE, self.binding.names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the posterior, with all points of the grid, to a file that `cv.load(path, model)` reads.

        The file at `path` is replaced as a whole or not at all. Raises OSError where it cannot be written.
        """
        from ..files.save import write

        write(self, path, self.contents())

    def contents(self) -> Contents:
        """What its file holds."""
        from ..files.save import Contents, Integration

        found = self.mixture
        own = Integration(self.seed, found.values, found.weights, found.error, found.families)
        known = self._known()
        return Contents(found.outputs, self.carried, lambda: self.baseline, integration=own, verdict=known)

    # what later data start from ---------------------------------------------------------------------------------------

    @cached_property
    def carried(self) -> Beliefs:
        """What the next batch starts from: the beliefs of all variables on plates without data, by name.

        They are the projection of the mixture: members of the families of beliefs, joint ones with their covariances,
        that have its expected statistics. What ties them to the integrated parameters is left out, as in any
        factorised belief.
        """
        one = self.heaviest.carried
        stacked = self.conditionals.every(lambda posterior: list(posterior.carried.parts.values()))
        parts = {part: self._projected(own) for part, own in zip(one.parts, stacked, strict=True)}
        grid = {Part((name,)): _projection(family) for name, family in self._grid.items()}
        return Beliefs({**grid, **parts}, one.joints, one.sizes)

    def _projected(self, stacked: ExponentialFamily) -> ExponentialFamily:
        return GridMixture(stacked, self.weights).projection()

    @property
    def baseline(self) -> dict[Part, Naturals]:
        """The natural parameters of the priors of the carried parts: see `AnyPosterior.baseline`."""
        return next_prior.baseline(self._of.plain_machine, self.arrays, self.carried)

    def naturals_of(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of the projection of the mixture on the family of the belief called `name`.

        Returns and raises as `Posterior.naturals_of`; the joint beliefs are those at the points.
        """
        if name in self._grid:
            return tuple(map(np.asarray, _projection(self._grid[name]).naturals()))
        family = family_of(self.graph.latent[name])
        naturals = tuple(map(np.asarray, self.mixture.outputs["beliefs"][name]))
        return tuple(map(np.asarray, self._projected(family.from_naturals(naturals)).naturals()))

    def prior_naturals(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of the prior of the random variable called `name`: as `Posterior.prior_naturals`."""
        return next_prior.prior_naturals(self._of.plain_machine, self.arrays, name)

    def __repr__(self) -> str:
        return (
            f"<Integrated posterior of {self.model.name!r}: {', '.join(self)}; {self.diagnosis} "
            f"Verdict: {self.verdict.short}>"
        )


def _families(marginals: Mapping[str, Marginal]) -> dict[str, Family]:
    return {name: marginal.family for name, marginal in marginals.items()}


def _projection(family: OnGrid | Family) -> ExponentialFamily:
    """The member of the domain's family with the same expected statistics."""
    if isinstance(family, OnGrid):
        return family.projection()
    assert isinstance(family, ExponentialFamily)  # of states
    return family
