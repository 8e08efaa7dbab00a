"""How fast paths part: the divergence function of a diffusion tree."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ...engine.support.user_numbers import number
from ...factors.errors import ModelError


@dataclasses.dataclass(frozen=True)
class Divergence:
    """The divergence function `a(t) = rate / (1 - t) + constant + square / (1 - t)^2`.

    A path that one point has taken is left by a second one with the intensity `a(t)`. A large `rate` gives early
    divergence and smooth densities, a small one tight clusters. In depths, `d = -log(1 - t)`, the intensity is
    `rate + constant exp(-d) + square exp(d)` and its integral from the origin
    `rate d + constant (1 - exp(-d)) + square (exp(d) - 1)`.

    Args:
        rate: non-negative; the parameter c of a(t) = c / (1 - t).
        constant: non-negative.
        square: non-negative.

    Raises:
        ModelError: a negative or infinite coefficient, or `rate` and `square` both zero: then the integral up to
            time 1 is finite, and points coincide with positive probability.

    Source: neal2003density.
    """

    rate: float = 1.0
    constant: float = 0.0
    square: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate", "constant", "square"):
            value = number(getattr(self, name))
            if not 0.0 <= value < np.inf:
                raise ModelError(f"The divergence function takes a finite {name} >= 0; found {getattr(self, name)!r}.")
            object.__setattr__(self, name, value)
        if self.rate == 0.0 and self.square == 0.0:
            raise ModelError(
                "The divergence function needs a positive rate or square: otherwise its integral up to time 1 is "
                "finite, some points never part, and the leaves coincide. Pass Divergence(rate=1.0), say."
            )

    @property
    def coefficients(self) -> np.ndarray:
        """(3,) constant, rate, square."""
        return np.array([self.constant, self.rate, self.square])

    def intensity(self, depth: Any) -> np.ndarray:
        """Intensity per unit of depth, `a(t) (1 - t)`."""
        depth = np.asarray(depth, dtype=np.float64)
        with np.errstate(over="ignore"):
            return self.rate + _term(self.constant, np.exp(-depth)) + _term(self.square, np.exp(depth))

    def cumulative(self, depth: Any) -> np.ndarray:
        """Integral of the divergence function from the origin to a depth."""
        depth = np.asarray(depth, dtype=np.float64)
        with np.errstate(over="ignore"):
            bounded, growing = _term(self.constant, -np.expm1(-depth)), _term(self.square, np.expm1(depth))
            return _term(self.rate, depth) + bounded + growing

    def inverse(self, cumulative: Any) -> np.ndarray:
        """The depth at which the integral has a given value: the inverse of `cumulative`."""
        asked = np.asarray(cumulative, dtype=np.float64)
        wanted = np.where(np.isinf(asked), 0.0, asked)
        depth = self._solve(wanted)
        return np.where(np.isinf(asked), np.inf, depth)

    def _solve(self, wanted: np.ndarray) -> np.ndarray:
        if self.constant == 0.0 and self.square == 0.0:
            return wanted / self.rate
        low, high = np.zeros_like(wanted), self._beyond(wanted)
        depth = 0.5 * high
        for _ in range(80):  # Newton's step where it stays inside the bracket, halving where it does not
            error = self.cumulative(depth) - wanted
            low, high = np.where(error < 0.0, depth, low), np.where(error < 0.0, high, depth)
            with np.errstate(invalid="ignore"):  # where both overflow, halving goes on
                step = depth - error / self.intensity(depth)
            new = np.where((step >= low) & (step <= high), step, low + 0.5 * (high - low))
            moved, depth = np.abs(new - depth), new
            if (moved <= 2.0 * np.spacing(depth)).all():
                break
        return depth

    def _beyond(self, wanted: np.ndarray) -> np.ndarray:
        """A depth whose integral is at least the wanted one: each growing term alone would reach it there."""
        with np.errstate(over="ignore"):
            by_rate = wanted / self.rate if self.rate else np.inf
            by_square = np.log1p(wanted / self.square) if self.square else np.inf
            return np.minimum(by_rate, by_square)


def _term(coefficient: float, value: np.ndarray) -> np.ndarray:
    """Zero where the coefficient is, also where the value is infinite."""
    return coefficient * value if coefficient else np.zeros_like(value)
