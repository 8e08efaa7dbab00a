"""The posterior of weighted draws: where beliefs are taken apart and no grid helps, what the joint density says itself.

The draws are those that a verdict compares with (`engine/checks/nested.py`). Where they are usable they are the better
answer: marginals, quantiles and probabilities come from them, and the log evidence is the logarithm of their mean
weight. What nothing observed depends on is mixed over them, as predictions are. Source: cornuet2012amis,
vehtari2024psis.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ...compiler.data.bind import plate_sizes
from ...compiler.data.sparse_matrices import is_sparse
from ...compiler.explain import explain_plan
from ...compiler.language.nodes import Expr
from ...compiler.passes.given import Part
from ...factors.factor import Term
from ...factors.families import FOR_DOMAIN, DiscreteFamily, ExponentialFamily, Family
from ...factors.roles import Process
from ...factors.switches import double_precision
from ..answers.marginal import Marginal
from ..answers.new_elements import changed_variables
from ..answers.next_prior import Beliefs, Naturals
from ..answers.predict import asked_for, told_apart
from ..answers.predictive import marginals
from ..answers.refused import refused
from ..answers.verdict import Verdict
from ..checks.reference import Functions, Reference
from ..checks.trust import Trust, trust
from ..checks.verdict import ROUGH, beside_modes, compared, verdict_on
from ..density.expressions_at_draws import values_of_expressions
from ..density.log_density import LogDensity
from ..distributions.mixed_over_grid import GridMixture
from ..distributions.partly_observed import Completed
from ..distributions.weighted_draws import WeightedDraws
from ..posterior import AnyPosterior, Posterior
from ..run.fixed_points import Restarts, single
from ..run.progress import Timing
from ..run.trace import Trace
from ..support.asked_arguments import named
from ..support.compiled import compiled
from ..support.concrete import as_numpy
from ..support.warn import warn
from .integrated import Integrated

if TYPE_CHECKING:
    from ..checks.loo import LeaveOneOut

WANTED = 1500.0  # draws that the answer should be worth: a mean is then good to a fortieth of an sd
MOST = 4  # times as many draws as a verdict takes
MIXED = 400  # draws that predictions are mixed over

_DRAWN = "a posterior of weighted draws is no product of beliefs: `posterior.plain` has the beliefs before the draws."


def corrected(posterior: Posterior | Integrated, seed: int, effort: float) -> Posterior | Integrated | Reweighted:
    """The posterior, or that of weighted draws where beliefs are off by more than the draws' own error.

    They are compared where that is expected to take at most `effort` seconds. Warns (`CavityWarning`) where they are
    far off and the draws cannot be the answer.
    """
    found = posterior._keep(compared(posterior, effort, seed))
    if found.level == "good":
        return posterior
    better = by_draws(posterior, found, seed)
    if better is None and found.serious:
        warn(f"The verdict on the posterior of '{posterior.model.name}' is {posterior.verdict}")
    return posterior if better is None else better


def by_draws(posterior: Posterior | Integrated, found: Trust, seed: int) -> Reweighted | None:
    """The posterior of weighted draws, more of them than were compared with; None where they are not usable."""
    witness = found.witness
    if witness is None or not _mixes(posterior):
        return None
    draws = witness.found
    count = int(len(draws.z) * np.clip(WANTED / draws.weighted.effective, 1.0, MOST))
    if count > len(draws.z) and not draws.annealed:
        more = witness.more(seed + 1, count, MOST)
        draws = more if more.usable and more.weighted.effective > draws.weighted.effective else draws
    return Reweighted(posterior, witness.density, witness.call, draws)


def _mixes(posterior: AnyPosterior) -> bool:
    """Whether what follows from the draws can be told from them alone: functions of a process cannot."""
    terms = [node.term for node in posterior.model.randoms.values()]
    return not any(isinstance(term, Term) and isinstance(term.factor.role, Process) for term in terms)


class Reweighted(AnyPosterior):
    """A posterior of weighted draws of the joint density.

    It is read and asked as any posterior. `draws` has those of the continuous variables by name, shaped
    (draws, plates, event), and `weights` their probabilities: together they are the joint posterior. `plain` is the
    factorised posterior that they correct, which also answers what needs one belief of each variable.
    """

    def __init__(self, plain: Posterior | Integrated, density: LogDensity, call: Functions, found: Reference) -> None:
        super().__init__(plain.request, plain.machine, plain.arrays, plain.binding)
        self.plain, self._density, self._call, self._found = plain, density, call, found
        self.weights = found.weighted.weights
        with double_precision():
            self.draws = call.constrain(found.z)
            self._states = call.states(found.z) if density.summed else {}
            self._expressions = values_of_expressions(density, self.draws)

    # marginals --------------------------------------------------------------------------------------------------------

    def _marginal(self, name: str) -> Marginal:
        if name in self.families:
            return Marginal(self.families[name], name)
        if name in self._expressions:
            kind = self.model.lets[name].domain.kind
            return Marginal(WeightedDraws(self._expressions[name], self.weights, kind), name)
        known = name in self.binding.observed and name not in self.binding.missing
        if known or name in self._density.collapsed or name not in {*self.model.randoms, *self.model.lets}:
            return self.plain[name]
        family = self._mixed((name,), self.binding.sizes, self._data)[name]
        missing = self.binding.missing.get(name)
        return Marginal(family if missing is None else Completed(self.observed[name], missing, family), name)

    @cached_property
    def families(self) -> dict[str, Any]:
        """The marginals of all variables that the data tell of, by name."""
        found: dict[str, Any] = {}
        for name, drawn in self.draws.items():
            found[name] = WeightedDraws(drawn, self.weights, self.model.randoms[name].domain.kind)
        for name, given in self._states.items():
            found[name] = self._discrete(name, np.tensordot(self.weights, given, 1))
        for name, missing in self.binding.missing.items():
            if name in found:
                found[name] = Completed(self.observed[name], missing, found[name])
        return found

    def _discrete(self, name: str, probabilities: np.ndarray) -> Family:
        """The family of a discrete variable from the probabilities of its states."""
        family = FOR_DOMAIN[self.model.randoms[name].domain.kind]
        assert issubclass(family, DiscreteFamily)
        return family.from_logits(np.log(np.maximum(probabilities, 1e-300)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    # predictions ------------------------------------------------------------------------------------------------------

    def _predicted(
        self, data: Mapping[str, Any], sizes: Mapping[str, int] | None, new: Collection[str] | None
    ) -> dict[str, Marginal]:
        """Mixed over the draws."""
        data = named(data)
        binding, fresh = asked_for(self, data, plate_sizes(sizes), new)
        nodes = {**self.model.randoms, **self.model.lets}

        def stays(node: Expr) -> bool:
            return not fresh & {plate.name for plate in node.plates}

        kept = {name for name in (*self.draws, *self._states) if stays(nodes[name])}
        changed = changed_variables(self.model, nodes, fresh, frozenset(data), dict.fromkeys(kept))
        wanted = tuple(name for name in changed if name in set(self))
        seen = {name: array for name, array in self.observed.items() if stays(nodes[name]) and name not in changed}
        found = self._mixed(wanted, binding.sizes, {**_dense(binding.inputs), **seen}, kept)
        return told_apart(self.model, binding, {name: Marginal(family, name) for name, family in found.items()})

    @property
    def _data(self) -> dict[str, np.ndarray]:
        """Inputs, and what was observed without gaps."""
        known = {name: array for name, array in self.observed.items() if name not in self.binding.missing}
        return {**_dense(self.binding.inputs), **known}

    def _mixed(
        self, names: tuple[str, ...], sizes: Mapping[str, int], data: Mapping[str, np.ndarray], kept: Any = None
    ) -> dict[str, Family]:
        """The laws of variables given each of some draws, mixed; of the draws only the variables in `kept`."""
        plan = dataclasses.replace(self.graph, joints=())
        chosen = self._chosen
        values = {name: a[chosen] for name, a in self.draws.items() if kept is None or name in kept}
        states = {name: a[chosen] for name, a in self._states.items() if kept is None or name in kept}
        with double_precision():
            given = {name: self._discrete(name, p) for name, p in states.items()}

            def law(values: Any, given: Any, data: Any) -> dict[str, Family]:
                return marginals(plan, names, dict(sizes), {**data, **values}, given)

            each = jax.vmap(law, in_axes=(0, 0, None), axis_size=len(chosen))  # of no draws at all: laws of the prior
            found = compiled("mixture of laws", (object(),), each)(values, given, dict(data))
            found = jax.tree.map(np.asarray, found)
        share = np.full(len(chosen), 1.0 / len(chosen))
        return {name: GridMixture(family, share) for name, family in found.items()}

    @cached_property
    def _chosen(self) -> np.ndarray:
        """Draws that stand for all, each as often as its weight says."""
        levels = (np.arange(MIXED) + 0.5) / MIXED
        shuffled = np.random.default_rng(0).permutation(len(self.weights))
        cumulative = np.cumsum(self.weights[shuffled])
        return shuffled[np.minimum(np.searchsorted(cumulative, levels), len(shuffled) - 1)]

    def _joint_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """The weighted draws, each as often as its weight says."""
        from ..sampling.from_weights import resampled

        return resampled(self, self._density, self._call, self._found.z, self.weights, n, seed)

    # how it went ------------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """The logarithm of the mean weight; `error` is its standard error."""
        return self._found.log_total

    @property
    def error(self) -> float:
        """The standard error of `log_evidence`."""
        return self._found.error

    @property
    def effective(self) -> float:
        """How many independent draws the weighted ones are worth."""
        return self._found.weighted.effective

    @property
    def evidence(self) -> dict[str, float]:
        """log evidence by factor of the beliefs; what the draws add to it is called "draws"."""
        parts = self.plain.evidence
        return {**parts, "draws": self.log_evidence - sum(parts.values())}

    @property
    def code(self) -> str:
        """converged: weighted draws are told to be unusable before they are an answer."""
        return "converged"

    @property
    def iterations(self) -> int:
        """Number of sweeps of the beliefs that the draws started from."""
        return self.plain.iterations

    @property
    def trace(self) -> Trace:
        """Evidence and residual by sweep of the beliefs that the draws started from."""
        return self.plain.trace

    @property
    def restarts(self) -> Restarts:
        """One: draws have no restarts. Those of the beliefs are in `plain.restarts`."""
        return single(self.log_evidence, self.converged, self.iterations)

    @property
    def floored(self) -> dict[str, int]:
        """As of the beliefs that the draws started from."""
        return self.plain.floored

    @property
    def timing(self) -> Timing | None:
        """That of the beliefs that the draws started from."""
        return self.plain.timing

    @property
    def diagnosis(self) -> str:
        """One sentence on the draws."""
        weighted, number = self._found.weighted, len(self.weights)
        how = (
            f"{number} draws along a path to the joint density, worth {self.effective:.0f} independent ones,"
            if self._found.annealed
            else f"Weighted draws of the joint density, {number} worth {self.effective:.0f} independent ones "
            f"(Pareto k {weighted.k:.2f}),"
        )
        return f"{how} stand in for beliefs that were off; estimated error of the log evidence {self.error:.1g}."

    def explain(self) -> str:
        """What the compiler chose for the beliefs that the draws started from, and how these were corrected."""
        plan = explain_plan(self.graph, self.plain.evidence, answers="answers before the draws")
        return "\n".join([plan, self.plain.diagnosis, self.diagnosis])

    @property
    def verdict(self) -> Verdict:
        """good, with what the draws are worth and a rough evidence; after `trust()` what that has found."""
        if self._trust is not None:
            return verdict_on(self, self._trust)
        rough = f"; their log evidence may be off by {self.error:.1g}" if self.error > ROUGH else ""
        worth = f"weighted draws of the joint density, worth {self.effective:.0f} independent ones{rough}."
        return beside_modes(Verdict("good", worth), self.plain)

    def trust(self, *, seed: int = 0) -> Trust:
        """How far to trust these draws, against others from another seed: see `Posterior.trust`."""
        return self._keep(trust(self, None, seed=seed + 2, start=self.plain))

    def loo(self) -> LeaveOneOut:
        """Leave-one-out log predictive densities by Pareto-smoothed weights of the draws: see `Posterior.loo`.

        Source: vehtari2016loo, vehtari2024psis.
        """
        from ..checks.loo import drawn_leave_one_out

        return drawn_leave_one_out(self._density, self.draws, self.weights, self.binding.missing)

    evidence_gradient = refused(
        "evidence_gradient()", f"is that of a fixed point, and {_DRAWN} Ask that: posterior.plain.evidence_gradient()."
    )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the posterior, with the draws and what they correct, to a file that `cv.load(path, model)` reads.

        The file at `path` is replaced as a whole or not at all. Raises OSError where it cannot be written.
        """
        from ..files.save import Drawn, contents_of, write

        plain, found, weighted = self.plain, self._found, self._found.weighted
        contents = plain.contents() if isinstance(plain, Integrated) else contents_of(plain)
        worth = weighted.k, weighted.effective, found.error, found.annealed
        own = Drawn(found.z, weighted.weights, *worth, plain.log_evidence)
        priors = {"carried": self.carried, "baseline": lambda: self.baseline}
        told = {"verdict": self.verdict, "restarts": plain.restarts}
        write(self, path, dataclasses.replace(contents, **priors, **told, draws=own))

    # what later data start from ---------------------------------------------------------------------------------------

    @cached_property
    def carried(self) -> Beliefs:
        """What the next batch starts from: the beliefs of all variables on plates without data, by name.

        They are the projection of the draws: members of the families of beliefs, joint ones with their covariances,
        that have the expected statistics of the draws.
        """
        plain = self.plain.carried
        parts = {part: self._projected(part, family) for part, family in plain.parts.items()}
        return Beliefs(parts, plain.joints, plain.sizes)

    def _projected(self, part: Part, family: ExponentialFamily) -> ExponentialFamily:
        """The member of a family with the expected statistics of the draws of a part."""
        if part.members[0] not in self.draws:
            found = self.families.get(part.members[0])
            return found if isinstance(found, ExponentialFamily) else family
        drawn = [self.draws[name] for name in part.members]
        if len(drawn) > 1:  # a vector of all elements in turn, or one for each element of their plates
            lead = np.ndim(family.naturals()[0]) if part.plated else 1
            drawn = [np.concatenate([array.reshape((*array.shape[:lead], -1)) for array in drawn], axis=-1)]
        with double_precision():
            statistics = type(family).stats_of(drawn[0])
            return as_numpy(type(family).from_stats(tuple(np.tensordot(self.weights, s, axes=1) for s in statistics)))

    @property
    def baseline(self) -> dict[Part, Naturals]:
        """The natural parameters of the priors of the carried parts: see `AnyPosterior.baseline`."""
        return self.plain.baseline

    def naturals_of(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of the projection of the draws on the family of the belief called `name`.

        Returns and raises as `Posterior.naturals_of`; a joint belief of the plan is that before the draws.
        """
        if name not in self.draws:
            return self.plain.naturals_of(name)
        family = FOR_DOMAIN[self.model.randoms[name].domain.kind]
        own = family.from_naturals(self.plain.naturals_of(name)) if name in self.plain.graph.latent else None
        stand_in = own if own is not None else family.uniform()
        return tuple(map(np.asarray, self._projected(Part((name,)), stand_in).naturals()))

    def prior_naturals(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of the prior of the random variable called `name`: as `Posterior.prior_naturals`."""
        return self.plain.prior_naturals(name)

    def __repr__(self) -> str:
        return f"<Posterior of {self.model.name!r} by weighted draws: {', '.join(self)}; {self.diagnosis}>"


def _dense(inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: array.toarray() if is_sparse(array) else array for name, array in inputs.items()}
