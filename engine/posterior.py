"""The posterior: what inference left, and the questions that a user asks of it, each answered in a room below.

Checks, pictures and files are loaded by the question: few programs ask, and they load much of SciPy.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from ..compiler.data.bind import plate_sizes
from ..factors.arrays import Key
from ..factors.calls import methods_checked
from ..factors.errors import UnsupportedError
from ..factors.families import ExponentialFamily
from .answers import next_prior
from .answers.inferred import Inferred
from .answers.marginal import Marginal
from .answers.next_prior import Beliefs, Contribution, Naturals, Part
from .answers.outcome import Outcome
from .answers.predict import inputs_in, predict
from .answers.verdict import Verdict
from .options import seed_of
from .run.diagnosis import counted
from .support.asked_arguments import UserData, check_counts, known_name, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .answers.arviz import ArvizData
    from .checks.compare import Comparison
    from .checks.corrected_evidence import CorrectedEvidence
    from .checks.corrected_marginals import CorrectedMarginal
    from .checks.importance import Importance
    from .checks.loo import LeaveOneOut
    from .checks.nuts import Check
    from .checks.stability import Stability
    from .checks.trust import Trust
    from .tempering.check import EvidenceCheck

SECONDS = 10.0  # of weighted draws that joint draws may take

Prior: TypeAlias = Mapping[str, Marginal | ExponentialFamily]  # prior=, as users give it: a posterior is one too
Start: TypeAlias = Mapping[str, Marginal | ExponentialFamily]  # start=, as users give it


@methods_checked("posterior")
class AnyPosterior(Inferred):
    """What every kind of posterior is asked alike."""

    _trust: Trust | None = None  # what the last comparison found
    _verdict: Verdict | None = None
    _seconds = 1.0  # that a comparison for the verdict may take

    @property
    def verdict(self) -> Verdict:
        """How far to rely on this posterior: `print(posterior.verdict)`; see `Verdict`.

        Where the plan is exact it says so at no cost. Else some thousand weighted draws of the joint log density are
        compared, when it is first asked for and where that is expected to take about a second, or as long as `effort=`
        allowed; after `trust()` it is what that has found. "unchecked" where neither is possible.
        """
        if (known := self._known()) is not None:
            return known
        from .checks.verdict import compared, verdict_on

        self._trust = self._trust or compared(self, self._seconds)
        self._verdict = verdict_on(self, self._trust)
        return self._verdict

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as the file that `save` writes, with the model; nothing is inferred again."""
        import tempfile  # few posteriors are pickled

        from ..compiler.portable import called

        with tempfile.TemporaryDirectory(prefix="cavity-") as place:
            path = os.path.join(place, "posterior")
            self.save(path)
            with open(path, "rb") as file:
                return called, ("engine.load", "of_bytes", file.read(), self.model)

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the posterior to the file at `path`, which `cv.load(path, model)` reads."""
        ...

    def _tell(self, verdict: Verdict | None) -> None:
        """Gives it the verdict that it was saved with, if any."""
        self._verdict = verdict

    def _weighted_draws(self) -> Trust:
        """A comparison that has weighted draws of the joint density, where they are usable: the last, or a new one."""
        from .checks.verdict import compared

        return self._trust or compared(self, SECONDS)

    def _may_spend(self, seconds: float) -> None:
        """What was given more effort is judged with more: else an answer that is right may only be doubted."""
        self._seconds = max(self._seconds, seconds)

    def _known(self) -> Verdict | None:
        """The verdict as far as it costs nothing: that of structure, or one that was asked for before."""
        if self._verdict is None and self._trust is None:
            from .checks.verdict import settled

            self._verdict = settled(self)
        return self._verdict

    def _keep(self, found: Trust) -> Trust:
        """Keeps what a comparison has found, for the verdict."""
        self._trust, self._verdict = found, None
        return found

    def summary(self) -> str:
        """A table of the marginals: name, family, shape, and mean and sd of the first elements; a text to print.

        The lines below it have the log evidence and the diagnosis, the verdict, and who ran the sweeps and how long
        that took.
        """
        from .answers.summary import summary

        return summary(self, self.log_evidence, self.diagnosis, f"verdict: {self.verdict}", self.timing)

    def check(self, against: str = "auto", **options: int) -> Check:
        """Runs a sampler beside this posterior and compares: `print(posterior.check())`.

        `against` is "nuts", which sums discrete variables out (`engine.checks.nuts.check`), "gibbs", which compares
        them too (`engine.sampling.check.check`), or "auto": NUTS where the model has a smooth density, else Gibbs.
        `options` are whole numbers draws=, warmup=, chains= and seed=. Needs the extra `mcmc`. Returns a `Check`.
        Raises ModelError for another sampler or counts below one, UnsupportedError without NumPyro or for a model
        that the sampler does not serve. Source: hoffman2014nuts.
        """
        from .sampling.check import checked

        return checked(self, against, **options)

    def check_evidence(self, *, sweeps: int = 256, seed: int = 0, by: str = "auto") -> EvidenceCheck:
        """How far `log_evidence` is from the truth, in one line: `print(posterior.check_evidence())`.

        `by`: "draws" are weighted draws of the joint density; "series" is `corrected_evidence`, whose error is what all
        pairs of factors add, their signs aside; "tempering" are chains on a path from these beliefs, of which `sweeps`
        are kept; "auto" is the series beyond 50 numbers where EP has one that can be trusted, else draws where they are
        usable, else tempering. `seed` decides draws and chains. Where components are alike all of their orders count,
        and what these add is told; where that is not known (chains of states), the path begins at the prior. Returns
        an `EvidenceCheck`. Raises ModelError for no such number or way, UnsupportedError for a model without a joint
        density, and for a way that was asked for and is of no use. Source: opper2013perturbative, paquet2007thesis,
        vehtari2024psis.
        """
        from .tempering.check import check_evidence

        return check_evidence(self, sweeps=sweeps, seed=seed, by=by)

    def importance(self, *, draws: int = 4000, seed: int = 0) -> Importance:
        """Importance sampling with these beliefs as the proposal: `print(posterior.importance())`.

        `draws`, at least 25, come from the product of the marginals of the continuous variables, `seed` decides them;
        each is weighted by the joint density, in which discrete variables are summed out. Returns an `Importance` with
        the draws, their weights smoothed and as they were, effective number and Pareto k, and the log evidence by their
        mean. Raises ModelError or DataError for no such number, UnsupportedError for a model without a joint density
        and for beliefs with mass outside of their variable's bounds. Source: vehtari2024psis.
        """
        from .checks.importance import importance

        return importance(self, draws, seed)

    def stability(self, *, count: int = 5) -> Stability:
        """The largest eigenvalues of an undamped sweep's Jacobian here, with the variables they belong to.

        Within the unit circle plain sweeps come back to this fixed point, by the largest modulus in each; at or below
        -1 they oscillate, which damping= cures, and beyond 1 they leave it. `count` is how many eigenvalues, at least
        1. Returns a `Stability`. Raises ModelError for no such number, UnsupportedError for a run that has not
        converged, and for a posterior of several runs. Source: paquet2007thesis.
        """
        from .checks.stability import stability

        return stability(self, count)

    @cached_property
    def corrected_evidence(self) -> CorrectedEvidence:
        """log p(data) by EP, with the correction of second order that pairs of factors make: a number.

        log p(data) is EP's `log_evidence` + log R, R = E_q prod_n (q_n / q), q_n being the tilted distributions; what
        is added is log R up to the terms of two factors, by cumulants for linear forms of Gaussians, in closed form for
        mixtures. The orders of alike components are no part of it. Returns a `CorrectedEvidence`, a float with `plain`,
        `correction`, `trusted` and `warning`; warns (`CavityWarning`) where the series cannot be trusted. Raises
        UnsupportedError for a run that has not converged, that VMP or power EP has a part in, or whose factors are
        neither of these. Source: opper2013perturbative, paquet2007thesis.
        """
        from .checks.corrected_evidence import corrected_evidence

        return corrected_evidence(self)

    @cached_property
    def corrected_marginals(self) -> dict[str, CorrectedMarginal]:
        """Means and sds of EP's Gaussian beliefs with the correction of second order that pairs of factors make.

        The same series as that of `corrected_evidence`, whose `trusted` says whether it can be relied on. Returns by
        name a `CorrectedMarginal`, the arrays `mean` and `sd`, of every variable of a linear form. Raises
        UnsupportedError as that does, and for mixtures. Source: opper2013perturbative.
        """
        from .checks.corrected_marginals import corrected_marginals

        return corrected_marginals(self)

    def all_modes(self) -> tuple[AnyPosterior, ...]:
        """The posteriors of all distinct fixed points that the starts met: see `Posterior.all_modes`.

        Raises UnsupportedError: an answer of weighted draws, or of a grid, is of no single fixed point.
        """
        raise UnsupportedError(
            "This posterior is made of weighted draws, or of runs over a grid, and is of no single fixed point. Those "
            "that its starts met are posterior.plain.all_modes(), and accuracy='fast' has no other."
        )

    @property
    @abstractmethod
    def carried(self) -> Beliefs:
        """What the next batch starts from: the beliefs of all variables on plates without data, by name."""

    @property
    @abstractmethod
    def baseline(self) -> dict[Part, Naturals]:
        """The natural parameters of the priors of the carried parts, which `contribution` takes away.

        Raises UnsupportedError where the prior of one is random and was not given with `prior=`.
        """

    @property
    def contribution(self) -> Contribution:
        """What this run's data added to the carried variables over their priors: beliefs divided by priors.

        Raises UnsupportedError as `baseline`. Source: minka2001thesis.
        """
        return self.carried.over(self.baseline)

    def __add__(self, other: Contribution) -> Beliefs:
        return self.carried + other

    def __sub__(self, other: Contribution) -> Beliefs:
        return self.carried - other

    def predict(
        self,
        data: UserData,
        sizes: Mapping[str, int] | None = None,
        new: Collection[str] | None = None,
        unseen: str = "error",
    ) -> dict[str, Marginal]:
        """Predictive marginals for new inputs: of every variable that is not learned and that they change.

        `data` gives all inputs on the plates that change (new rows, new games); `sizes` the sizes of changed plates
        without inputs. All that was learned is carried over, but for variables on plates whose elements are new, which
        have their prior: `new` names these plates, and where it is left out the data tell (see
        `engine.answers.new_elements`). `unseen`: what names of elements are that nothing was learned of, "error", or
        "prior": the model is then inferred once more with these elements. Returns marginals by name; as an array each
        is its mean, for a category the class probabilities. Raises DataError for inputs that do not fit, and where
        learned variables can neither be carried nor dropped, ModelError for another `unseen`, UnsupportedError for
        unseen names of a plate with constants, inputs or slices of its own.
        """
        from .answers.unseen import with_unseen  # few names are unseen

        data = inputs_in(self.model, data)
        return with_unseen(self, data, unseen)._predicted(data, sizes, new)

    @abstractmethod
    def _predicted(
        self, data: UserData, sizes: Mapping[str, int] | None, new: Collection[str] | None
    ) -> dict[str, Marginal]:
        """The marginals of `predict`, all of whose names are known."""

    def sample(self, n: int = 1000, seed: int | Key = 0) -> dict[str, np.ndarray]:
        """Joint draws of the posterior, by name: of all variables that are not wholly observed, and named expressions.

        `n` is how many, at least 1, `seed` a whole number or a key of jax.random. They are weighted draws of the joint
        density, each as often as its weight says, so that variables depend on each other as in the model; where such
        draws are not usable (thousands of numbers, no density) they come from the marginals, variables apart, and a
        `CavityWarning` says so. Returns arrays shaped (n,) + plates + event. Raises ModelError for no such numbers.
        """
        check_counts("posterior.sample", n=n)
        return self._joint_draws(int(n), seed_of(seed))

    @abstractmethod
    def _joint_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """Draws by name, (n, plates, event); the same position of all arrays belongs together."""

    def predictive(
        self,
        n: int = 1000,
        data: UserData | None = None,
        seed: int | Key = 0,
        sizes: Mapping[str, int] | None = None,
        new: Collection[str] | None = None,
        unseen: str = "error",
    ) -> dict[str, np.ndarray]:
        """Draws of what the model generates given joint draws of the posterior: data like those observed, or new ones.

        Without `data` everything observed is drawn anew, for the inputs as they were; with it what these inputs change,
        as `predict` does, whose `sizes`, `new` and `unseen` these are. `n` is how many, `seed` a number or a key.
        Returns arrays by name, shaped (n,) + plates + event. Raises ModelError for no such numbers, DataError as
        `predict`, UnsupportedError for a variable without draws.
        """
        from .answers.unseen import with_unseen  # few names are unseen
        from .sampling.simulate import predictive

        check_counts("posterior.predictive", n=n)
        data = None if data is None else inputs_in(self.model, data)
        posterior = with_unseen(self, {} if data is None else data, unseen)
        draws = posterior._joint_draws(int(n), seed_of(seed))
        return predictive(posterior, draws, int(n), data, seed_of(seed) + 1, sizes, new)

    def covariance(self, first: str, second: str | None = None) -> np.ndarray:
        """The covariance of the elements of two variables or named expressions: `posterior.covariance("a", "b")`.

        `first` and `second` are their names, the same one where the second is left out. Exact where one joint belief
        of an exact plan has both, else of 4,000 joint draws (see `sample`), and then good to a few hundredths. Returns
        an array with the axes of the first, then those of the second: plates + event + plates + event. Raises KeyError
        for a name that there are no draws of.
        """
        from .sampling.covariances import covariance

        return covariance(self, self._joint_draws, first, first if second is None else second)

    def compare(self, other: AnyPosterior | Sequence[AnyPosterior]) -> Comparison:
        """This posterior beside others of the same data: `print(posterior.compare(other))`; see `cv.compare`.

        `other` is one posterior, or several. Returns a `Comparison`. Raises as `cv.compare`.
        """
        from .checks.compare import compare

        return compare([self, *(other if isinstance(other, (list, tuple)) else [other])])

    def to_frame(self, draws: int | None = None, *, seed: int = 0) -> Any:
        """The marginals as a pandas DataFrame, a row for each number: mean, sd, and quantiles of .05, .5 and .95.

        The index is its name, with its place such as "skill[3]". With `draws` the joint draws instead: a row for each,
        a column for each number; `seed` decides them. Raises UnsupportedError without pandas, ModelError for a number
        of draws that is none.
        """
        from .answers.frames import frame_of_draws, frame_of_marginals

        return frame_of_marginals(self) if draws is None else frame_of_draws(self, self.sample(draws, seed))

    def to_dataframe(self, draws: int | None = None, *, seed: int = 0) -> Any:
        """The same as `to_frame`, by the name that it has in other libraries.

        `draws` and `seed` are those of `to_frame`. Returns a pandas DataFrame. Raises as `to_frame`.
        """
        return self.to_frame(draws, seed=seed)

    def to_xarray(self, draws: int = 1000, *, seed: int = 0) -> Any:
        """Joint draws as an xarray Dataset, whose dimensions are "draw" and the plates, with the names of elements.

        `draws` is how many, `seed` decides them. Raises UnsupportedError without xarray, ModelError for no such number.
        """
        from .answers.frames import dataset_of_draws

        return dataset_of_draws(self, self.sample(draws, seed))

    def to_arviz(self, draws: int = 1000, *, seed: int = 0) -> ArvizData:
        """Independent draws from the marginals, with the data, in the form that ArviZ reads. Needs the extra `arviz`.

        A DataTree with ArviZ 1, an InferenceData before: groups posterior, observed_data and constant_data, dimensions
        named as the plates. The draws of different variables are independent: compare no two of them. `draws` is how
        many, at least 1; `seed` decides them all. Raises ValueError for no such number, UnsupportedError where ArviZ is
        not installed.
        """
        from .answers.arviz import to_arviz

        return to_arviz(self, draws, seed)

    def report(self, path: str | os.PathLike[str], *, draws: int = 200, seed: int = 0) -> None:
        """Writes one page of HTML to the file at `path`: `posterior.report("skills.html")`.

        It has the picture of the model, the data, the plan with its reasons, convergence, marginals, predictive checks
        of `draws` data sets that `seed` decides, the evidence by factor, the verdict and the versions. The page needs
        no other file, no network and no JavaScript. Of large models the first nodes, rows and elements are shown, and
        it is told. Raises ModelError for no such number, OSError where the file cannot be written.
        """
        from .files.paths import text_of, told
        from .html.report import Findings, report

        text_of(path)
        check_counts("posterior.report", draws=draws)
        verdict = self.verdict
        compared = "" if self._trust is None else str(self._trust)
        page = report(self, Findings(verdict, compared, lambda n: self.predictive(n, seed=seed), int(draws)))
        with told(path, "written"), open(path, "w", encoding="utf-8") as file:
            file.write(page)

    def _repr_html_(self) -> str:
        """Its verdict and marginals in a notebook, with the model and the plan folded below."""
        from .html.answers import html_of_posterior

        return html_of_posterior(self, self.verdict)

    @overload
    def plot(self, *names: str, ax: None = None) -> Figure: ...
    @overload
    def plot(self, *names: str, ax: Axes) -> Axes: ...
    def plot(self, *names: str, ax: Axes | None = None) -> Figure | Axes:
        """A figure of the marginals of the variables called `names` (all latent ones by default) and of convergence.

        Needs the extra `plot`. Returns a matplotlib Figure. With `ax`, axes of a figure of your own, the marginal of
        the one variable that is named is drawn there, and `ax` is returned. Raises DataError for an observed variable,
        KeyError for an unknown one, ModelError for several on one `ax`, UnsupportedError where matplotlib is not
        installed.
        """
        from .plots.posterior import plot_posterior

        return plot_posterior(self, names, ax=ax)


@methods_checked("posterior")
class Posterior(Outcome, AnyPosterior):
    """The answer of an inference: `posterior["v"]` is the marginal of the variable v.

    `log_evidence` estimates log p(data): exact on trees of exact operators, the Bethe approximation over EP blocks, a
    lower bound where all factors are VMP with exact or bounding operators. `converged`, `diagnosis` and `trace` tell
    how the run went.
    """

    def _predicted(
        self, data: UserData, sizes: Mapping[str, int] | None, new: Collection[str] | None
    ) -> dict[str, Marginal]:
        return predict(self, named(data), plate_sizes(sizes), new)

    def _joint_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """Of weighted draws of the joint density, where these are usable."""
        from .sampling.from_weights import of_beliefs, of_marginals

        return of_beliefs(self, self._weighted_draws, lambda: of_marginals(self, n, seed), n, seed)

    def all_modes(self) -> tuple[Posterior, ...]:
        """The posteriors of all distinct fixed points that several starts met, best first, as `restarts` lists them.

        Each answers as this one does (marginals, predictions, `start=` of another run); their `log_evidence` is that of
        their fixed point. States are kept once for each, in memory alone: raises UnsupportedError for a posterior
        from a file or from a batch that had several starts.
        """
        modes = self.result.modes
        if not modes and len(self.restarts.by_start) > 1:
            raise UnsupportedError(
                "Of this posterior, from a file or from a batch, the state of the best start alone is kept. Infer "
                "again with cv.infer(model, data, restarts=...), and ask that posterior."
            )
        results = [replace(self.result, outputs=mode.outputs, position=i) for i, mode in enumerate(modes)]
        return tuple(
            Posterior(self.request, self.machine, self.arrays, self.binding, result, self.predictors)
            for result in results
        ) or (self,)

    def prior_naturals(self, name: str) -> tuple[np.ndarray, ...]:
        """The natural parameters of the prior of the random variable called `name`.

        Returns them in the order of the sufficient statistics of its family, each shaped plates + event axes. Raises
        UnsupportedError where the prior depends on other random variables, or is of another family than the beliefs,
        KeyError for no random variable.
        """
        return next_prior.prior_naturals(self.machine, self.arrays, known_name(name, self.model.randoms))

    @property
    def carried(self) -> Beliefs:
        """What the next batch starts from: the beliefs of all variables on plates without data, by name."""
        return next_prior.carried(self)

    @property
    def baseline(self) -> dict[Part, Naturals]:
        """The natural parameters of the priors of the carried parts: see `AnyPosterior.baseline`."""
        return next_prior.baseline(self.machine, self.arrays, self.carried)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the posterior to a file that `cv.load(path, model)` reads: arrays and JSON, nothing that runs.

        It has the verdict, where that was asked for before or costs nothing. The file at `path` is replaced as a whole
        or not at all. Raises OSError where it cannot be written.
        """
        from .files.save import save

        save(self, path, self._known())

    def trust(self, *, seed: int = 0) -> Trust:
        """How far to trust these beliefs, against the model's own joint log density: `print(posterior.trust())`.

        Takes seconds; see `engine.checks.trust`. `seed` decides the draws. `verdict` is its verdict from then on.
        Returns a `Trust`; what cannot be compared is "unchecked", with the reason. Source: vehtari2024psis,
        yao2018yes.
        """
        from .checks.trust import trust

        return self._keep(trust(self, self, seed=seed))

    def loo(self) -> LeaveOneOut:
        """log p(y_i | all other observations) by observed variable, from the cavities; see `engine.checks.loo`.

        Nothing is fitted again. Where a factor does not tell, weighted draws of the joint density do (of mixtures, of
        ordered outcomes), in seconds. Returns a `LeaveOneOut`; its `unavailable` has the reasons of variables without.
        Source: opper2000gaussian, vehtari2016loo.
        """
        from .checks.loo import leave_one_out, with_draws

        return with_draws(leave_one_out(self), self)

    def evidence_gradient(self, *names: str) -> dict[str, np.ndarray]:
        """The gradient of `log_evidence` in the inputs called `names` (all continuous ones by default).

        It holds at the fixed point: infer with a small tolerance. Returns arrays shaped as the inputs. Raises DataError
        for a name that is no continuous input, UnsupportedError when the run has not converged. Source:
        minka2005divergence, seeger2005expectation.
        """
        from .answers.evidence_gradient import gradient

        return gradient(self, names)

    def __repr__(self) -> str:
        return (
            f"<Posterior of {self.model.name!r}: {', '.join(self)}; "
            f"log evidence {self.log_evidence:.6g}; {self.code} in {counted(self.iterations, 'sweep')}; "
            f"{self.verdict.short}>"
        )
