"""What can be read of a saved posterior without its model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ...compiler.passes.given import Part
from ...factors.calls import methods_checked
from ...factors.errors import UnsupportedError
from ...factors.families import Family
from ..answers.marginal import Axis, Marginal
from ..answers.next_prior import Beliefs, Contribution, Naturals
from ..answers.refused import refused, refused_property
from ..answers.summary import summary
from ..answers.verdict import Verdict
from ..run.diagnosis import counted
from ..run.fixed_points import Restarts
from ..run.progress import Timing
from ..run.trace import Trace

_NO_MODEL = (
    "needs the model, and a file holds none. Load the posterior with the model that made it: cv.load(path, model)."
)


@methods_checked("posterior")
@dataclasses.dataclass(frozen=True, eq=False)
class Saved(Mapping[str, Marginal]):
    """A posterior read from a file without its model: it is read as a `Posterior` is, and may be given as a prior.

    What needs the model, such as `predict` and `trust`, and marginals that had no family, raise UnsupportedError.

    `name` is that of the model, `families` are those of the marginals and `without_family` the reasons of variables
    that have none, `sizes` those of the plates, `baseline` the natural parameters of the priors of the carried parts or
    why there are none. `log_evidence`, `evidence`, `code`, `iterations`, `trace`, `restarts`, `floored`, `diagnosis`,
    `explanation` (what `explain` told), `carried` and `timing` are as of the `Posterior` that was saved; `told` is the
    verdict, None where it had not been asked for, and `axes` what the axes of each mean are.
    """

    name: str
    families: dict[str, Family]
    without_family: dict[str, str]
    sizes: dict[str, int]
    log_evidence: float
    evidence: dict[str, float]
    code: str
    iterations: int
    trace: Trace
    restarts: Restarts
    floored: dict[str, int]
    diagnosis: str
    explanation: str
    carried: Beliefs
    baseline: Mapping[Part, Naturals] | str
    timing: Timing | None = None
    told: Verdict | None = None
    axes: Mapping[str, tuple[Axis, ...]] = dataclasses.field(default_factory=dict)

    @property
    def converged(self) -> bool:
        """True when the estimated distance from the fixed point is below the tolerance."""
        return self.code == "converged"

    def __getitem__(self, name: str) -> Marginal:
        if name in self.without_family:
            raise UnsupportedError(self.without_family[name])
        if name not in self.families:
            raise KeyError(f"The saved posterior has no variable {name!r}. It has: {', '.join(self.families)}.")
        return Marginal(self.families[name], name).along(self.axes.get(name, ()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)

    @property
    def contribution(self) -> Contribution:
        """What that run's data added to the carried variables over their priors.

        Raises UnsupportedError where the prior of one was random.
        """
        if isinstance(self.baseline, str):
            raise UnsupportedError(self.baseline)
        return self.carried.over(self.baseline)

    def __add__(self, other: Contribution) -> Beliefs:
        return self.carried + other

    def __sub__(self, other: Contribution) -> Beliefs:
        return self.carried - other

    @property
    def verdict(self) -> Verdict:
        """That with which it was saved; "unchecked" where none had been asked for: a comparison needs the model."""
        unknown = f"none had been asked for when it was saved, and a comparison {_NO_MODEL}"
        return self.told or Verdict("unchecked", unknown)

    def explain(self) -> str:
        """What the compiler chose, factor by factor, and why, as it was told when the posterior was saved."""
        return self.explanation

    def summary(self) -> str:
        """A table of the marginals: name, plates, family, and mean and sd of the first elements."""
        return summary(self, self.log_evidence, self.diagnosis, f"verdict: {self.verdict}", self.timing)

    def to_frame(self, draws: int | None = None, *, seed: int = 0) -> Any:
        """The marginals as a pandas DataFrame: see `Posterior.to_frame`.

        `draws` and `seed` need the model: UnsupportedError.
        """
        from ..answers.frames import frame_of_marginals

        return frame_of_marginals(self) if draws is None else self.sample(draws, seed)

    def to_dataframe(self, draws: int | None = None, *, seed: int = 0) -> Any:
        """The same as `to_frame`: `draws` and `seed` need the model, UnsupportedError."""
        return self.to_frame(draws, seed=seed)

    predict = refused("predict()", _NO_MODEL)
    save = refused("save()", f"writes what the file holds already, and {_NO_MODEL}")
    trust = refused("trust()", _NO_MODEL)
    check = refused("check()", _NO_MODEL)
    check_evidence = refused("check_evidence()", _NO_MODEL)
    importance = refused("importance()", _NO_MODEL)
    stability = refused("stability()", _NO_MODEL)
    all_modes = refused("all_modes()", _NO_MODEL)
    loo = refused("loo()", _NO_MODEL)
    evidence_gradient = refused("evidence_gradient()", _NO_MODEL)
    report = refused("report()", _NO_MODEL)
    sample = refused("sample()", _NO_MODEL)
    predictive = refused("predictive()", _NO_MODEL)
    compare = refused("compare()", _NO_MODEL)
    covariance = refused("covariance()", _NO_MODEL)
    to_arviz = refused("to_arviz()", _NO_MODEL)
    to_xarray = refused("to_xarray()", _NO_MODEL)
    plot = refused("plot()", _NO_MODEL)
    naturals_of = refused("naturals_of()", _NO_MODEL)
    prior_naturals = refused("prior_naturals()", _NO_MODEL)
    model = refused_property("model", _NO_MODEL)
    graph = refused_property("graph", _NO_MODEL)
    machine = refused_property("machine", _NO_MODEL)
    schedule = refused_property("schedule", _NO_MODEL)
    corrected_evidence = refused_property("corrected_evidence", _NO_MODEL)
    corrected_marginals = refused_property("corrected_marginals", _NO_MODEL)
    arrays = refused_property("arrays", _NO_MODEL)
    observed = refused_property("observed", _NO_MODEL)

    @property
    def beliefs(self) -> dict[str, Family]:
        """The families of the variables that the file holds, by name."""
        return dict(self.families)

    def _repr_html_(self) -> str:
        """Its verdict and marginals, in a notebook."""
        from ...compiler.portable import called  # what draws reads marginals

        return called("engine.html.several", "html_of_saved", self, self)

    def __repr__(self) -> str:
        return (
            f"<Saved posterior of {self.name!r}: {', '.join(self)}; "
            f"log evidence {self.log_evidence:.6g}; {self.code} in {counted(self.iterations, 'sweep')}>"
        )
