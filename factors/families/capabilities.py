"""What some families can do besides what all can: abstract classes that code which needs it asks for."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple, Self

import jax.numpy as jnp

from ..arrays import Array, Key, Numeric
from .base import ExponentialFamily


class DiscreteFamily(ExponentialFamily):
    """Of finitely many states: every distribution over them is a member, and so is every mixture of members."""

    @classmethod
    @abc.abstractmethod
    def from_logits(cls, logits: Array) -> Self:
        """The member with these logarithms of probabilities, up to a constant, on the last axis."""

    @abc.abstractmethod
    def logits_by_state(self) -> Array:
        """Logarithms of the probabilities, up to a constant, on a last axis of states: what `from_logits` takes."""


class TwoMomentFamily(ExponentialFamily):
    """Of numbers: mean and variance decide the member."""

    @classmethod
    @abc.abstractmethod
    def from_mean_and_variance(cls, mean: Numeric, variance: Numeric) -> Self:
        """The member with this mean and this variance, both shaped plates."""


class DivisorFamily(TwoMomentFamily):
    """Of positive numbers, by which factors divide."""

    @abc.abstractmethod
    def divisible(self, power: int) -> Self:
        """A belief of this mean, from which 1 / x^power has a mean and a variance."""

    @abc.abstractmethod
    def mean_inverse(self) -> Array:
        """E 1 / x; where that is infinite, exp of minus the mean logarithm."""


class GaussianFamily(ExponentialFamily):
    """Gaussian, perhaps but for some mass at zero: a belief may be moved."""

    @abc.abstractmethod
    def moved(self, mean: Array) -> Self:
        """The same Gaussian around another mean, shaped as the mean; with a mass at zero, one half is there."""

    @abc.abstractmethod
    def jittered(self, key: Key) -> Self:
        """Moved to a random draw of itself; one that is improper, as EP has yet to inform it, to zero."""


class MarginalOfMean(NamedTuple):
    """A distribution as predictions know it: the `conditional` of this name at expressions of its arguments.

    `formulas` gives them by name, as expressions of independent random `sources` and of `known` values; `stand_in` is
    the Gaussian that messages read.
    """

    conditional: str
    sources: tuple[ExponentialFamily, ...]
    known: tuple[Array, ...]
    formulas: tuple[tuple[str, tuple[Any, ...]], ...]
    stand_in: ExponentialFamily


class PairFamily(ExponentialFamily):
    """Of a mean and of what its precision is a multiple of."""

    @abc.abstractmethod
    def precision(self) -> ExponentialFamily:
        """The marginal of the precision."""

    @abc.abstractmethod
    def of_mean(self) -> MarginalOfMean:
        """The marginal of the mean."""


def finite(draw: Array) -> Array:
    """Draws, with zero in the place of those that are none."""
    return jnp.where(jnp.isfinite(draw), draw, 0.0)
