"""Distributions that are no family's own: a member of their domain's family stands for them in messages."""

from __future__ import annotations

import abc
from typing import Any

from ...factors.families import Family

Array = Any


class Shown(Family):
    """A distribution that is shown as what it is, and read by messages as its `stand_in`."""

    @abc.abstractmethod
    def stand_in(self) -> Any:
        """The member of the domain's family with the same statistics, or the same mean and variance."""

    @property
    def kind(self) -> str:
        """The kind of its domain."""
        return self.stand_in().kind

    def moments(self) -> Any:
        """Those of the stand-in."""
        return self.stand_in().moments()

    def moments_at(self, value: Array, *size: int) -> Any:
        """The moments of a point."""
        return self.stand_in().moments_at(value, *size)

    def expected_stats(self) -> Any:
        """Those of the stand-in."""
        return self.stand_in().expected_stats()
