"""The verdict on a posterior: how far its numbers can be relied on, in a word and in a sentence."""

from __future__ import annotations

import dataclasses

from ...compiler.answers import SERIOUS, causes_of
from ...factors.calls import methods_checked
from .inferred import Inferred

LEVELS = ("unchecked", "good", "doubtful", "poor")
SHORT = 40


@methods_checked("verdict")
@dataclasses.dataclass(frozen=True)
class Verdict:
    """How far to rely on a posterior: `level` is good, doubtful, poor or unchecked.

    `sentence` is one line: what is off, by how much and what to do, or why all is well. `ok` is true when the level is
    good.
    """

    level: str
    reason: str

    @property
    def ok(self) -> bool:
        """Whether the level is good."""
        return self.level == "good"

    @property
    def sentence(self) -> str:
        """The level and the reason, in one line."""
        return f"{self.level}: {self.reason}"

    @property
    def short(self) -> str:
        """The level, and of a good one what it rests on, for the `repr` of a posterior."""
        return self.sentence.rstrip(".") if self.ok and len(self.sentence) < SHORT else self.level

    def __str__(self) -> str:
        return self.sentence


def is_serious(posterior: Inferred) -> bool:
    """Whether something is taken apart, or a belief cannot hold the posterior, or the run did not converge."""
    return bool(causes_of(posterior.graph, SERIOUS)) or not posterior.converged
