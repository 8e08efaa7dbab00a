"""The outputs of a run: beliefs, messages, evidence, result code."""

from __future__ import annotations

import dataclasses
from typing import TypedDict

import numpy as np
from jaxtyping import Bool, Float, Int, UInt32

from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ..values.naturals import Naturals
from .bound_plan import Messages
from .control.carry import Counts, Parts, Settings
from .fixed_points import Mode, Restarts
from .progress import Timing


class NoSoundState(UnsupportedError):
    """A run met no sound state."""


class Shown(TypedDict):
    """The beliefs and messages of a state, as outputs; of rows that are dealt to devices `places` come with them."""

    beliefs: Naturals
    messages: Messages


class Ended(Shown):
    """What a run from one start leaves."""

    parts: Parts  # the evidence by factor
    evidence: Float[Array, ""]  # their sum
    found: Bool[Array, ""]  # whether the run met a sound state
    code: Int[Array, ""]
    iteration: Int[Array, ""]
    error: Float[Array, ""]  # estimated distance from the fixed point, in standard deviations
    step: Float[Array, ""]
    rejected: Int[Array, ""]
    damped: Int[Array, ""]
    floored: Counts
    improper: Int[Array, ""]  # of how many instances a cavity is no distribution, where a fixed point has none such
    residuals: Float[Array, " trace"]
    evidences: Float[Array, " trace"]  # NaN where not recorded, or where the sweep was dropped


class Outputs(Ended):
    """What the best of several starts leaves, and the others' evidence; of a batch with one more axis in front."""

    restart: Int[Array, ""]
    all_evidence: Float[Array, " restart"]  # minus infinity where a start led to no sound state
    key: UInt32[Array, " 2"]


@dataclasses.dataclass(frozen=True)
class Result:
    """The outputs of the compiled program, and how its controller worked."""

    outputs: Outputs
    settings: Settings
    timing: Timing | None = None  # of an inference on its own
    remark: str = ""  # on what was not done, for the diagnosis
    modes: tuple[Mode, ...] = ()  # of a run with several starts: its distinct fixed points, best first
    restarts: Restarts | None = None  # of a posterior that was read from a file, which has no states
    position: int = 0  # among the fixed points

    def number(self, name: str) -> float | int | bool:
        """A scalar output, by its name in `Outputs`."""
        return np.asarray(self.outputs[name]).item()

    def demand_sound(self, model: str) -> None:
        """NoSoundState where the run met none: there is nothing that could be returned."""
        if not self.number("found"):
            raise NoSoundState(
                f"The inference of {model!r} found no sound state in {int(self.number('iteration'))} sweeps: from "
                "every start, also from narrow ones, a belief stays improper, or a factor's energy is infinite or not "
                "a number. So there are no beliefs to return. Give variables whose priors are very vague a scale near "
                "that of the data, standardise the data, give more sweeps (max_iterations=) if there were few, or try "
                "another method (method='ep' or 'vmp') for the factors that are not conjugate."
            )
