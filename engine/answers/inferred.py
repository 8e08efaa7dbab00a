"""What can be read of every inference, whether of one run or of many over a grid.

What only reads a posterior (checks, densities, pictures, summaries) takes an `Inferred`, and knows neither the programs
that run nor the posteriors that a user asks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.element_names import Label
from ...compiler.graph import Plan
from ...compiler.language.model import Model
from ...compiler.language.nodes import Plate
from ...compiler.schedules import Schedule
from ...factors.calls import methods_checked
from ...factors.families import ExponentialFamily
from ..data.missing_and_sparse import Arrays
from ..distributions.partly_observed import Completed
from ..distributions.shown import Shown
from ..options import Request
from ..run.fixed_points import Restarts
from ..run.machine import Machine
from ..run.progress import Timing
from ..run.trace import Trace
from .marginal import Axis, Marginal

Belief: TypeAlias = ExponentialFamily | Shown | Completed  # what has moments; a point and a prediction need not


def axes_of(model: Model, name: str, names: Mapping[str, tuple[Label, ...]]) -> tuple[Axis, ...]:
    """What the axes of the mean of a variable are."""
    node = {**model.randoms, **model.lets}[name]
    axes = [Axis(plate.name, names.get(plate.name)) for plate in node.plates]
    if node.domain.is_category:
        size = node.domain.size
        own = size.name if isinstance(size, Plate) else name
        axes.append(Axis(own, names.get(own), is_class=True))
    return tuple(axes)


@methods_checked("posterior")
class Inferred(Mapping[str, Marginal]):
    """Marginals by name, the evidence, how inference went, and what it was made of.

    `request` is what was asked for and `binding` the data, checked against the model.
    """

    def __init__(self, request: Request, machine: Machine, arrays: Arrays, binding: Binding) -> None:
        self.request, self.binding = request, binding
        self._machine, self._arrays = machine, arrays
        self._marginals: dict[str, Marginal] = {}

    # marginals --------------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Marginal:
        if not isinstance(name, str):
            raise KeyError(f"A posterior has no variable {name!r}: it has marginals by name, as posterior['x'].")
        if name not in self._marginals:
            self._marginals[name] = self._marginal(name).along(axes_of(self.model, name, self.binding.names))
        return self._marginals[name]

    @abstractmethod
    def _marginal(self, name: str) -> Marginal:
        """The marginal of a variable or a named expression; KeyError for a name that the model does not have."""

    @property
    @abstractmethod
    def families(self) -> Mapping[str, Belief]:
        """The families of all that has a belief, by name: variables, joint ones, and what was integrated out."""

    @property
    def beliefs(self) -> dict[str, Belief]:
        """The families of the random variables that inference gave a belief, by name."""
        families = self.families
        return {name: families[name] for name in self.model.randoms if name in families}

    # how it went ------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """The logarithm of the evidence."""

    @property
    @abstractmethod
    def evidence(self) -> dict[str, float]:
        """log evidence by factor: the parts sum to the total."""

    @property
    @abstractmethod
    def timing(self) -> Timing | None:
        """Who ran the sweeps, and the seconds of each stage; None where the inference was one of many."""

    @property
    def converged(self) -> bool:
        """True when the estimated distance from the fixed point is below the tolerance (at every point of a grid)."""
        return self.code == "converged"

    @property
    @abstractmethod
    def code(self) -> str:
        """converged, slow, oscillating, diverged or contradiction."""

    @property
    @abstractmethod
    def iterations(self) -> int:
        """Number of sweeps."""

    @property
    @abstractmethod
    def trace(self) -> Trace:
        """Evidence and residual by sweep."""

    @property
    @abstractmethod
    def restarts(self) -> Restarts:
        """The distinct fixed points that the starts met, best first; as an array the log evidence of every start."""

    @property
    @abstractmethod
    def floored(self) -> dict[str, int]:
        """How often a cavity would have been improper and was floored, by factor."""

    @property
    @abstractmethod
    def diagnosis(self) -> str:
        """One sentence on how it ended and what to do."""

    @abstractmethod
    def explain(self) -> str:
        """What the compiler chose, factor by factor, and why, and how inference went."""

    @property
    def schedule(self) -> Schedule:
        """The order of the updates in a sweep, with all names: `infer(..., schedule=)` takes it, also changed."""
        return self.graph.updates()

    # what it was made of ----------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model that was asked for, as the user declared it."""
        return self.request.model

    @property
    def graph(self) -> Plan:
        """The plan that was run (of an integration: at every point of the grid, what it integrates being data)."""
        return self._machine.graph

    @property
    def machine(self) -> Machine:
        """The functions of the plan for the plate sizes of the data."""
        return self._machine

    @property
    def arrays(self) -> Arrays:
        """What the program was called with (of an integration: that of the plain posterior)."""
        return self._arrays

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The observations by name."""
        return self.binding.observed
