"""What can be read of a saved posterior without its model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..compiler.given import Part
from ..factors.errors import UnsupportedError
from ..factors.families import Family
from .marginal import Marginal
from .stream import Beliefs, Contribution
from .trace import Trace


@dataclasses.dataclass(frozen=True, eq=False)
class Saved(Mapping[str, Marginal]):
    """A posterior read from a file without its model: it is read as a `Posterior` is, and may be given as a prior.

    Only what needs the model is missing: `predict`, and marginals that had no family.
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
    restarts: np.ndarray
    floored: dict[str, int]
    diagnosis: str
    explanation: str
    carried: Beliefs
    baseline: Mapping[Part, Any] | str
    _verdict: ClassVar[None] = None  # of trust(), which needs the model

    @property
    def converged(self) -> bool:
        """True when the estimated distance from the fixed point is below the tolerance."""
        return self.code == "converged"

    def __getitem__(self, name: str) -> Marginal:
        if name in self.without_family:
            raise UnsupportedError(self.without_family[name])
        if name not in self.families:
            raise KeyError(f"The saved posterior has no variable {name!r}. It has: {', '.join(self.families)}.")
        return Marginal(self.families[name], name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)

    @property
    def contribution(self) -> Contribution:
        """What that run's data added to the carried variables over their priors."""
        if isinstance(self.baseline, str):
            raise UnsupportedError(self.baseline)
        return self.carried.over(self.baseline)

    def __add__(self, other: Contribution) -> Beliefs:
        return self.carried + other

    def __sub__(self, other: Contribution) -> Beliefs:
        return self.carried - other

    def explain(self) -> str:
        """What the compiler chose, factor by factor, and why, as it was told when the posterior was saved."""
        return self.explanation

    def summary(self) -> str:
        """A table of the marginals: name, plates, family, and mean and sd of the first elements."""
        from .summary import summary

        return summary(self)

    def predict(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Predictions need the model; UnsupportedError says how to give it."""
        raise UnsupportedError(
            f"predict() needs the model '{self.name}', and the file holds none. Load it with the model that made it: "
            "cv.load(path, model)."
        )

    def __repr__(self) -> str:
        return (
            f"<Saved posterior of {self.name!r}: {', '.join(self)}; "
            f"log evidence {self.log_evidence:.6g}; {self.code} in {self.iterations} sweeps>"
        )
