"""Distributions that are no family's own: a member of their domain's family stands for them in messages."""

from __future__ import annotations

import abc

from ...factors.arrays import Array, Numeric
from ...factors.families import Family
from ...factors.families.base import ExponentialFamily, Moments, Naturals


class Shown(Family):
    """A distribution that is shown as what it is, and read by messages as its `stand_in`."""

    @abc.abstractmethod
    def stand_in(self) -> ExponentialFamily:
        """The member of the domain's family with the same statistics, or the same mean and variance."""

    @abc.abstractmethod
    def log_density(self, value: Numeric) -> Array:
        """The logarithm of the density at a value shaped plates + event (more leading axes allowed)."""

    @property
    def kind(self) -> str:
        """The kind of its domain."""
        return self.stand_in().kind

    def moments(self) -> Moments:
        """Those of the stand-in."""
        return self.stand_in().moments()

    def moments_at(self, value: Numeric, *size: int) -> Moments:
        """The moments of a point."""
        return self.stand_in().moments_at(value, *size)

    def expected_stats(self) -> Naturals:
        """Those of the stand-in."""
        return self.stand_in().expected_stats()


Belief = ExponentialFamily | Shown  # what a variable may have: its family, or a distribution that one stands for
